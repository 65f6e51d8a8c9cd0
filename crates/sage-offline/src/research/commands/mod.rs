//! How the project is built, tested and checked, from the files that say so. Nothing is run here.
//!
//! ```text
//!   Cargo.toml  package.json  pyproject.toml  go.mod  pom.xml  build.gradle   (the tool that is surely there)
//!   Makefile  justfile  ./test                                                (then what the project wraps it in)
//! ```
//! The first of each list is the one to run; the others say the same in another way, or are for another folder.

mod node;
mod python;
mod recipes;
mod unittest;
mod workspace;

pub(crate) use python::build as python_build;
pub(crate) use recipes::{JUSTFILES, MAKEFILES, definition as recipe_of};
pub(crate) use workspace::{holds as belongs_to_root, test_paths};

use std::path::Path;

use crate::plain;
use crate::walk::Tree;

/// More than these are sub-projects of sub-projects.
const MAX_COMMANDS: usize = 8;
/// Folders with a manifest beyond these are somebody's collection.
pub(crate) const MAX_FOLDERS: usize = 100;
/// Larger ones are not written by people.
const MAX_MANIFEST_BYTES: u64 = 512 * 1024;
/// Folders deeper than this are examples and fixtures.
const MAX_DEPTH: usize = 6;
/// Manifests in folders of these names are not the project's own.
const NOT_OURS: &[&str] =
    &["examples", "example", "fixtures", "fixture", "testdata", "test", "tests", "demo"];

/// The commands of a project. Lists are empty where nothing says how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    pub build: Vec<Command>,
    pub test: Vec<Command>,
    pub lint: Vec<Command>,
}

/// One command line and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// `cargo test --workspace`
    pub line: String,
    /// The folder to run it in, relative to the project; empty for the project itself.
    pub folder: String,
    /// `package.json:7`
    pub evidence: String,
    /// What the project says that it does: a script, a recipe with those that it needs. Empty for a tool itself.
    pub definition: String,
}

impl Command {
    /// As one line for a shell that stands in the project: `cd web && npm test`.
    pub fn shell(&self) -> String {
        match self.folder.as_str() {
            "" => self.line.clone(),
            folder => format!("cd '{}' && {}", folder.replace('\'', r"'\''"), self.line),
        }
    }
}

/// What the files of a project say about building, testing and checking it, as much as is worth reading.
pub fn commands(tree: &Tree) -> Commands {
    let mut found = all_commands(tree);
    for list in [&mut found.build, &mut found.test, &mut found.lint] {
        list.truncate(MAX_COMMANDS);
    }
    found
}

/// All of them.
pub fn all_commands(tree: &Tree) -> Commands {
    let mut found = Commands::default();
    for folder in folders(tree) {
        let place = Place { tree, folder };
        cargo(&place, &mut found);
        node::add(&place, &mut found);
        python::add(&place, &mut found);
        go(&place, &mut found);
        jvm(&place, &mut found);
        recipes::add(&place, &mut found);
    }
    found
}

/// A folder that may hold a manifest.
struct Place<'a> {
    tree: &'a Tree,
    folder: String,
}

impl Place<'_> {
    fn path(&self, name: &str) -> String {
        if self.folder.is_empty() { name.to_string() } else { format!("{}/{name}", self.folder) }
    }

    /// Hidden files are not in the tree, so this asks the disk.
    fn has(&self, name: &str) -> bool {
        self.tree.root.join(self.path(name)).is_file()
    }

    /// From the disk: of a very large project not every file is in the tree.
    fn text(&self, name: &str) -> Option<String> {
        plain::text(&self.tree.root, Path::new(&self.path(name)), MAX_MANIFEST_BYTES)
    }

    fn command(&self, line: &str, name: &str, number: usize) -> Command {
        let evidence = format!("{}:{number}", self.path(name));
        Command { line: line.to_string(), folder: self.folder.clone(), evidence, definition: String::new() }
    }
}

/// The project itself, then folders with a manifest of a kind that the project itself lacks.
pub(crate) fn folders(tree: &Tree) -> Vec<String> {
    const MANIFESTS: &[&str] = &[
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
    ];
    let mut found = vec![String::new()];
    for file in tree.files.iter().filter(|file| MANIFESTS.contains(&file.name())) {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        let deep = folder.split('/').count() > MAX_DEPTH;
        let foreign = folder.split('/').any(|part| NOT_OURS.contains(&part));
        // A workspace's members are built with it.
        let member = workspace::holds(&tree.root, folder, name);
        if !deep && !foreign && !member && !found.iter().any(|known| known == folder) {
            found.push(folder.to_string());
        }
        if found.len() == MAX_FOLDERS {
            break;
        }
    }
    found
}

/// The number of the first line that holds `part`; 1 where none does.
fn line_of(text: &str, part: &str) -> usize {
    text.lines().position(|line| line.contains(part)).map_or(1, |at| at + 1)
}

fn cargo(place: &Place, found: &mut Commands) {
    let Some(text) = place.text("Cargo.toml") else { return };
    let at = line_of(&text, "[workspace]");
    let all = if text.contains("[workspace]") { " --workspace" } else { "" };
    let test = if place.has(".config/nextest.toml") { "cargo nextest run" } else { "cargo test" };
    found.build.push(place.command(&format!("cargo build{all}"), "Cargo.toml", at));
    found.test.push(place.command(&format!("{test}{all}"), "Cargo.toml", at));
    found.lint.push(place.command(&format!("cargo clippy{all} --all-targets"), "Cargo.toml", at));
    for name in ["rustfmt.toml", ".rustfmt.toml"].into_iter().filter(|name| place.has(name)) {
        found.lint.push(place.command("cargo fmt --all --check", name, 1));
    }
}

fn go(place: &Place, found: &mut Commands) {
    if place.text("go.mod").is_none() {
        return;
    }
    found.build.push(place.command("go build ./...", "go.mod", 1));
    found.test.push(place.command("go test ./...", "go.mod", 1));
    found.lint.push(place.command("go vet ./...", "go.mod", 1));
    for name in [".golangci.yml", ".golangci.yaml"].into_iter().filter(|name| place.has(name)) {
        found.lint.push(place.command("golangci-lint run", name, 1));
    }
}

fn jvm(place: &Place, found: &mut Commands) {
    if let Some(text) = place.text("pom.xml") {
        let tool = if place.has("mvnw") { "./mvnw" } else { "mvn" };
        found.build.push(place.command(&format!("{tool} -q -B compile"), "pom.xml", 1));
        // Not `-q`: how many tests ran is in what it prints.
        found.test.push(place.command(&format!("{tool} -B test"), "pom.xml", 1));
        if text.contains("maven-checkstyle-plugin") {
            let at = line_of(&text, "maven-checkstyle-plugin");
            found.lint.push(place.command(&format!("{tool} -q -B checkstyle:check"), "pom.xml", at));
        }
    }
    for name in ["build.gradle", "build.gradle.kts"] {
        if place.text(name).is_some() {
            let tool = if place.has("gradlew") { "./gradlew" } else { "gradle" };
            found.build.push(place.command(&format!("{tool} assemble"), name, 1));
            found.test.push(place.command(&format!("{tool} test"), name, 1));
            break;
        }
    }
}

#[cfg(test)]
mod tests;
