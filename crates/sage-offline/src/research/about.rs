//! What the project says that it is: its name, its one line, the beginning of its README, its users, its words.

use serde_json::Value;

use crate::finding::Finding;
use crate::walk::Tree;

use super::library::excerpt::{cut, sentences};
use super::library::{documents, is_changelog, prose, rounded};
use super::rank::Query;

const MAX_USERS: usize = 5;
const MAX_WORDS: usize = 20;

/// A statement of a document with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub text: String,
    pub evidence: String,
}

/// The project in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub name: String,
    /// From a manifest.
    pub description: Option<Said>,
    /// The first real paragraph of the README.
    pub opening: Option<Said>,
    /// Sentences about who uses it.
    pub users: Vec<Said>,
    /// Word and meaning.
    pub words: Vec<(String, Said)>,
}

pub(crate) fn about(tree: &Tree) -> About {
    let folder = tree.root.file_name().and_then(|name| name.to_str()).unwrap_or("the project");
    let mut about = About { name: folder.to_string(), ..About::default() };
    manifest(tree, &mut about);
    for file in documents(tree).into_iter().take(100) {
        let Some(text) = tree.text(file) else { continue };
        let pieces = prose::points(&text);
        if about.opening.is_none() && file.path.to_lowercase().starts_with("readme") {
            if let Some(title) = pieces.first().and_then(|piece| piece.headings.first()) {
                about.name = title.split([':', '(']).next().unwrap_or(title).trim().to_string();
            }
            let first = pieces.iter().find(|piece| piece.text.split_whitespace().count() >= 6);
            about.opening = first.map(|piece| said(&cut(&piece.text, 400), &file.path, piece.line));
        }
        // What changed once, and rules for contributors, are not about users.
        if is_changelog(file.name()) {
            continue;
        }
        for piece in &pieces {
            users(&file.path, piece, &mut about.users);
            words(&file.path, piece, &mut about.words);
        }
    }
    about
}

fn said(text: &str, path: &str, line: usize) -> Said {
    Said { text: text.to_string(), evidence: format!("{path}:{line}") }
}

/// Name and description of `Cargo.toml`, `package.json` or `pyproject.toml`.
fn manifest(tree: &Tree, about: &mut About) {
    for path in ["Cargo.toml", "package.json", "pyproject.toml"] {
        let Some(text) = tree.find(path).and_then(|file| tree.text(file)) else { continue };
        let parsed: Option<Value> = match path {
            "package.json" => serde_json::from_str(&text).ok(),
            _ => text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok()),
        };
        let Some(parsed) = parsed else { continue };
        let places = ["", "/package", "/project", "/tool/poetry", "/workspace/package"];
        let field = |name: &str| {
            places.iter().find_map(|place| parsed.pointer(&format!("{place}/{name}")).and_then(Value::as_str))
        };
        if let Some(name) = field("name") {
            about.name = name.to_string();
        }
        if let Some(description) = field("description").filter(|text| !text.is_empty()) {
            let line = text.lines().position(|line| line.contains("description")).map_or(1, |at| at + 1);
            about.description = about.description.take().or(Some(said(description, path, line)));
        }
    }
}

/// Sentences that name the people who use it.
fn users(path: &str, piece: &prose::Piece, found: &mut Vec<Said>) {
    const PEOPLE: &[&str] = &[
        "users",
        "developers",
        "teams",
        "customers",
        "people who",
        "audience",
        "anyone who",
        "engineers",
        "operators",
        "administrators",
        "clients who",
    ];
    const FOR: &[&str] =
        &["for ", "who ", "helps ", "lets ", "want ", "need ", "allows ", "aimed ", "designed "];
    for sentence in sentences(&piece.text) {
        let lower = sentence.to_lowercase();
        let people = PEOPLE.iter().any(|word| contains_word(&lower, word))
            && FOR.iter().any(|word| lower.contains(word));
        if people && found.len() < MAX_USERS {
            found.push(said(&cut(sentence.trim(), 240), path, piece.line));
        }
    }
}

fn contains_word(text: &str, word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(word)
        .any(|(at, _)| edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next()))
}

/// Points and rows of a section on words: `Order: what a customer wants`.
fn words(path: &str, piece: &prose::Piece, found: &mut Vec<(String, Said)>) {
    let heading = piece.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    let glossary = ["glossary", "terminology", "vocabulary", "concepts", "definitions", "terms"];
    if !glossary.iter().any(|word| contains_word(&heading, word)) || found.len() >= MAX_WORDS {
        return;
    }
    let split = [" \u{2013} ", ": ", " - ", " \u{2014} "].iter().find_map(|mark| piece.text.split_once(mark));
    if let Some((word, meaning)) = split.filter(|(word, _)| word.split_whitespace().count() <= 4) {
        found.push((word.trim_matches('`').to_string(), said(&cut(meaning.trim(), 240), path, piece.line)));
    }
}

impl About {
    /// The project as findings: what it is, who uses it, words that the title uses.
    pub fn findings(&self, query: &Query) -> Vec<Finding> {
        let finding = |title: String, said: &Said, base: f64, confidence: f64| Finding {
            title,
            detail: said.text.clone(),
            relevance: rounded(base + (1.0 - base) * 0.6 * query.share(&said.text)),
            evidence: vec![said.evidence.clone()],
            kind: "document".into(),
            confidence,
        };
        let mut found = Vec::new();
        let one_line = self.description.as_ref().or(self.opening.as_ref());
        found.extend(one_line.map(|said| finding(format!("What {} is", self.name), said, 0.4, 0.9)));
        if let (Some(_), Some(opening)) = (&self.description, &self.opening) {
            found.push(finding(format!("How {} introduces itself", self.name), opening, 0.35, 0.9));
        }
        found.extend(self.users.iter().map(|said| finding("Who uses it".into(), said, 0.3, 0.5)));
        for (word, said) in &self.words {
            let share = query.share(word).max(query.share(&said.text) / 2.0);
            if share > 0.0 {
                found.push(finding(format!("What `{word}` means here"), said, 0.2 + 0.3 * share, 0.9));
            }
        }
        found
    }
}
