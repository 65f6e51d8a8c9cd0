//! Whether the manifest of a project speaks for the folders below it as well.

use std::path::Path;

use serde_json::Value;

use super::MAX_MANIFEST_BYTES;
use crate::plain;
use crate::shell::{self, Words};

/// The manifest `name` in `folder` belongs to the one of the project itself: its tests run with the project's.
pub(crate) fn holds(root: &Path, folder: &str, name: &str) -> bool {
    let read = |name: &str| manifest(root, Path::new(name));
    let is_there = |name: &str| root.join(name).is_file();
    if !is_there(name) {
        return false;
    }
    match name {
        "Cargo.toml" => {
            let own = manifest(root, &Path::new(folder).join(name));
            read(name).contains("[workspace")
                && !own.contains("[workspace]")
                && is_of_cargo(&read(name), folder)
        }
        "package.json" => is_member(root, folder) && tests_below(root, folder),
        // `go test ./...` stops at other modules, also at those that `go.work` names.
        "go.mod" => false,
        "pom.xml" => is_module(root, "", folder),
        "build.gradle" | "build.gradle.kts" => {
            let last = folder.rsplit('/').next().unwrap_or(folder);
            ["settings.gradle", "settings.gradle.kts"].iter().any(|name| has_word(&read(name), last))
        }
        // pytest looks below, unittest does not.
        "pyproject.toml" | "setup.py" | "setup.cfg" => {
            (is_there("pytest.ini") || read(name).contains("pytest")) && is_looked_at(root, folder)
        }
        _ => true,
    }
}

/// Packages below are members of the project's own workspace: they are installed, linked and built with it.
pub(super) fn is_member(root: &Path, folder: &str) -> bool {
    let others = ["pnpm-workspace.yaml", "lerna.json", "nx.json", "turbo.json", "rush.json"];
    let manifest: Value =
        serde_json::from_str(&manifest(root, Path::new("package.json"))).unwrap_or_default();
    let workspaces = &manifest["workspaces"];
    let list = workspaces.as_array().or_else(|| workspaces["packages"].as_array());
    match list {
        Some(list) => list.iter().filter_map(Value::as_str).any(|pattern| fits(pattern, folder)),
        None => others.iter().any(|name| root.join(name).is_file()),
    }
}

/// Whether a pattern such as `packages/*` or `./a/**` is for a folder or one above it.
fn fits(pattern: &str, folder: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let folders: Vec<&str> = folder.split('/').collect();
    fit(&parts, &folders)
}

fn fit(pattern: &[&str], folder: &[&str]) -> bool {
    match (pattern, folder) {
        ([], _) => true,
        (["**", rest @ ..], _) => (0..=folder.len()).any(|from| fit(rest, &folder[from..])),
        ([part, rest @ ..], [own, below @ ..]) => {
            let is_it = match part.split_once('*') {
                Some((start, end)) => own.starts_with(start) && own.ends_with(end.trim_start_matches('*')),
                None => part == own,
            };
            is_it && fit(rest, below)
        }
        _ => false,
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).any(|it| it == word)
}

/// A module of a module is run as well.
fn is_module(root: &Path, above: &str, folder: &str) -> bool {
    let text = manifest(root, &Path::new(above).join("pom.xml"));
    let modules = text.split("<module>").skip(1).filter_map(|rest| rest.split('<').next());
    let named = modules.map(|name| shell::joined_path(above, name.trim().trim_end_matches("/pom.xml")));
    let found: Vec<String> = named.filter(|name| !name.is_empty() && name != above).collect();
    found.iter().any(|name| {
        name == folder || folder.starts_with(&format!("{name}/")) && is_module(root, name, folder)
    })
}

/// Whether pytest, started in the project, looks into a folder.
fn is_looked_at(root: &Path, folder: &str) -> bool {
    let is_it = |path: &String| fits(path, folder) || path.starts_with(&format!("{folder}/"));
    test_paths(root, "").is_none_or(|paths| paths.iter().any(is_it))
}

