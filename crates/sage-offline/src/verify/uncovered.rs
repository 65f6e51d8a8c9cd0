//! Tests that no command runs: of a language or in a folder for which the project names none, or outside of the folders
//! that its commands name.
//!
//! A project whose Rust tests pass has not passed its tests if those of its web page were never started.

use std::path::Path;

use super::baseline;
use super::family::Family;
use super::order::Order;
use super::reach::reach;
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
        let by_folder = || Family::of_folder(file).filter(|_| has_tests(tree, file));
        let Some(family) = Family::of_test(file).or_else(by_folder) else { continue };
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
    let reached =
        || reach(tree, order).is_none_or(|starts| starts.iter().any(|start| inside.starts_with(start)));
    // A module of helpers has the name of a test, and no tests.
    runs && within && (reached() || family == Family::Python && !has_tests(tree, file))
}

fn has_tests(tree: &Tree, file: &File) -> bool {
    !baseline::tests(&file.path, &tree.text(file).unwrap_or_default()).names.is_empty()
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
