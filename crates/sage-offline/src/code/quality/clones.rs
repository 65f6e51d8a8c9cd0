//! Copies: runs of lines in two functions that are the same but for names of variables and literals.
//!
//! Windows of a few lines are hashed; two that meet are grown as far as they stay the same.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::facts::{FileFacts, ShapeLine};
use super::super::issue::{Issue, Severity};
use super::super::look::Look;

const WINDOW: usize = 6;
const LEAST_TOKENS: usize = 60;
/// The same line over and over is a table, not a copy.
const LEAST_DIFFERENT: usize = 5;
/// What is everywhere is how things are written here.
const MAX_PLACES: usize = 12;

type Place = (usize, usize);

struct Copy {
    first: Place,
    second: Place,
    length: usize,
    tokens: usize,
}

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let files: Vec<&FileFacts> = look.products().collect();
    let mut copies = copies(&files);
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.tokens));
    copies.iter().take(15).map(|copy| issue(&files, copy)).collect()
}

fn issue(files: &[&FileFacts], copy: &Copy) -> Issue {
    let span = |(file, at): Place| {
        let lines = &files[file].shape[at..at + copy.length];
        let (first, last) = (lines[0].line, lines[copy.length - 1].line);
        (files[file], first as usize, last as usize, files[file].function(Some(lines[0].function)))
    };
    let (a, b) = (span(copy.first), span(copy.second));
    let name = |side: &(&FileFacts, usize, usize, Option<&super::super::facts::Function>)| {
        side.3.map_or(side.0.path.clone(), |function| function.full_name())
    };
    let lines = a.2 - a.1 + 1;
    Issue {
        subject: a.0.path.clone(),
        weakness: "duplication".into(),
        title: format!("`{}` and `{}` share {lines} lines", name(&a), name(&b)),
        detail: format!(
            "{}:{}-{} and {}:{}-{} are the same but for names and literals ({} tokens).",
            a.0.path, a.1, a.2, b.0.path, b.1, b.2, copy.tokens
        ),
        severity: if copy.tokens > 200 { Severity::Medium } else { Severity::Low },
        confidence: 0.85,
        evidence: vec![a.0.at(a.1), b.0.at(b.1)],
    }
}

fn copies(files: &[&FileFacts]) -> Vec<Copy> {
    let mut windows: HashMap<u64, Vec<Place>> = HashMap::new();
    for (file, facts) in files.iter().enumerate() {
        for at in 0..facts.shape.len().saturating_sub(WINDOW - 1) {
            if let Some(hash) = window(&facts.shape[at..at + WINDOW]) {
                windows.entry(hash).or_default().push((file, at));
            }
        }
    }
    windows.retain(|_, places| places.len() > 1 && places.len() <= MAX_PLACES);
    let mut starts: Vec<(Place, Place)> = Vec::new();
    for places in windows.values() {
        for (index, first) in places.iter().enumerate() {
            starts.extend(places[index + 1..].iter().map(|second| (*first, *second)));
        }
    }
    starts.sort_unstable();
    let mut covered: HashSet<Place> = HashSet::new();
    let mut found = Vec::new();
    for (first, second) in starts {
        if covered.contains(&second) {
            continue;
        }
        let length = grown(files, first, second);
        let lines = &files[first.0].shape[first.1..first.1 + length];
        let tokens = lines.iter().map(|line| usize::from(line.tokens)).sum();
        let different: HashSet<u64> = lines.iter().map(|line| line.hash).collect();
        if tokens >= LEAST_TOKENS && different.len() >= LEAST_DIFFERENT {
            covered.extend((0..length).map(|offset| (second.0, second.1 + offset)));
            found.push(Copy { first, second, length, tokens });
        }
    }
    found
}

/// The hash of lines of one function; nothing if they cross into another.
fn window(lines: &[ShapeLine]) -> Option<u64> {
    if lines.iter().any(|line| line.function != lines[0].function) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    lines.iter().for_each(|line| line.hash.hash(&mut hasher));
    Some(hasher.finish())
}

fn grown(files: &[&FileFacts], first: Place, second: Place) -> usize {
    let (a, b) = (&files[first.0].shape[first.1..], &files[second.0].shape[second.1..]);
    let same = a
        .iter()
        .zip(b)
        .take_while(|(x, y)| x.hash == y.hash && x.function == a[0].function && y.function == b[0].function);
    // Two parts of one function must not run into each other.
    let most = if first.0 == second.0 { second.1.saturating_sub(first.1) } else { usize::MAX };
    same.count().min(most).max(1)
}
