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
                && !is_excluded(&read(name), folder)
        }
        "package.json" => is_member(root) && tests_below(&read(name)),
        // `go test ./...` stops at other modules; a workspace names them.
        "go.mod" => is_there("go.work"),
        "pom.xml" => read(name).contains("<modules>"),
        "build.gradle" | "build.gradle.kts" => is_there("settings.gradle") || is_there("settings.gradle.kts"),
        // pytest looks below, unittest does not.
        "pyproject.toml" | "setup.py" | "setup.cfg" => {
            is_there("pytest.ini") || read(name).contains("pytest")
        }
        _ => true,
    }
}

/// Packages below are members of the project's own workspace: they are installed, linked and built with it.
pub(super) fn is_member(root: &Path) -> bool {
    let others = ["pnpm-workspace.yaml", "lerna.json", "nx.json", "turbo.json", "rush.json"];
    manifest(root, Path::new("package.json")).contains("\"workspaces\"")
        || others.iter().any(|name| root.join(name).is_file())
}

fn manifest(root: &Path, path: &Path) -> String {
    plain::text(root, path, MAX_MANIFEST_BYTES).unwrap_or_default()
}

fn is_excluded(manifest: &str, folder: &str) -> bool {
    let table: toml::Table = manifest.parse().unwrap_or_default();
    let exclude = table.get("workspace").and_then(|workspace| workspace.get("exclude"));
    let names = exclude.and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str);
    names.into_iter().any(|name| folder == name || folder.starts_with(&format!("{name}/")))
}

/// Words of a script that runs those of the packages below.
const RECURSIVE: &[&str] = &[
    "--workspaces",
    "-ws",
    "--workspace",
    "-r",
    "--recursive",
    "-F",
    "--filter",
    "workspaces",
    "workspace",
    "turbo",
    "lerna",
    "nx",
    "rush",
    "wsrun",
    "ultra",
];

/// The test script runs those of the packages below, or a runner that finds the tests in all folders by itself.
fn tests_below(manifest: &str) -> bool {
    let manifest: Value = serde_json::from_str(manifest).unwrap_or_default();
    let scripts = &manifest["scripts"];
    let (mut queue, mut seen) = (vec!["test".to_string()], Vec::new());
    while let Some(name) = queue.pop() {
        let commands = shell::commands(scripts[name.as_str()].as_str().unwrap_or_default());
        if commands.iter().any(looks_below) {
            return true;
        }
        let words = commands.into_iter().flatten().filter(|word| scripts.get(word.as_str()).is_some());
        let new: Vec<String> = words.filter(|word| !seen.contains(word)).collect();
        seen.extend(new.iter().cloned());
        queue.extend(new);
    }
    false
}

fn looks_below(words: &Words) -> bool {
    let recursive = words.iter().any(|word| {
        let word = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        RECURSIVE.contains(&shell::base(word))
    });
    let runner = ["jest", "vitest", "ava"].iter().any(|tool| shell::runs(words, tool));
    let bare = words.iter().all(|word| word == "node" || word.starts_with('-'));
    recursive || runner || shell::runs(words, "node --test") && bare
}