/// `testpaths` of pytest's settings in a folder.
pub(crate) fn test_paths(root: &Path, folder: &str) -> Option<Vec<String>> {
    let names = [
        "pytest.toml",
        ".pytest.toml",
        "pytest.ini",
        ".pytest.ini",
        "pyproject.toml",
        "tox.ini",
        "setup.cfg",
    ];
    let texts = names.iter().map(|name| manifest(root, &Path::new(folder).join(name)));
    let set = |text: &String| text.lines().any(|line| line.trim_start().starts_with("testpaths"));
    let text = texts.into_iter().find(set)?;
    let value = text.split_once("testpaths")?.1.trim_start().trim_start_matches('=').trim_start();
    // A list of TOML ends with its bracket, one of INI with a line that is not indented.
    let value = match value.strip_prefix('[') {
        Some(list) => list.split(']').next().unwrap_or(list).to_string(),
        None => {
            let more = value.lines().skip(1).take_while(|line| line.starts_with([' ', '\t']));
            value.lines().take(1).chain(more).collect::<Vec<_>>().join(" ")
        }
    };
    let paths = value.split([' ', ',', '"', '\'', '\n', '\t']).filter(|path| !path.is_empty());
    Some(paths.map(str::to_string).collect())
}

fn manifest(root: &Path, path: &Path) -> String {
    plain::text(root, path, MAX_MANIFEST_BYTES).unwrap_or_default()
}

/// Listed as a member, or something that the project itself depends on.
fn is_of_cargo(manifest: &str, folder: &str) -> bool {
    let table: toml::Table = manifest.parse().unwrap_or_default();
    let list = |field: &str| {
        let names = table.get("workspace").and_then(|it| it.get(field)).and_then(toml::Value::as_array);
        names.map(|names| names.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>())
    };
    let excluded = list("exclude").is_some_and(|names| names.iter().any(|name| fits(name, folder)));
    let is_needed = || {
        let paths = manifest.split("path").skip(1).filter_map(|rest| rest.split(['"', '\'']).nth(1));
        paths.map(|path| path.trim_start_matches("./").trim_end_matches('/')).any(|path| path == folder)
    };
    // A member is that folder alone: what lies below it is another one.
    let depth = |path: &str| path.trim_matches('/').trim_start_matches("./").split('/').count();
    let is_it = |name: &&str| fits(name, folder) && (name.contains("**") || depth(name) == depth(folder));
    !excluded && (list("members").is_some_and(|names| names.iter().any(is_it)) || is_needed())
}

/// Words of a script that runs those of the packages below.
const RECURSIVE: &[&str] = &[
    "--workspaces",
    "-ws",
    "-r",
    "--recursive",
    "workspaces",
    "turbo",
    "lerna",
    "nx",
    "rush",
    "wsrun",
    "ultra",
];

/// The test script runs that of a package below, or a runner that finds the tests in all folders by itself.
fn tests_below(root: &Path, folder: &str) -> bool {
    let parsed = |path: &Path| serde_json::from_str::<Value>(&manifest(root, path)).unwrap_or_default();
    let own = parsed(&Path::new(folder).join("package.json"));
    let names = [folder, folder.rsplit('/').next().unwrap_or(folder), own["name"].as_str().unwrap_or(folder)];
    let scripts = &parsed(Path::new("package.json"))["scripts"];
    let (mut queue, mut seen) = (vec!["test".to_string()], Vec::new());
    while let Some(name) = queue.pop() {
        let commands = shell::commands(scripts[name.as_str()].as_str().unwrap_or_default());
        if commands.iter().any(|words| looks_below(words, &names)) {
            return true;
        }
        let words = commands.into_iter().flatten().filter(|word| scripts.get(word.as_str()).is_some());
        let new: Vec<String> = words.filter(|word| !seen.contains(word)).collect();
        seen.extend(new.iter().cloned());
        queue.extend(new);
    }
    false
}

/// Options and words that are followed by the package that is meant.
const ONE: &[&str] = &["--workspace", "-w", "workspace", "-F", "--filter"];

fn looks_below(words: &Words, names: &[&str]) -> bool {
    let given = words.iter().enumerate().filter_map(|(at, word)| match word.split_once('=') {
        Some((option, value)) => ONE.contains(&option).then_some(value),
        None => ONE.contains(&word.as_str()).then(|| words.get(at + 1).map(String::as_str)).flatten(),
    });
    let given: Vec<&str> = given.collect();
    if !given.is_empty() {
        let plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || "@/_-.".contains(c));
        let is_it = |name: &&str| names.contains(&name.trim_start_matches("./")) || !plain(name);
        return given.iter().any(is_it);
    }
    let recursive = words.iter().any(|word| {
        let word = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        RECURSIVE.contains(&shell::base(word))
    });
    let runner = ["jest", "vitest", "ava"].iter().any(|tool| shell::runs(words, tool));
    let bare = words.iter().all(|word| word == "node" || word.starts_with('-'));
    recursive || runner || shell::runs(words, "node --test") && bare
}
