//! Where programs leave their errors: logs and reports of tests, ignored by git or not. Only the end of a long one
//! is read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::plain;
use crate::research::children;

/// Of one file, from its end.
const MAX_BYTES: u64 = 512 * 1024;
const MAX_TOTAL: u64 = 8 * 1024 * 1024;
const MAX_FILES: usize = 200;
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 6;

/// What kind of text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Log,
    Junit,
    /// Pytest's list of what failed last.
    LastFailed,
}

/// The end of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// Relative to the project.
    pub path: String,
    pub sort: Sort,
    pub text: String,
    /// The number of the first line of `text`.
    pub first_line: usize,
}

pub(super) fn files(root: &Path) -> Vec<Left> {
    let mut paths = Vec::new();
    let mut entries = 0;
    collect(root, 0, &mut entries, &mut paths);
    paths.sort();
    let mut found = Vec::new();
    let mut total = 0;
    for path in paths.into_iter().take(MAX_FILES) {
        let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        let Some(sort) = sort(relative) else { continue };
        if let Some((text, first_line)) = tail(&path).filter(|_| total < MAX_TOTAL) {
            total += text.len() as u64;
            found.push(Left { path: relative.to_string(), sort, text, first_line });
        }
    }
    found
}

fn collect(folder: &Path, depth: usize, entries: &mut usize, paths: &mut Vec<PathBuf>) {
    for path in children(folder) {
        *entries += 1;
        let kind = path.symlink_metadata().map(|metadata| metadata.file_type());
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if *entries > MAX_ENTRIES || paths.len() > MAX_FILES {
            return;
        }
        match kind {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && is_searched(folder, name) => {
                collect(&path, depth + 1, entries, paths);
            }
            Ok(kind) if kind.is_file() && path.to_str().and_then(sort).is_some() => paths.push(path),
            _ => {}
        }
    }
}

/// Of what a build made, only reports.
fn is_searched(folder: &Path, name: &str) -> bool {
    let parent = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match parent {
        "target" => return ["surefire-reports", "failsafe-reports", "nextest"].contains(&name),
        "build" => return ["test-results", "reports", "logs"].contains(&name),
        ".pytest_cache" => return name == "v",
        _ => {}
    }
    let hidden = name.starts_with('.') && name != ".pytest_cache";
    !hidden && !["node_modules", "vendor", "site-packages", "venv", "__pycache__"].contains(&name)
}

fn sort(path: &str) -> Option<Sort> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = name.to_lowercase();
    let xml = lower.ends_with(".xml") && (lower.starts_with("test-") || lower.starts_with("junit"));
    let in_logs = folder.split('/').any(|part| part == "logs" || part == "log");
    let plain =
        lower.ends_with(".txt") || lower.ends_with(".out") || lower.ends_with(".err") || !lower.contains('.');
    let output = lower.starts_with("test-output") || lower.starts_with("test_output");
    match () {
        () if xml => Some(Sort::Junit),
        () if path.ends_with(".pytest_cache/v/cache/lastfailed") => Some(Sort::LastFailed),
        () if lower.ends_with(".log") || (in_logs && plain) || (output && plain) => Some(Sort::Log),
        () => None,
    }
}

/// The last part of a file, from the start of a line, with that line's number.
fn tail(path: &Path) -> Option<(String, usize)> {
    let mut file = plain::open(path)?;
    let length = file.metadata().ok()?.len();
    let skipped = length.saturating_sub(MAX_BYTES);
    let mut first_line = 1;
    if skipped > 0 {
        first_line += newlines(&mut file, skipped)?;
        file.seek(SeekFrom::Start(skipped)).ok()?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    if bytes.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if skipped == 0 {
        return Some((text, 1));
    }
    let (_, whole) = text.split_once('\n')?;
    Some((whole.to_string(), first_line + 1))
}

/// Lines before the part that is read. Counting a huge log would take longer than anything else: then from 0.
fn newlines(file: &mut File, bytes: u64) -> Option<usize> {
    const MOST: u64 = 64 * 1024 * 1024;
    if bytes > MOST {
        return Some(0);
    }
    let mut buffer = vec![0; 64 * 1024];
    let (mut left, mut count) = (bytes as usize, 0);
    while left > 0 {
        let most = left.min(buffer.len());
        let read = file.read(&mut buffer[..most]).ok()?;
        if read == 0 {
            break;
        }
        count += buffer[..read].iter().filter(|byte| **byte == b'\n').count();
        left -= read;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::research::tests::project;

    // covers: R6
    #[test]
    fn logs_and_reports_also_where_git_does_not_look() {
        let dir = project(&[
            (".gitignore", "*.log\nlogs\n.pytest_cache\n"),
            ("app.log", "a"),
            ("logs/web.txt", "b"),
            ("target/surefire-reports/TEST-a.xml", "c"),
            ("target/debug/build.log", "not this"),
            ("node_modules/x/npm-debug.log", "not this"),
            (".pytest_cache/v/cache/lastfailed", "{}"),
            ("notes.txt", "not this"),
        ]);
        let found: Vec<(String, Sort)> =
            files(dir.path()).into_iter().map(|left| (left.path, left.sort)).collect();
        assert_eq!(
            found,
            [
                (".pytest_cache/v/cache/lastfailed".to_string(), Sort::LastFailed),
                ("app.log".to_string(), Sort::Log),
                ("logs/web.txt".to_string(), Sort::Log),
                ("target/surefire-reports/TEST-a.xml".to_string(), Sort::Junit),
            ]
        );
    }

    // covers: R6
    #[test]
    fn only_the_end_of_a_long_log_with_true_line_numbers() {
        let text: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        let dir = project(&[("a.log", &text)]);
        let left = &files(dir.path())[0];
        assert!(left.text.len() as u64 <= MAX_BYTES);
        assert!(left.text.starts_with(&format!("line {}\n", left.first_line)), "{}", left.first_line);
    }
}
