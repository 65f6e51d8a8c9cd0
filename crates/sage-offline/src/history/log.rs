//! Commits as git tells them.

use std::path::Path;

use crate::git::{Absent, git};

/// Older ones say little about the code as it is.
const MAX_COMMITS: &str = "3000";
/// Commits with more files are moves and formatting, not changes that belong together.
const MAX_FILES: usize = 60;

/// One commit, without merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    /// As short as git makes it.
    pub id: String,
    pub author: String,
    /// `2026-02-01`
    pub date: String,
    pub subject: String,
    pub body: String,
    /// Relative to the project; empty where there are too many to mean anything.
    pub files: Vec<String>,
}

impl Commit {
    /// Whether it says that it mends something.
    pub fn is_fix(&self) -> bool {
        let marks = [
            "fix",
            "fixes",
            "fixed",
            "fixing",
            "bug",
            "bugfix",
            "hotfix",
            "regression",
            "crash",
            "panic",
            "repair",
        ];
        let lower = self.subject.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).any(|word| marks.contains(&word)) || self.is_revert()
    }

    pub fn is_revert(&self) -> bool {
        let lower = self.subject.to_lowercase();
        lower.starts_with("revert") || lower.contains(": revert") || self.body.contains("This reverts commit")
    }
}

/// The newest first.
pub(crate) fn commits(project: &Path) -> Result<Vec<Commit>, Absent> {
    let text = git(
        project,
        &[
            "log",
            "--no-color",
            "--no-merges",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-renames",
            "--relative",
            "--name-only",
            "-n",
            MAX_COMMITS,
            "--format=%x1e%h%x1f%an%x1f%as%x1f%s%x1f%b%x1f",
            "--",
            ".",
        ],
    )?;
    let found: Vec<Commit> = text.split('\u{1e}').filter_map(commit).collect();
    if found.is_empty() { Err(Absent::NoHistory) } else { Ok(found) }
}

fn commit(text: &str) -> Option<Commit> {
    let parts: Vec<&str> = text.splitn(6, '\u{1f}').collect();
    let [id, author, date, subject, body, files] = parts[..] else { return None };
    let mut files: Vec<String> =
        files.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect();
    if files.len() > MAX_FILES {
        files.clear();
    }
    Some(Commit {
        id: id.to_string(),
        author: without_address(author),
        date: date.to_string(),
        subject: without_address(subject),
        body: said(body),
        files,
    })
}

/// A message without its trailers, which hold addresses.
fn said(body: &str) -> String {
    let trailer = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_lowercase();
        !(name.ends_with("-by") || line.contains('@'))
    };
    body.lines().filter(trailer).collect::<Vec<_>>().join("\n").trim().to_string()
}

/// People put addresses where names belong.
fn without_address(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('@') {
        Some((name, domain)) if domain.contains('.') => name.trim_start_matches(['<', '(']),
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}
