//! Maven and Gradle.

use super::{Counts, Failure, Places};

/// `[ERROR]   CartTest.total:12 expected: <3> but was: <-1>`, and Gradle's `CartTest > total() FAILED`.
pub fn failures(lines: &[&str], _places: &Places) -> Vec<Failure> {
    let named = |name: &str, detail: &str| Failure {
        name: name.trim().to_string(),
        detail: detail.trim().to_string(),
        evidence: Vec::new(),
    };
    let of = |(at, line): (usize, &&str)| {
        if let Some(name) = line.strip_suffix(" FAILED").filter(|name| name.contains(" > ")) {
            return Some(named(name, lines.get(at + 1).copied().unwrap_or_default()));
        }
        let rest = line.strip_prefix("[ERROR]   ")?;
        let (name, detail) = rest.trim_start().split_once(' ')?;
        let place = name.contains('.') && name.contains(':');
        place.then(|| named(name, detail))
    };
    lines.iter().enumerate().filter_map(of).collect()
}

/// `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0`: once for each class with its time, then for the module.
pub fn counts(lines: &[&str]) -> Option<Counts> {
    let count = |line: &&str| {
        let rest = line
            .split_once("Tests run: ")
            .map(|(_, rest)| rest)
            .filter(|_| !line.contains("Time elapsed"))?;
        let mut numbers = rest.split(", ").map(|part| {
            let digits = part.rsplit(' ').next().unwrap_or_default();
            digits.parse::<usize>().unwrap_or(0)
        });
        let mut next = || numbers.next().unwrap_or(0);
        let (ran, failures, errors, skipped) = (next(), next(), next(), next());
        Some(Counts::new(ran.saturating_sub(skipped), failures + errors, skipped))
    };
    lines.iter().filter_map(count).reduce(Counts::plus)
}

/// `> Task :app:test`: Gradle ran the tests of a project, or has nothing to add since it did (`UP-TO-DATE`). Those
/// without tests, and those that were switched off, are marked.
pub fn tasks(lines: &[&str]) -> usize {
    let is_it = |line: &&&str| {
        let Some(task) = line.trim().strip_prefix("> Task :") else { return false };
        let (path, mark) = task.split_once(' ').unwrap_or((task, ""));
        let name = path.rsplit(':').next().unwrap_or(path);
        let tests = name == "test"
            || name.ends_with("Test")
            || name.starts_with("test") && name.ends_with("UnitTest");
        tests && ["", "UP-TO-DATE", "FROM-CACHE"].contains(&mark)
    };
    lines.iter().filter(is_it).count()
}
