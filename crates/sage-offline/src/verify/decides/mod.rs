//! The files that decide how a command runs, and what of each of them matters: the Makefile with what it includes, the
//! scripts that are called, the settings of the test runner. Compared between two moments, they tell whether a command
//! is still the same.
//!
//! ```text
//! line -> its commands -> the tool's own files (make, node, python, cargo, jvm, others)
//!                      -> files that are started or given as settings, and what those start
//! ```
//! Tests themselves and the code under test are not among them, nor are lists of dependencies.

mod cargo;
mod jvm;
mod make;
mod node;
mod others;
mod python;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::baseline;
use crate::plain;
use crate::shell::{self, Variables, Words, joined_path};
use crate::walk::Tree;

/// Larger files are not written by people.
const MAX_BYTES: u64 = 512 * 1024;
/// Scripts that call scripts that call scripts.
const MAX_DEPTH: usize = 5;
/// Files of one kind beyond these are somebody's collection.
const MAX_FILES: usize = 300;
const HASH_BYTES: usize = 8;

/// By path.
pub type Decides = BTreeMap<String, Facts>;

/// What matters of a file, as hashes: its text may hold secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// What must still be there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    keep: BTreeSet<String>,
    /// What nobody may add.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    bar: BTreeSet<String>,
    /// The order of the lines of a whole file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    order: String,
}

impl Facts {
    /// Something that may neither go nor come.
    fn fix(&mut self, fact: impl AsRef<[u8]>) {
        self.keep(fact.as_ref());
        self.bar(fact.as_ref());
    }

    fn keep(&mut self, fact: impl AsRef<[u8]>) {
        self.keep.insert(hash(fact.as_ref()));
    }

    fn bar(&mut self, fact: impl AsRef<[u8]>) {
        self.bar.insert(hash(fact.as_ref()));
    }

    /// All of a text, line by line: a person and a run may each change some of them.
    fn fix_lines(&mut self, text: &str) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines().map(str::trim_end) {
            let again = seen.entry(line).or_insert(0);
            *again += 1;
            self.fix(format!("{again} {line}"));
        }
        self.order = hash(text.as_bytes());
    }

    pub fn is_empty(&self) -> bool {
        self.keep.is_empty() && self.bar.is_empty() && self.order.is_empty()
    }

    /// Whether what is there now decides otherwise.
    fn differs(&self, now: &Facts) -> bool {
        let lines = !self.keep.is_subset(&now.keep) || !now.bar.is_subset(&self.bar);
        lines || self.keep == now.keep && self.order != now.order
    }

    /// Takes over what is different between `left` and `now`, but for what is different between the two of `others`.
    pub fn follow(&mut self, left: &Facts, now: &Facts, others: &[(Facts, Facts)]) {
        let delta = |own: &mut BTreeSet<String>, of: fn(&Facts) -> &BTreeSet<String>| {
            let theirs = |from: fn(&(Facts, Facts)) -> (&Facts, &Facts), fact: &String| {
                others
                    .iter()
                    .map(from)
                    .any(|(some, other)| of(some).contains(fact) && !of(other).contains(fact))
            };
            let added = of(now).difference(of(left)).filter(|fact| !theirs(|it| (&it.1, &it.0), fact));
            let removed = of(left).difference(of(now)).filter(|fact| !theirs(|it| (&it.0, &it.1), fact));
            let removed: Vec<&String> = removed.collect();
            own.extend(added.cloned());
            own.retain(|fact| !removed.contains(&fact));
        };
        let only_order = self.order != left.order && (&self.keep, &self.bar) == (&left.keep, &left.bar);
        delta(&mut self.keep, |facts| &facts.keep);
        delta(&mut self.bar, |facts| &facts.bar);
        if !only_order {
            self.order.clone_from(&now.order);
        }
    }
}

/// The files that decide otherwise than before. One that is no longer come to is told only if no other file says why.
pub fn changed(then: &Decides, now: &Decides) -> Vec<String> {
    let nothing = Facts::default();
    let is_other = |(path, now): &(&String, &Facts)| then.get(*path).unwrap_or(&nothing).differs(now);
    let other: Vec<String> = now.iter().filter(is_other).map(|(path, _)| path.clone()).collect();
    if !other.is_empty() {
        return other;
    }
    let is_gone = |(path, then): &(&String, &Facts)| !now.contains_key(*path) && then.differs(&nothing);
    then.iter().filter(is_gone).map(|(path, _)| path.clone()).collect()
}

/// What decides about a command line.
#[derive(Debug)]
pub struct Followed {
    pub decides: Decides,
    /// A command on the way that starts something which is not known before it runs.
    pub opaque: Option<String>,
}

/// What decides about a command line that runs in a folder.
pub fn of(tree: &Tree, folder: &str, line: &str) -> Followed {
    let mut gather = Gather { tree, found: Decides::new(), seen: BTreeSet::new(), opaque: None };
    gather.script(folder, line, 0);
    gather.found.retain(|_, facts| !facts.is_empty());
    Followed { decides: gather.found, opaque: gather.opaque }
}

struct Gather<'a> {
    tree: &'a Tree,
    found: Decides,
    /// Commands and files that were followed.
    seen: BTreeSet<String>,
    opaque: Option<String>,
}

