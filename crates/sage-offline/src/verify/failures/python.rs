//! `pytest` and `unittest`.

use super::{Counts, Failure, Places, number_before};

pub fn failures(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = unittest(lines, places);
    let pytest = lines.iter().filter_map(|line| {
        let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
        let (name, detail) = rest.split_once(" - ").unwrap_or((rest, ""));
        let path = name.split("::").next()?;
        // `ERROR - text` and log lines are not tests.
        path.ends_with(".py").then_some(())?;
        let evidence = place_of(lines, path, name, places);
        Some(Failure { name: name.trim().to_string(), detail: detail.to_string(), evidence })
    });
    found.extend(pytest);
    found
}

/// `tests/test_x.py:12: AssertionError` stands below the heading with the test's name.
fn place_of(lines: &[&str], path: &str, name: &str, places: &Places) -> Vec<String> {
    let short = name.split("::").skip(1).collect::<Vec<_>>().join(".");
    let is_heading = |line: &&str| line.starts_with("____") && line.trim_matches(['_', ' ']) == short;
    let start = lines.iter().position(is_heading).map_or(0, |at| at + 1);
    let section = lines[start..].iter().take_while(|line| !line.starts_with("____"));
    let place = section.filter(|line| line.starts_with(path)).find_map(|line| places.first_in(line));
    place.into_iter().collect()
}

/// `FAIL: test_a (tests.test_shop.CartTest.test_a)`, a ruler, and a traceback whose last line says what.
fn unittest(lines: &[&str], places: &Places) -> Vec<Failure> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) else {
            continue;
        };
        let Some((test, home)) =
            rest.split_once(" (").filter(|_| at > 0 && lines[at - 1].starts_with("===="))
        else {
            continue;
        };
        let home = home.split(')').next().unwrap_or_default();
        let whole = home.ends_with(&format!(".{test}")) || home == test;
        let name = if whole { home.to_string() } else { format!("{home}.{test}") };
        let rules = |line: &str| line.starts_with("====") || line.starts_with("Ran ");
        let trace: Vec<&str> = lines[at + 1..].iter().copied().take_while(|line| !rules(line)).collect();
        found.push(Failure { name, detail: message(&trace), evidence: last_place(&trace, places) });
    }
    found
}

/// The lines after the last one of the traceback itself.
fn message(trace: &[&str]) -> String {
    let inside = |line: &&str| line.starts_with("  ") || line.starts_with("Traceback");
    let start = trace.iter().rposition(inside).map_or(0, |at| at + 1);
    let said = trace[start..].iter().take_while(|line| !line.starts_with("----"));
    said.filter(|line| !line.trim().is_empty()).copied().collect::<Vec<_>>().join("\n")
}

fn last_place(trace: &[&str], places: &Places) -> Vec<String> {
    let place = |line: &&str| {
        let (path, rest) = line.trim().strip_prefix("File \"")?.split_once("\", line ")?;
        places.of(path, rest.split(',').next()?)
    };
    trace.iter().filter_map(place).next_back().into_iter().collect()
}

/// `Ran 10 tests in 0.1s` and `FAILED (failures=1, errors=2)`; `= 1 failed, 2 passed in 0.1s =`.
/// Of `skipped=3, failures=1)`.
fn skipped(facts: &str) -> usize {
    let mut parts = facts.trim_end_matches(')').split(", ");
    parts.find_map(|part| part.strip_prefix("skipped=")?.parse().ok()).unwrap_or(0)
}

pub fn counts(lines: &[&str]) -> Option<Counts> {
    let mut counts: Option<Counts> = None;
    for line in lines {
        if let Some(ran) = line.strip_prefix("Ran ").filter(|rest| rest.contains(" test")) {
            let ran = ran.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            counts = Some(Counts { ran: counts.unwrap_or_default().ran + ran, ..counts.unwrap_or_default() });
        } else if let (Some(rest), Some(counts)) = (line.strip_prefix("OK ("), counts.as_mut()) {
            counts.ran = counts.ran.saturating_sub(skipped(rest));
        } else if let (Some(rest), Some(counts)) = (line.strip_prefix("FAILED ("), counts.as_mut()) {
            counts.ran = counts.ran.saturating_sub(skipped(rest));
            let number = |part: &str| part.split('=').nth(1).and_then(|number| number.parse::<usize>().ok());
            let wrong = rest.trim_end_matches(')').split(", ").filter(|part| !part.starts_with("skipped"));
            counts.failed += wrong.filter_map(number).sum::<usize>();
        } else if line.starts_with("==") && line.contains(" in ") {
            let failed = number_before(line, "failed").unwrap_or(0)
                + number_before(line, "error").unwrap_or(0)
                + number_before(line, "errors").unwrap_or(0);
            let ran = number_before(line, "passed").unwrap_or(0) + failed;
            let other = ["no tests ran", "skipped", "deselected", "xfailed", "xpassed"];
            if ran > 0 || other.iter().any(|word| line.contains(word)) {
                counts = Some(Counts { ran, failed });
            }
        }
    }
    counts
}
