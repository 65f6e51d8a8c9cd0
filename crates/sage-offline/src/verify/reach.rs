//! Where a command looks for tests, if it names folders or files: `node --test unit/`, `cd web && jest`, `testpaths`.

use std::path::Path;

use serde_json::Value;

use super::family::Family;
use super::order::Order;
use crate::plain;
use crate::research;
use crate::shell::{self, Words, joined_path};
use crate::walk::Tree;

/// Runners that are given folders or files.
const RUNNERS: &[&str] = &["node --test", "mocha", "bats", "pytest", "py.test", "jest", "vitest"];
/// Options of runners that are followed by a folder with tests.
const DIRS: &[&str] = &["--dir", "--rootDir", "--roots"];
/// Scripts that run scripts.
const MAX_DEPTH: usize = 4;

/// How the paths begin that a command runs tests in, if everything that it starts is a runner with paths.
pub fn reach(tree: &Tree, order: &Order) -> Option<Vec<String>> {
    if order.family() == Family::Python && order.line.ends_with(" -m pytest") {
        let paths = research::test_paths(&tree.root, &order.folder)?;
        return starts_of(paths.iter().filter_map(|path| start_of(tree, &order.folder, path)).collect());
    }
    let mut started = Vec::new();
    let is_recipe = ["make ", "just "].iter().any(|tool| order.line.starts_with(tool));
    match is_recipe {
        true => started.extend(order.starts().into_iter().map(|words| (order.folder.clone(), words))),
        false => expand(tree, &order.folder, &order.definition, 0, &mut started),
    }
    let mut starts = Vec::new();
    for (folder, words) in &started {
        starts.extend(starts_in(tree, folder, words)?);
    }
    let within = |start: String| match order.folder.as_str() {
        "" => start,
        folder => start.strip_prefix(&format!("{folder}/")).unwrap_or_default().to_string(),
    };
    starts_of(starts.into_iter().map(within).collect())
}

/// All tests, if one of them is everywhere.
fn starts_of(starts: Vec<String>) -> Option<Vec<String>> {
    (!starts.is_empty() && starts.iter().all(|start| !start.is_empty())).then_some(starts)
}

/// The commands of a script, with those of the scripts of its package that it runs.
fn expand(tree: &Tree, folder: &str, text: &str, depth: usize, found: &mut Vec<(String, Words)>) {
    for (folder, words) in shell::placed(text, folder) {
        match script_of(tree, &folder, &words).filter(|_| depth < MAX_DEPTH) {
            Some(script) => expand(tree, &folder, &script, depth + 1, found),
            None => found.push((folder, words)),
        }
    }
}

/// `npm run unit`, `yarn unit`
fn script_of(tree: &Tree, folder: &str, words: &Words) -> Option<String> {
    let [tool, rest @ ..] = words.as_slice() else { return None };
    ["npm", "pnpm", "yarn", "bun"].contains(&shell::base(tool)).then_some(())?;
    let name = rest.iter().find(|word| !word.starts_with('-') && *word != "run")?;
    let text = plain::text(&tree.root, &Path::new(folder).join("package.json"), plain::MOST_BYTES)?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    let only = rest.iter().all(|word| word == "run" || word == name);
    manifest["scripts"][name.as_str()].as_str().filter(|_| only).map(str::to_string)
}

/// From the project on; nothing if it may look anywhere.
fn starts_in(tree: &Tree, folder: &str, words: &Words) -> Option<Vec<String>> {
    let tool = RUNNERS.iter().find(|tool| shell::runs(words, tool))?;
    let tool = tool.split(' ').next().unwrap_or(tool);
    let at = words.iter().position(|word| shell::base(word) == tool)?;
    let given = words[at + 1..].iter().enumerate().filter_map(|(index, word)| match word.split_once('=') {
        Some((option, value)) => DIRS.contains(&option).then_some(value),
        None => (index == 0 || !takes_value(&words[at + index])).then_some(word.as_str()),
    });
    let own: Vec<String> = given.filter_map(|word| start_of(tree, folder, word)).collect();
    let prefixed = |start: &str| joined(folder, start);
    if !own.is_empty() {
        return Some(own.iter().map(|start| prefixed(start)).collect());
    }
    // mocha looks into `test` unless its settings say otherwise.
    let named = words[at + 1..].iter().any(|word| !word.starts_with('-'));
    let sets = |name: &str| tree.root.join(folder).join(name).exists();
    let settings =
        [".mocharc.js", ".mocharc.cjs", ".mocharc.json", ".mocharc.jsonc", ".mocharc.yml", ".mocharc.yaml"];
    let manifest = plain::text(&tree.root, &Path::new(folder).join("package.json"), plain::MOST_BYTES);
    let has_key = manifest.is_some_and(|text| text.contains("\"mocha\": {") || text.contains("\"mocha\":{"));
    if tool == "mocha" && !named && !has_key && !settings.iter().any(|name| sets(name)) {
        return Some(vec![prefixed("test/")]);
    }
    // `cd a && node --test`
    (!folder.is_empty() && !named).then(|| vec![format!("{folder}/")])
}

/// What follows belongs to the option. Of `DIRS` it is a folder with tests.
fn takes_value(word: &str) -> bool {
    let valued =
        ["-c", "--config", "-r", "--require", "--import", "-k", "-m", "-t", "--reporter", "--ignore", "-p"];
    valued.contains(&word)
}

fn joined(folder: &str, start: &str) -> String {
    if folder.is_empty() { start.to_string() } else { format!("{folder}/{start}") }
}

/// `unit/`, `test/a.js` and `test/**/*.js` begin with folders of the project.
fn start_of(tree: &Tree, folder: &str, word: &str) -> Option<String> {
    let path = joined_path("", word);
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
