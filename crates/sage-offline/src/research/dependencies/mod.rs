//! What the project depends on directly, and what of it can be read on this disk.
//!
//! Manifests say the names, lock files the versions, and the folders of the package tools hold the documents. What
//! is missing is left out: a package without a folder still has its name and where it is declared.

mod cargo;
mod go;
mod jvm;
mod node;
mod python;

use std::path::{Path, PathBuf};

use crate::plain;
use crate::research::library::{comments, is_changelog, prose};
use crate::research::places::{Places, children};
use crate::walk::Tree;

use prose::Piece;

/// Direct dependencies beyond these are not read.
const MAX_PACKAGES: usize = 250;
/// Manifests of a large workspace.
const MAX_MANIFESTS: usize = 60;
/// Of one document.
const MAX_BYTES: u64 = 128 * 1024;

/// A direct dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    /// Empty where nothing says it.
    pub version: String,
    /// `cargo`, `npm`, `python`, `go`, `jvm`
    pub ecosystem: &'static str,
    /// `Cargo.toml:12`
    pub declared: String,
    /// One line of its own manifest.
    pub description: String,
    pub(crate) description_path: String,
    pub(crate) description_line: usize,
    /// Switches that it can be built with.
    pub features: Vec<String>,
    /// Where it lies, and how that is shown to people.
    pub(crate) folder: Option<(PathBuf, String)>,
}

/// A file of a package that people were meant to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    folder: PathBuf,
    /// Its path in the folder.
    file: String,
    /// `clap-4.5.0/README.md`
    pub shown: String,
    pub changelog: bool,
}

impl Package {
    /// `clap 4.5.0`
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_string()
    }

    pub(crate) fn documents(&self, changelogs: bool) -> Vec<Document> {
        let Some((folder, shown)) = &self.folder else { return Vec::new() };
        let mut found = Vec::new();
        for path in children(folder) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let lower = name.to_lowercase();
            let prose = [".md", ".markdown", ".rst", ".txt"].iter().any(|end| lower.ends_with(end));
            let changelog = is_changelog(&lower) && (prose || !lower.contains('.'));
            let readme = lower.starts_with("readme") || lower == "metadata" || lower == "doc.go";
            if (changelog && changelogs) || readme {
                found.push(Document {
                    folder: folder.clone(),
                    file: name.to_string(),
                    shown: format!("{shown}/{name}"),
                    changelog,
                });
            }
        }
        let file = "src/lib.rs".to_string();
        if folder.join(&file).is_file() {
            let shown = format!("{shown}/{file}");
            found.push(Document { folder: folder.clone(), file, shown, changelog: false });
        }
        found
    }
}

impl Document {
    pub fn pieces(&self) -> Option<Vec<Piece>> {
        let text = head(&self.folder, &self.file)?;
        Some(match Path::new(&self.file).extension().and_then(|end| end.to_str()) {
            Some("rs") => prose::pieces(&crate_doc(&text)),
            Some("go") => comments::comments(&text, "go"),
            _ => prose::pieces(&text),
        })
    }
}

/// The lines of `//!`, where they are; others are blank, so that numbers stay.
fn crate_doc(text: &str) -> String {
    let said = text
        .lines()
        .map(|line| line.strip_prefix("//!").map_or("", |doc| doc.strip_prefix(' ').unwrap_or(doc)));
    said.collect::<Vec<_>>().join("\n")
}

/// The beginning of a file of somebody else's package. A link in the package does not lead out of it.
pub(crate) fn head(folder: &Path, file: &str) -> Option<String> {
    let bytes = plain::read(plain::open_in(folder, Path::new(file))?, MAX_BYTES)?;
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.contains('\0'))
}

/// All direct dependencies, by ecosystem and name.
pub fn packages(tree: &Tree, places: &Places) -> Vec<Package> {
    let mut found = cargo::packages(tree, places);
    found.extend(node::packages(tree));
    found.extend(python::packages(tree, places));
    found.extend(go::packages(tree, places));
    found.extend(jvm::packages(tree));
    found.truncate(MAX_PACKAGES);
    found
}

/// Manifests of this name with their texts, those nearest to the root first.
fn manifests(tree: &Tree, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut files: Vec<_> = tree.files.iter().filter(|file| wanted(file.name())).collect();
    files.sort_by_key(|file| file.path.matches('/').count());
    let texts =
        files.into_iter().take(MAX_MANIFESTS).filter_map(|file| Some((file.path.clone(), tree.text(file)?)));
    texts.collect()
}

/// The number of the first line that begins like this, without regard to quotes and space; 1 where none does.
fn line_starting(text: &str, names: &[String]) -> usize {
    let bare = |line: &str| line.trim_start().trim_start_matches(['"', '\'']).to_string();
    let found = text.lines().position(|line| names.iter().any(|name| bare(line).starts_with(name)));
    found.map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests;
