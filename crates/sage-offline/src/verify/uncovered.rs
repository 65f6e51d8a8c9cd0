//! Tests that no command runs: of a language or in a folder for which the project names none, or outside of the folders
//! that its commands name.
//!
//! A project whose Rust tests pass has not passed its tests if those of its web page were never started.

use std::path::Path;

use super::family::Family;
use super::order::Order;
use crate::parts::{Side, side};
use crate::research::{MAX_FOLDERS, belongs_to_root, folders};
use crate::shell::{self, Words};
use crate::walk::{File, Tree};

/// Folders whose tests are not the project's.
const ASIDE: &[&str] =
    &["examples", "example", "fixtures", "fixture", "testdata", "demo", "third_party", "templates"];

/// A sentence for each language with tests that none of the commands runs.
pub fn uncovered(tree: &Tree, orders: &[Order], part: Option<Side>) -> Vec<String> {
    let mut found: Vec<(Family, Vec<&File>)> = Vec::new();
    for file in tree.files.iter().filter(|file| !is_aside(file)) {
        let Some(family) = Family::of_test(file) else { continue };
        let wanted = part.is_none_or(|part| side(&file.path) == part);
        if !wanted {
            continue;
        }
        let home = home(&tree.root, family, file);
        if orders.iter().any(|order| covers(tree, order, family, file, &home)) {
            continue;
        }
        match found.iter_mut().find(|(known, _)| *known == family) {
            Some((_, files)) => files.push(file),
            None => found.push((family, vec![file])),
        }
    }
    let mut all: Vec<String> = found.iter().map(|(family, files)| told(*family, files)).collect();
    if folders(tree).len() == MAX_FOLDERS {
        all.push(format!(
            "The project has more than {MAX_FOLDERS} packages, and only the first ones were tested."
        ));
    }
    all
}

fn is_aside(file: &File) -> bool {
    file.path.split('/').any(|part| ASIDE.contains(&part))
}

fn covers(tree: &Tree, order: &Order, family: Family, file: &File, home: &str) -> bool {
    let is_below = |path: &str, folder: &str| folder.is_empty() || path.starts_with(&format!("{folder}/"));
    let at_home = order.folder == home || is_below(&order.folder, home);
    let runs = match order.family() {
        Family::Wrapper => may_run(order, family),
        own => own == family && at_home,
    };
    let within = is_below(&file.path, &order.folder);
    let inside = file.path.get(order.folder.len()..).unwrap_or_default().trim_start_matches('/');
    runs && within
        && reach(tree, order).is_none_or(|starts| starts.iter().any(|start| inside.starts_with(start)))
}

/// Whether a wrapper may run tests of a language: it starts a tool of that language, or something that is not known.
fn may_run(order: &Order, family: Family) -> bool {
    let started = order.starts();
    let tools = |words: &Words| -> Vec<Family> {
        let runs = |family: &Family| family.tools("test").iter().any(|tool| shell::runs(words, tool));
        KNOWN.iter().copied().filter(runs).collect()
    };
    let families: Vec<Vec<Family>> = started.iter().map(tools).collect();
    let idle = started.is_empty() && order.definition.lines().any(|line| line.starts_with([' ', '\t', '#']));
    !idle && (families.iter().any(|of| of.is_empty() || of.contains(&family)) || families.is_empty())
}

const KNOWN: &[Family] = &[Family::Rust, Family::Go, Family::Node, Family::Python, Family::Jvm];

/// Runners that are given folders or files.
const RUNNERS: &[&str] = &["node --test", "mocha", "bats", "pytest", "py.test"];

/// How the paths begin that a command runs tests in, if everything that it starts is a runner with paths.
fn reach(tree: &Tree, order: &Order) -> Option<Vec<String>> {
    let started = order.starts();
    let mut starts = Vec::new();
    for words in &started {
        let tool = RUNNERS.iter().find(|tool| shell::runs(words, tool))?;
        let tool = tool.split(' ').next().unwrap_or(tool);
        let at = words.iter().position(|word| shell::base(word) == tool)?;
        let own = words[at + 1..].iter().filter_map(|word| start_of(tree, &order.folder, word));
        let own: Vec<String> = own.collect();
        (!own.is_empty()).then_some(())?;
        starts.extend(own);
    }
    (!starts.is_empty() && starts.iter().all(|start| !start.is_empty())).then_some(starts)
}

/// `unit/`, `test/a.js` and `test/**/*.js` begin with folders of the project.
fn start_of(tree: &Tree, folder: &str, word: &str) -> Option<String> {
    let path = shell::joined_path("", word);
    let (start, is_pattern) = match path.find(['*', '?', '{', '[']) {
        Some(at) => (path[..at].to_string(), true),
        None => (path, false),
    };
    let place = tree.root.join(folder).join(&start);
    match (is_pattern, place.is_dir(), place.is_file()) {
        _ if word.starts_with('-') => None,
        (true, ..) | (_, _, true) => Some(start),
        (_, true, _) if start.is_empty() => Some(start),
        (_, true, _) => Some(format!("{start}/")),
        _ => None,
    }
}

/// The folder with the manifest that a test file belongs to, if that is one of its own; else the project itself.
fn home(root: &Path, family: Family, file: &File) -> String {
    let mut folder = file.path.as_str();
    while let Some((above, _)) = folder.rsplit_once('/') {
        let names = family.manifests().iter();
        let found = names.copied().find(|name| root.join(above).join(name).is_file());
        if found.is_some_and(|name| !belongs_to_root(root, above, name)) {
            return above.to_string();
        }
        folder = above;
    }
    String::new()
}

fn told(family: Family, files: &[&File]) -> String {
    let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    format!("No command is known that runs the {} tests in `{}`{more}.", family.name(), files[0].path)
}
