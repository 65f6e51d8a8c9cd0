//! What can be read about a feature on this disk: passages of the project's documents, of its comments, and of the
//! documents of its dependencies, ranked by the words of its title.
//!
//! ```text
//!   README, docs/, CHANGELOG ──┐
//!   comments and docstrings  ──┼─▶ passages ──▶ counted against the title ──▶ the best, as findings
//!   dependencies' documents  ──┘
//! ```

pub(crate) mod comments;
pub(crate) mod excerpt;
pub(crate) mod prose;

use crate::finding::Finding;
use crate::research::dependencies::Package;
use crate::research::rank::{Counted, Counter, Query, scores};
use crate::walk::{File, Tree};

use excerpt::excerpt;
use prose::Piece;

/// What a large project has beyond these says little more.
const MAX_DOCUMENTS: usize = 400;
const MAX_CODE_FILES: usize = 1_500;
/// Of all documents, and of all code.
const MAX_BYTES: u64 = 12 * 1024 * 1024;
const MAX_PASSAGES: usize = 40_000;
/// Of one file in one answer, so that one long document does not hide the others.
const MAX_PER_PATH: usize = 3;
/// Less than this is by chance.
const LEAST_RELEVANCE: f64 = 0.1;
/// Which part of its relevance a passage owes to what is shown of it.
const SHOWN_PART: f64 = 0.7;
/// Of a passage shown.
const SHOWN: usize = 400;

/// Where a passage is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Document,
    Changelog,
    Comment,
    /// Of a dependency.
    Foreign,
    ForeignChangelog,
}

impl Origin {
    /// What it says about the project as it is: documents are written for that, comments are about details.
    fn weight(self) -> f64 {
        match self {
            Origin::Document => 1.0,
            Origin::Foreign => 0.9,
            Origin::Comment => 0.8,
            Origin::Changelog | Origin::ForeignChangelog => 0.7,
        }
    }

    pub fn is_foreign(self) -> bool {
        matches!(self, Origin::Foreign | Origin::ForeignChangelog)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Passage {
    /// `README.md: Install > From source`
    pub title: String,
    pub text: String,
    pub path: String,
    pub line: usize,
    pub origin: Origin,
    counted: Counted,
    /// The share of the title's terms in what is shown; what only a code block has counts for less.
    share: f64,
}

impl Passage {
    pub fn evidence(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hit<'a> {
    pub passage: &'a Passage,
    /// The share of the title's terms that it has, times its score beside the best one's.
    pub relevance: f64,
}

/// All passages, counted against one title.
#[derive(Debug)]
pub(crate) struct Library<'q> {
    pub passages: Vec<Passage>,
    /// Documents of the project, files with code, documents of dependencies.
    pub documents: usize,
    pub code_files: usize,
    pub foreign: usize,
    query: &'q Query,
    counter: Counter<'q>,
}

impl<'q> Library<'q> {
    pub fn new(query: &'q Query) -> Library<'q> {
        let counter = Counter::new(query);
        Library { passages: Vec::new(), documents: 0, code_files: 0, foreign: 0, query, counter }
    }

    /// README, docs, changelog, decisions: what the project wrote for people.
    pub fn add_documents(&mut self, tree: &Tree) {
        for file in within(documents(tree).into_iter().take(MAX_DOCUMENTS)) {
            let Some(text) = tree.text(file) else { continue };
            let origin = if is_changelog(file.name()) { Origin::Changelog } else { Origin::Document };
            self.documents += 1;
            self.add(&file.path, &file.path, origin, prose::pieces(&text));
        }
    }

    /// Comments and docstrings; not those of tests.
    pub fn add_comments(&mut self, tree: &Tree) {
        let code =
            tree.files.iter().filter(|file| comments::is_code(file.extension()) && !is_test(&file.path));
        for file in within(code.take(MAX_CODE_FILES)) {
            let Some(text) = tree.text(file) else { continue };
            self.code_files += 1;
            self.add(&file.path, &file.path, Origin::Comment, comments::comments(&text, file.extension()));
        }
    }

    pub fn add_packages(&mut self, packages: &[Package], changelogs: bool) {
        for package in packages {
            let name = package.title();
            for document in package.documents(changelogs) {
                let Some(pieces) = document.pieces() else { continue };
                self.foreign += 1;
                let origin = if document.changelog { Origin::ForeignChangelog } else { Origin::Foreign };
                self.add(&document.shown, &name, origin, pieces);
            }
            if !package.description.is_empty() {
                let text = package.description.clone();
                let piece = Piece { text, line: package.description_line, ..Piece::default() };
                self.add(&package.description_path, &name, Origin::Foreign, vec![piece]);
            }
        }
    }

    fn add(&mut self, path: &str, title: &str, origin: Origin, pieces: Vec<Piece>) {
        for piece in pieces {
            if self.passages.len() == MAX_PASSAGES {
                return;
            }
            let heads = piece.headings.join(" > ");
            let shown = self.counter.count(&[title, &heads, &piece.text]);
            let counted = shown.clone() + self.counter.count(&[&piece.code]);
            let share = SHOWN_PART * shown.share() + (1.0 - SHOWN_PART) * counted.share();
            let title = if heads.is_empty() { title.to_string() } else { format!("{title}: {heads}") };
            let (text, line) = (piece.text, piece.line);
            self.passages.push(Passage { title, text, path: path.to_string(), line, origin, counted, share });
        }
    }

    /// The best passages that `wanted` takes, at most `most`; scores compare all of those.
    pub fn search(&self, most: usize, wanted: impl Fn(&Passage) -> bool) -> Vec<Hit<'_>> {
        let taken: Vec<&Passage> = self.passages.iter().filter(|passage| wanted(passage)).collect();
        let counted: Vec<Counted> = taken.iter().map(|passage| passage.counted.clone()).collect();
        let scores = scores(&counted);
        let best = scores.iter().copied().fold(0.0, f64::max);
        let mut hits = Vec::new();
        for (passage, score) in taken.into_iter().zip(scores) {
            let relevance = score / best.max(f64::MIN_POSITIVE) * passage.share * passage.origin.weight();
            if relevance >= LEAST_RELEVANCE && passage.counted.meets() {
                hits.push(Hit { passage, relevance });
            }
        }
        // Equal ones stay in the order of their paths.
        hits.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
        let mut kept: Vec<Hit> = Vec::new();
        for hit in hits {
            let same = |other: &&Hit| other.passage.path == hit.passage.path;
            let repeats = kept.iter().any(|other| other.passage.text == hit.passage.text);
            if kept.len() < most && !repeats && kept.iter().filter(same).count() < MAX_PER_PATH {
                kept.push(hit);
            }
        }
        kept
    }

    /// A hit as people see it.
    pub fn finding(&self, hit: &Hit) -> Finding {
        let passage = hit.passage;
        Finding {
            title: passage.title.clone(),
            detail: excerpt(&passage.text, SHOWN, self.query),
            relevance: rounded(hit.relevance),
            evidence: vec![passage.evidence()],
            kind: if passage.origin.is_foreign() { "dependency" } else { "document" }.to_string(),
            confidence: rounded(passage.share),
        }
    }

    /// What was searched, for `method`.
    pub fn searched(&self) -> String {
        let mut parts = Vec::new();
        if self.documents > 0 {
            parts.push(format!("{} documents", self.documents));
        }
        if self.code_files > 0 {
            parts.push(format!("comments of {} code files", self.code_files));
        }
        if self.foreign > 0 {
            parts.push(format!("{} documents of dependencies", self.foreign));
        }
        if parts.is_empty() {
            parts.push("no documents".to_string());
        }
        format!("{} as {} passages", parts.join(", "), self.passages.len())
    }
}

/// The first files that are together not too much to read.
pub(crate) fn within<'a>(files: impl Iterator<Item = &'a File>) -> impl Iterator<Item = &'a File> {
    let mut total = 0;
    files.take_while(move |file| {
        total += file.bytes;
        total <= MAX_BYTES
    })
}

