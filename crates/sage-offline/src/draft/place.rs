//! Evidence: does the place that a finding names exist in the project?

use std::path::{Component, Path};

use crate::plain;

/// What can be said about one piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A file of the project, and the line if one is named.
    There,
    /// It should be in the project and is not: why.
    Missing(String),
    /// An address, a commit, a sentence: cannot be looked up here.
    Elsewhere,
}

/// Looks up `path:line`, `path:10-20` or `path`.
pub fn standing(project: &Path, evidence: &str) -> Standing {
    let evidence = evidence.trim().trim_matches('`');
    let (path, line) = split(evidence);
    if !looks_like_path(path) {
        return Standing::Elsewhere;
    }
    let inside =
        !Path::new(path).components().any(|part| matches!(part, Component::ParentDir | Component::RootDir));
    let file = project.join(path);
    match (inside && file.exists(), line) {
        (false, _) => Standing::Missing(format!("`{path}` is not in the project")),
        (true, None) => Standing::There,
        (true, Some(line)) => {
            let file = plain::open_in(project, Path::new(path));
            let bytes = file.and_then(|file| plain::read(file, plain::MOST_BYTES));
            let count = bytes.map_or(0, |bytes| lines(&bytes));
            match line {
                1.. if line <= count => Standing::There,
                _ => Standing::Missing(format!("`{path}` has {count} lines, not {line}")),
            }
        }
    }
}

fn lines(bytes: &[u8]) -> usize {
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    ends + usize::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// The path and the first line that it names.
pub fn split(evidence: &str) -> (&str, Option<usize>) {
    let Some((path, rest)) = evidence.split_once(':').filter(|(path, _)| !path.is_empty()) else {
        return (evidence.split('#').next().unwrap_or(evidence), None);
    };
    let digits: String = rest.trim_start_matches('L').chars().take_while(char::is_ascii_digit).collect();
    (path, digits.parse().ok())
}

/// No address, no sentence, no commit: a name with an ending or a folder.
fn looks_like_path(text: &str) -> bool {
    let address = ["http", "https", "file", "git", "ssh"].contains(&text) || text.contains("//");
    let sentence = text.is_empty() || text.contains(char::is_whitespace);
    !address && !sentence && (text.contains('/') || text.contains('.') || KNOWN_NAMES.contains(&text))
}

const KNOWN_NAMES: &[&str] = &["Makefile", "Dockerfile", "justfile", "Procfile", "LICENSE"];

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P3
    #[test]
    fn only_lines_that_exist_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.py"), "one\ntwo").unwrap();
        let of = |evidence: &str| standing(dir.path(), evidence);
        assert_eq!(
            (of("a.py:2"), of("a.py"), of("`a.py:1-2`")),
            (Standing::There, Standing::There, Standing::There)
        );
        assert_eq!(of("a.py:3"), Standing::Missing("`a.py` has 2 lines, not 3".into()));
        assert_eq!(of("b.py:1"), Standing::Missing("`b.py` is not in the project".into()));
        assert!(matches!(of("../etc/passwd"), Standing::Missing(_)));
        for elsewhere in ["https://example.com/a.py:3", "3f2a91c", "a model said so. Really", ""] {
            assert_eq!(of(elsewhere), Standing::Elsewhere, "{elsewhere}");
        }
    }
}
