//! Packages of Node: the scripts that a command runs with those around and below them, and the settings of runners.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Gather, is_work};
use crate::shell::{self, Words, base, joined_path};

/// Settings of the tools themselves.
const SETTINGS: &[&str] = &[".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml", ".taprc", "karma.conf.js"];
/// Settings of runners, with any of `ENDINGS`.
const CONFIGS: &[&str] = &[
    "jest.config",
    "vitest.config",
    "vitest.workspace",
    "playwright.config",
    "cypress.config",
    "ava.config",
    ".mocharc",
];
const ENDINGS: &[&str] = &["js", "cjs", "mjs", "ts", "cts", "mts", "json", "jsonc", "yaml", "yml"];
/// Keys of `package.json` with the settings of a runner.
const KEYS: &[&str] = &["jest", "mocha", "ava", "tap", "vitest"];
/// Words that run the scripts of the packages below.
const RECURSIVE: &[&str] =
    &["--workspaces", "-ws", "--workspace", "-w", "-r", "--recursive", "workspaces", "turbo", "lerna", "nx"];

impl Gather<'_> {
    pub(super) fn node(&mut self, folder: &str, words: &Words, depth: usize) {
        self.whole_of(folder, SETTINGS);
        for name in CONFIGS {
            for ending in ENDINGS {
                let path = joined_path(folder, &format!("{name}.{ending}"));
                self.whole(&path);
                self.required(folder, &path);
            }
        }
        self.vite(folder);
        let named: BTreeSet<&str> = words[1..].iter().map(String::as_str).collect();
        self.scripts(folder, &|name| named.contains(name) || name == "test" && named.contains("t"), depth);
        if words.iter().any(|word| RECURSIVE.contains(&base(word))) {
            for path in self.below(folder, "package.json") {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                self.scripts(folder, &|name| name == "test" || named.contains(name), depth);
            }
        }
    }

    /// Files of the project that settings load.
    fn required(&mut self, folder: &str, path: &str) {
        let text = self.text(path).unwrap_or_default();
        let quoted = text.split(['"', '\'', '`']).skip(1).step_by(2);
        let named = quoted.filter(|word| word.starts_with('.') || word.starts_with("<rootDir>/"));
        for word in named.map(|word| word.trim_start_matches("<rootDir>/")) {
            let file = joined_path(folder, &self.module(folder, word));
            if self.text(&file).is_some_and(|text| !is_work(&file, &text)) {
                self.whole(&file);
            }
        }
    }

    /// Vite's settings hold vitest's, if they speak of tests.
    fn vite(&mut self, folder: &str) {
        for ending in ENDINGS {
            let path = joined_path(folder, &format!("vite.config.{ending}"));
            if self.text(&path).is_some_and(|text| text.contains("test:") || text.contains("\"test\"")) {
                self.whole(&path);
            }
        }
    }

    /// The scripts that `is_named` takes, those before and after them, and those that they run.
    fn scripts(&mut self, folder: &str, is_named: &dyn Fn(&str) -> bool, depth: usize) {
        let path = joined_path(folder, "package.json");
        let manifest: Value =
            self.text(&path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        for key in KEYS.iter().filter(|key| manifest.get(**key).is_some()) {
            let fact = format!("{key}={}", manifest[*key]);
            self.facts(&path).fix(fact);
        }
        let Some(scripts) = manifest["scripts"].as_object() else { return };
        for name in reached(scripts, is_named) {
            let body = scripts[name].as_str().unwrap_or_default();
            self.facts(&path).fix(format!("{name}={body}"));
            self.script(folder, body, depth + 1);
            for program in shell::commands(body).iter().filter_map(|words| words.first()) {
                self.program(&joined_path(folder, &format!("node_modules/.bin/{program}")));
            }
        }
    }
}

fn reached<'a>(scripts: &'a Map<String, Value>, is_named: &dyn Fn(&str) -> bool) -> BTreeSet<&'a str> {
    let mut queue: Vec<&str> = scripts.keys().map(String::as_str).filter(|name| is_named(name)).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = queue.pop() {
        if !found.insert(name) {
            continue;
        }
        let body = scripts[name].as_str().unwrap_or_default();
        let words: BTreeSet<String> = shell::commands(body).into_iter().flatten().collect();
        let is_meant = |other: &&str| {
            let beside = [format!("pre{name}"), format!("post{name}")].contains(&other.to_string());
            let pattern =
                |word: &String| word.strip_suffix('*').is_some_and(|start| other.starts_with(start));
            beside || words.contains(*other) || words.iter().any(pattern)
        };
        queue.extend(scripts.keys().map(String::as_str).filter(is_meant));
    }
    found
}
