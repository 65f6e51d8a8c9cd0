//! Commits near a problem, and the files that fixes keep coming back to.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Claim, Finding};
use crate::research::library::excerpt::cut;
use crate::research::library::{is_changelog, rounded};
use crate::research::rank::{Counted, Counter, Query, scores};

use super::Commit;

const MAX_NEAR: usize = 10;
const MAX_REVERTS: usize = 4;
const MAX_HOT: usize = 6;
const MAX_PAIRS: usize = 5;
/// Rarer than this is by chance.
const LEAST_TIMES: usize = 3;
/// What is not a fix helps less with a bug.
const NOT_A_FIX: f64 = 0.6;
/// Files that change with everything.
const EVERYWHERE: &[&str] =
    &["Cargo.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "poetry.lock", "uv.lock"];

/// What history says about a problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Similar {
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    /// How many commits are fixes, and how many of all are near.
    pub fixes: usize,
    pub near: usize,
}

pub(crate) fn similar(commits: &[Commit], query: &Query) -> Similar {
    let near = near(commits, query);
    let fixes: Vec<&Commit> = commits.iter().filter(|commit| commit.is_fix()).collect();
    let mut found = Similar { fixes: fixes.len(), near: near.len(), ..Similar::default() };
    found.findings.extend(near.iter().take(MAX_NEAR).map(|(commit, relevance)| told(commit, *relevance)));
    let shown: BTreeSet<&str> = near.iter().take(MAX_NEAR).map(|(commit, _)| commit.id.as_str()).collect();
    let reverts = commits.iter().filter(|commit| commit.is_revert() && !shown.contains(commit.id.as_str()));
    found.findings.extend(reverts.take(MAX_REVERTS).map(|commit| told(commit, 0.1)));
    let concerned: BTreeSet<&str> =
        near.iter().take(MAX_NEAR).flat_map(|(commit, _)| commit.files.iter().map(String::as_str)).collect();
    hot(commits, &fixes, &concerned, &mut found);
    together(commits, &concerned, &mut found);
    found.findings.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    found
}

/// Commits with words of the title in their message or paths.
fn near<'a>(commits: &'a [Commit], query: &Query) -> Vec<(&'a Commit, f64)> {
    let mut counter = Counter::new(query);
    let count = |commit: &Commit| {
        let paths = commit.files.join(" ");
        // The subject counts twice: it is what the commit is about.
        counter.count(&[&commit.subject, &commit.subject, &commit.body, &paths])
    };
    let counted: Vec<Counted> = commits.iter().map(count).collect();
    let scores = scores(&counted);
    let best = scores.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut found = Vec::new();
    for ((commit, counted), score) in commits.iter().zip(&counted).zip(scores) {
        let fix = if commit.is_fix() { 1.0 } else { NOT_A_FIX };
        let relevance = score / best * counted.share() * fix;
        if relevance >= 0.1 {
            found.push((commit, relevance));
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

fn told(commit: &Commit, relevance: f64) -> Finding {
    let sort = match () {
        () if commit.is_revert() => "takes something back",
        () if commit.is_fix() => "a fix",
        () => "a change",
    };
    let mut detail = format!("{sort} of {} by {}", commit.date, commit.author);
    if let Some(more) = commit.body.split("\n\n").next().filter(|body| !body.is_empty()) {
        detail.push_str(&format!(": {}", cut(&more.replace('\n', " "), 240)));
    }
    let shown: Vec<&str> = commit.files.iter().take(5).map(String::as_str).collect();
    if !shown.is_empty() {
        let more = commit.files.len() - shown.len();
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        detail.push_str(&format!(". Files: {}{rest}", shown.join(", ")));
    }
    let mut evidence = vec![commit.id.clone()];
    evidence.extend(shown.into_iter().map(str::to_string));
    let confidence = if commit.is_fix() { 0.9 } else { 0.6 };
    let (title, relevance) = (cut(&commit.subject, 120), rounded(relevance));
    Finding { title, detail, relevance, evidence, kind: "history".into(), confidence }
}

/// Files that fixes touch again and again.
fn hot(commits: &[Commit], fixes: &[&Commit], concerned: &BTreeSet<&str>, found: &mut Similar) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for file in fixes.iter().flat_map(|commit| &commit.files).filter(|file| is_source(file)) {
        *times.entry(file).or_default() += 1;
    }
    let mut hot: Vec<(&str, usize)> = times.into_iter().filter(|(_, times)| *times >= LEAST_TIMES).collect();
    hot.sort_by_key(|(file, times)| (!concerned.contains(file), std::cmp::Reverse(*times)));
    for (file, times) in hot.into_iter().take(MAX_HOT) {
        let touching = || commits.iter().filter(|commit| commit.files.iter().any(|other| other == file));
        let last: Vec<String> = touching()
            .take(3)
            .map(|commit| format!("{} {} ({})", commit.id, cut(&commit.subject, 60), commit.author))
            .collect();
        let share = times as f64 / fixes.len().max(1) as f64;
        let evidence = vec![file.to_string()];
        found.findings.push(Finding {
            title: format!("{file} was touched by {times} of {} fixes", fixes.len()),
            detail: format!("{} commits in all; the last: {}", touching().count(), last.join("; ")),
            relevance: if concerned.contains(file) { 0.5 } else { 0.15 },
            evidence: evidence.clone(),
            kind: "history".into(),
            confidence: rounded(share),
        });
        let (subject, predicate) = (file.to_string(), "fixes".to_string());
        found.claims.push(Claim { subject, predicate, value: times.into(), evidence, confidence: 0.9 });
    }
}

/// Pairs of files of which one seldom changes without the other.
fn together(commits: &[Commit], concerned: &BTreeSet<&str>, found: &mut Similar) {
    let mut pairs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut alone: BTreeMap<&str, usize> = BTreeMap::new();
    for commit in commits.iter().filter(|commit| commit.files.len() <= 12) {
        let files: Vec<&str> =
            commit.files.iter().map(String::as_str).filter(|file| is_source(file)).collect();
        for (at, file) in files.iter().enumerate() {
            *alone.entry(file).or_default() += 1;
            for other in
                files[at + 1..].iter().filter(|other| concerned.contains(*other) || concerned.contains(file))
            {
                *pairs.entry((file.min(other), file.max(other))).or_default() += 1;
            }
        }
    }
    let share = |(a, b): (&str, &str), times: usize| times as f64 / alone[a].min(alone[b]).max(1) as f64;
    let mut close: Vec<((&str, &str), usize)> = pairs
        .into_iter()
        .filter(|(pair, times)| *times >= LEAST_TIMES && share(*pair, *times) >= 0.5)
        .collect();
    close.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    for ((a, b), times) in close.into_iter().take(MAX_PAIRS) {
        found.findings.push(Finding {
            title: format!("{a} and {b} change together"),
            detail: format!("{times} commits changed both: a fix in one may need one in the other"),
            relevance: 0.4,
            evidence: vec![a.to_string(), b.to_string()],
            kind: "history".into(),
            confidence: rounded(share((a, b), times)),
        });
    }
}

/// Not a lock file or a document, which move with everything.
fn is_source(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let document = [".md", ".rst", ".txt", ".adoc"].iter().any(|end| name.ends_with(end));
    !EVERYWHERE.contains(&name) && !document && !is_changelog(name)
}
