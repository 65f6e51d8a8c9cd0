//! Every source file of a project, read: in parallel, and only as much as time allows.
//!
//! Too many files are sampled evenly over the tree. The files are read in an order that is spread over it too, so
//! that what was read when time is up is again an even sample.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, Parser, Point};

use super::extract::extract;
use super::facts::FileFacts;
use super::grammar::{Grammars, canonical, unread_language};
use crate::walk::{File, Tree};

const MAX_PARSED: usize = 2_000;
const TIME: Duration = Duration::from_secs(10);
/// A file that takes longer is not written by people.
const TIME_PER_FILE: Duration = Duration::from_secs(1);
const THREADS: usize = 8;
/// Minified code has few, endless lines.
const MAX_MEAN_LINE: usize = 250;

/// All that was read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// By path.
    pub files: Vec<FileFacts>,
    /// Languages with their number of files, the most first.
    pub languages: Vec<(String, usize)>,
    /// Source files that were not read: too many, not text, or no time.
    pub left_out: usize,
    /// Source files that a tool wrote: nobody's habits, and nobody mends them.
    pub generated: usize,
    /// Code in languages that cannot be read here, with the number of files.
    pub unread: Vec<(String, usize)>,
}

/// Limits, so that tests can have smaller ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub files: usize,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { files: MAX_PARSED, time: TIME }
    }
}

/// Reads the source files of a project.
pub fn survey(tree: &Tree) -> Survey {
    survey_within(tree, Limits::default())
}

pub(crate) fn survey_within(tree: &Tree, limits: Limits) -> Survey {
    let source = |file: &&File| canonical(file.extension()).is_some();
    let all: Vec<File> = tree.files.iter().filter(source).cloned().collect();
    let count = all.len();
    let mut sampled = Tree { root: tree.root.clone(), files: all, left_out: 0 };
    sampled.sample(limits.files);
    let (mut files, generated) = read_all(&sampled, limits.time);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let left_out = count - files.len() - generated;
    let languages = counted(files.iter().map(|file| file.language));
    let unread = counted(tree.files.iter().filter_map(|file| unread_language(file.extension())));
    Survey { files, languages, left_out, generated, unread }
}

impl Survey {
    /// The share of the source files that was read.
    pub(crate) fn share(&self) -> f64 {
        let all = self.files.len() + self.left_out;
        if all == 0 { 1.0 } else { self.files.len() as f64 / all as f64 }
    }

    pub(crate) fn lines(&self) -> usize {
        self.files.iter().map(|file| file.lines).sum()
    }
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut counts: Vec<(String, usize)> =
        counts.into_iter().map(|(name, n)| (name.to_string(), n)).collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

/// What could be read, and how many files are generated.
fn read_all(tree: &Tree, time: Duration) -> (Vec<FileFacts>, usize) {
    let order = spread(tree.files.len());
    let deadline = Instant::now() + time;
    let next = AtomicUsize::new(0);
    let read = Mutex::new(Vec::new());
    let generated = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let work = || {
        let mut reader = Reader::default();
        let mut mine = Vec::new();
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if Instant::now() > deadline {
                break;
            }
            let file = &tree.files[*index];
            match tree.text(file) {
                Some(text) if is_generated(&text) => drop(generated.fetch_add(1, Ordering::Relaxed)),
                Some(text) => mine.extend(reader.read(file, text, deadline)),
                None => {}
            }
        }
        if let Ok(mut read) = read.lock() {
            read.append(&mut mine);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tree.files.len()) {
            // With fewer threads it takes longer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    (read.into_inner().unwrap_or_default(), generated.into_inner())
}

/// All indices, far ones first: every 16th, then those between.
fn spread(count: usize) -> Vec<usize> {
    let step = 16;
    (0..step).flat_map(|start| (start..count).step_by(step)).collect()
}

#[derive(Default)]
struct Reader {
    parser: Parser,
    grammars: Grammars,
}

impl Reader {
    fn read(&mut self, file: &File, text: String, deadline: Instant) -> Option<FileFacts> {
        let grammar = self.grammars.of(file.extension())?;
        self.parser.set_language(&grammar.syntax).ok()?;
        let until = deadline.min(Instant::now() + TIME_PER_FILE);
        let mut in_time = |_: &tree_sitter::ParseState| {
            if Instant::now() > until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut in_time);
        let bytes = text.as_bytes();
        let mut chunk = |at: usize, _: Point| bytes.get(at..).unwrap_or_default();
        let parsed = self.parser.parse_with_options(&mut chunk, None, Some(options));
        if parsed.is_none() {
            self.parser.reset();
        }
        Some(extract(&file.path, grammar, &parsed?, text))
    }
}

/// Written by a tool, or squeezed by one.
fn is_generated(text: &str) -> bool {
    let head: Vec<&str> = text.lines().take(8).collect();
    let says = |line: &&str| {
        let comment = line.trim_start().starts_with(['/', '#', '*']);
        comment
            && ["@generated", "DO NOT EDIT", "Code generated", "autogenerated"]
                .iter()
                .any(|mark| line.contains(mark))
    };
    let lines = text.lines().count().max(1);
    head.iter().any(says) || (text.len() > 20_000 && text.len() / lines > MAX_MEAN_LINE)
}

/// The facts of one text, as if it were a file.
#[cfg(test)]
pub(crate) fn facts_of(path: &str, text: &str) -> FileFacts {
    let file = File { path: path.to_string(), bytes: text.len() as u64 };
    let deadline = Instant::now() + TIME;
    Reader::default().read(&file, text.to_string(), deadline).expect("a path of a known language")
}
