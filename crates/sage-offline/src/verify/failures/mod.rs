//! What failed, read from what a test or build program printed.
//!
//! Each file knows the words of one family of programs. All of them look at the output: a project's test script
//! may call several. What nobody recognises is one failure with the end of the output.

mod cargo;
mod go;
mod jvm;
mod node;
mod others;
mod place;
mod python;
mod ruby_php;

use std::path::Path;

use serde::Serialize;

pub use place::Places;

/// More of them say nothing new.
const MOST: usize = 50;
const DETAIL_CHARS: usize = 600;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The test's name, or the error's first line.
    pub name: String,
    pub detail: String,
    /// `path:line` in the project.
    pub evidence: Vec<String>,
}

/// How many tests a program says it ran, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub ran: usize,
    /// With errors outside of tests.
    pub failed: usize,
    /// Skipped, ignored, expected to fail, left for later: none of them ran.
    pub aside: usize,
}

impl Counts {
    pub fn new(ran: usize, failed: usize, aside: usize) -> Counts {
        Counts { ran, failed, aside }
    }

    /// Something ran, or broke before it could.
    pub fn any(&self) -> bool {
        self.ran + self.failed > 0
    }

    pub fn plus(self, other: Counts) -> Counts {
        Counts::new(self.ran + other.ran, self.failed + other.failed, self.aside + other.aside)
    }
}

/// Failures in the words of test programs. `dir` is where the command ran, relative to the project.
pub fn of_tests(output: &str, project: &Path, dir: &str) -> Vec<Failure> {
    let places = Places { project, dir };
    let lines: Vec<&str> = output.lines().collect();
    let families =
        [cargo::failures, python::failures, node::failures, go::failures, jvm::failures, ruby_php::failures];
    families.iter().flat_map(|family| family(&lines, &places)).collect()
}

/// All failures that the output tells of.
pub fn read(output: &str, project: &Path, dir: &str) -> Vec<Failure> {
    let mut found = of_tests(output, project, dir);
    if found.is_empty() {
        let lines: Vec<&str> = output.lines().collect();
        found = place::compiler_errors(&lines, &Places { project, dir });
    }
    let mut kept: Vec<Failure> = Vec::new();
    for mut failure in found {
        failure.detail = shortened(failure.detail.trim());
        match kept.iter_mut().find(|before| before.name == failure.name) {
            Some(before) if before.evidence.is_empty() && before.detail.is_empty() => *before = failure,
            Some(_) => {}
            None => kept.push(failure),
        }
    }
    kept.truncate(MOST);
    kept
}

/// Nothing where no program said a number, and no line tells of a single test.
pub fn counts(output: &str) -> Option<Counts> {
    let lines: Vec<&str> = output.lines().collect();
    let families = [
        cargo::counts,
        python::counts,
        node::counts,
        go::counts,
        jvm::counts,
        ruby_php::counts,
        others::counts,
    ];
    let counted = families.iter().filter_map(|family| family(&lines)).reduce(Counts::plus);
    counted.or_else(|| others::ok_lines(&lines))
}

/// Whether the output shows that a test ran. Go and Gradle say so without a number.
pub fn shows_tests(output: &str) -> bool {
    let lines: Vec<&str> = output.lines().collect();
    counts(output).is_some_and(|counts| counts.any()) || go::tested(&lines) || jvm::tasks(&lines) > 0
}

/// Names of the tests that ran, where the output has them: functions without their module, texts without their suite.
/// A test that was moved is still the same.
pub fn names(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let families = [cargo::names, python::names, node::names, go::names];
    families.iter().flat_map(|family| family(&lines)).map(str::to_string).collect()
}

/// Packages of Go and tasks of Gradle that ran tests, where nothing else is told.
pub fn units(output: &str) -> usize {
    let lines: Vec<&str> = output.lines().collect();
    go::packages(&lines) + jvm::tasks(&lines)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(DETAIL_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

/// The number before `word` in `text`: `3 failed` is 3.
fn number_before(text: &str, word: &str) -> Option<usize> {
    let mut last = "";
    for part in text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
        if part == word {
            return last.parse().ok();
        }
        last = part;
    }
    None
}
