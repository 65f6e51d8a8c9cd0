//! Numbers without a name that stand in several places: they must change together and nobody knows.

use std::collections::BTreeMap;

use super::super::issue::{Issue, Severity};
use super::super::look::Look;

const LEAST_PLACES: usize = 3;
/// Everybody knows what these are: sizes, times, angles, answers of HTTP servers, ports.
const KNOWN: &[&str] = &[
    "12", "15", "16", "24", "25", "31", "32", "36", "48", "64", "75", "99", "120", "127", "128", "180",
    "201", "202", "204", "255", "256", "270", "301", "302", "304", "307", "308", "360", "365", "401", "403",
    "404", "405", "409", "415", "422", "429", "443", "501", "502", "503", "504", "512", "1024", "2048",
    "3600", "4096", "8080", "65535", "65536", "86400",
];

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in look.products() {
        for number in &file.numbers {
            let text = file.slice(number.span);
            if is_magic(text) {
                places.entry(text).or_default().push(file.at(number.line as usize));
            }
        }
    }
    let repeated = places.into_iter().filter(|(_, at)| at.len() >= LEAST_PLACES);
    let mut issues: Vec<Issue> = repeated.map(|(number, at)| issue(number, at)).collect();
    issues.sort_by_key(|issue| std::cmp::Reverse(issue.evidence.len()));
    issues.truncate(8);
    issues
}

/// A whole number that is not round: weights and shares are tuned one by one, and round numbers are guesses.
fn is_magic(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let whole = digits.len() >= 2 && digits.chars().all(|c| c.is_ascii_digit());
    whole && digits.trim_end_matches('0').len() >= 2 && !KNOWN.contains(&digits.as_str())
}

fn issue(number: &str, at: Vec<String>) -> Issue {
    Issue {
        subject: format!("number {number}"),
        weakness: "magic number".into(),
        title: format!("{number} stands in {} places without a name", at.len()),
        detail: "If these mean the same, a constant would say what.".into(),
        severity: Severity::Low,
        confidence: 0.5,
        evidence: at.into_iter().take(6).collect(),
    }
}