impl Gather<'_> {
    fn script(&mut self, folder: &str, text: &str, depth: usize) {
        self.opaque = self.opaque.take().or_else(|| shell::opaque(text));
        for (folder, words) in shell::placed(text, folder) {
            let key = format!("{folder}: {}", words.join(" "));
            if depth < MAX_DEPTH && self.seen.insert(key) {
                self.command(&folder, &words, depth);
            }
        }
    }

    fn command(&mut self, folder: &str, words: &Words, depth: usize) {
        let program = shell::base(&words[0]);
        match program {
            "make" | "gmake" | "just" => self.make(folder, words, depth),
            "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "node" | "jest" | "vitest" | "mocha"
            | "ava" | "turbo" | "lerna" | "nx" | "tsx" | "run-s" | "run-p" | "npm-run-all" | "playwright" => {
                self.node(folder, words, depth);
            }
            "cargo" => self.cargo(folder),
            "uv" | "poetry" | "pytest" | "py.test" | "tox" | "nox" | "coverage" => self.python(folder, words),
            "mvn" | "mvnw" | "gradle" | "gradlew" => self.jvm(folder),
            _ if program.starts_with("python") => self.python(folder, words),
            _ => self.others(folder, program),
        }
        self.started(folder, words, depth);
    }

    /// Files that are started, or given to a program as its settings.
    fn started(&mut self, folder: &str, words: &Words, depth: usize) {
        let mut is_first = true;
        for (at, word) in words.iter().enumerate() {
            let after_option = at > 0 && words[at - 1].starts_with('-');
            let given = word.strip_prefix('-').and_then(|word| word.split_once('=')).map(|(_, value)| value);
            let is_program = at == 0 && word.contains('/');
            let is_script = at > 0 && is_first && shell::is_interpreter(&words[0]) && !word.starts_with('-');
            is_first &= at == 0 || word.starts_with('-');
            if let Some(value) = given {
                self.named(folder, value, depth);
            } else if is_script && shell::base(&words[0]) == "node" {
                self.named(folder, &self.module(folder, word), depth);
            } else if is_program || is_script || after_option {
                self.named(folder, word, depth);
            }
        }
    }

    fn named(&mut self, folder: &str, word: &str, depth: usize) {
        let path = joined_path(folder, word);
        let Some(text) = self.text(&path).filter(|text| !is_work(&path, text)) else { return };
        self.whole(&path);
        let is_script = path.ends_with(".sh") || text.lines().next().is_some_and(is_shell_line);
        if is_script && self.seen.insert(path.clone()) {
            let home = path.rsplit_once('/').map_or("", |(home, _)| home);
            let text = Variables::of_script(&text, home).resolve(&text);
            self.script(folder, &text, depth + 1);
        }
    }

    /// `node ./run` is `run.js`, and `node .` is `index.js`.
    fn module(&self, folder: &str, word: &str) -> String {
        let is_file = |word: &String| self.tree.root.join(joined_path(folder, word)).is_file();
        let known = [word.to_string(), format!("{word}.js"), format!("{word}/index.js")];
        known.into_iter().find(is_file).unwrap_or_default()
    }

    /// A file of the project, if it is one that people write.
    fn text(&self, path: &str) -> Option<String> {
        if path.is_empty() || path.starts_with("..") {
            return None;
        }
        let text = plain::text(&self.tree.root, Path::new(path), MAX_BYTES);
        text.filter(|text| !text.contains('\0'))
    }

    /// All of a file matters.
    fn whole(&mut self, path: &str) {
        if let Some(text) = self.text(path) {
            self.facts(path).fix_lines(&text);
        }
    }

    fn whole_of(&mut self, folder: &str, names: &[&str]) {
        for name in names {
            self.whole(&joined_path(folder, name));
        }
    }

    fn facts(&mut self, path: &str) -> &mut Facts {
        self.found.entry(path.to_string()).or_default()
    }

    /// Paths of the files of this name in a folder and below it.
    fn below(&self, folder: &str, name: &str) -> Vec<String> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let files =
            self.tree.files.iter().filter(|file| file.name() == name && file.path.starts_with(&start));
        files.take(MAX_FILES).map(|file| file.path.clone()).collect()
    }

    /// A program in the project, which may be no text: where a link leads, or its content.
    fn program(&mut self, path: &str) {
        let file = self.tree.root.join(path);
        let content = match std::fs::read_link(&file) {
            Ok(to) => Some(to.as_os_str().as_encoded_bytes().to_vec()),
            Err(_) => plain::open(&file).and_then(|file| plain::read(file, plain::MOST_BYTES)),
        };
        if let Some(content) = content {
            self.facts(path).fix(content);
        }
    }
}

fn is_shell_line(line: &str) -> bool {
    line.starts_with("#!") && line.split(['/', ' ']).any(shell::is_shell)
}

/// Tests are compared by name, and a new dependency changes no test.
fn is_work(path: &str, text: &str) -> bool {
    let name = shell::base(path);
    let dependencies = ["package.json", "Cargo.toml", "pyproject.toml", "go.mod", "Gemfile", "composer.json"];
    let is_list = name.ends_with(".lock") || name.starts_with("requirements") || dependencies.contains(&name);
    is_list || !baseline::tests(path, text).names.is_empty()
}

fn hash(fact: &[u8]) -> String {
    let digest = Sha256::digest(fact);
    digest[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