pub(crate) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The project's documents, the README first, then those nearest to the root.
pub(crate) fn documents(tree: &Tree) -> Vec<&File> {
    let mut found: Vec<&File> = tree.files.iter().filter(|file| is_document(file)).collect();
    let depth = |file: &File| file.path.matches('/').count();
    found.sort_by_key(|file| (!file.path.to_lowercase().starts_with("readme"), depth(file)));
    found
}

fn is_document(file: &File) -> bool {
    let name = file.name().to_lowercase();
    let stem = name.split('.').next().unwrap_or(&name);
    let legal = ["license", "licence", "copying", "notice", "code_of_conduct"];
    let data = ["requirements", "robots", "cmakelists", "constraints"];
    if legal.iter().any(|start| stem.starts_with(start)) || data.iter().any(|start| stem.starts_with(start)) {
        return false;
    }
    let aside = file
        .path
        .split('/')
        .any(|part| ["fixtures", "testdata", "snapshots", "__snapshots__"].contains(&part));
    let known = ["readme", "changelog", "contributing", "news", "history", "architecture"];
    let bare = !name.contains('.') && known.contains(&name.as_str());
    !aside && (bare || ["md", "markdown", "mdx", "rst", "txt", "adoc"].contains(&file.extension()))
}

pub(crate) fn is_changelog(name: &str) -> bool {
    let name = name.to_lowercase();
    ["changelog", "changes", "history", "news", "releases"].iter().any(|start| name.starts_with(start))
}

/// Whether a path is that of a test.
pub(crate) fn is_test(path: &str) -> bool {
    let folder =
        path.split('/').any(|part| ["tests", "test", "__tests__", "testdata", "fixtures"].contains(&part));
    let name = path.rsplit('/').next().unwrap_or(path);
    let marks = [".test.", ".spec.", "_test.", "-test."];
    let whole = ["tests", "test"].contains(&name.split('.').next().unwrap_or(name));
    folder || whole || name.starts_with("test_") || marks.iter().any(|mark| name.contains(mark))
}
