//! `performance.profile` and `audit.performance`: what costs more with more data, as far as the text tells.
//!
//! This is no profile: nothing runs. What is hot only a measurement can say, and the report says that.

mod loops;
mod measured;
mod waiting;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::facts::FileFacts;
use super::issue::{Issue, Severity, by_severity};
use super::look::{Look, count};
use crate::finding::{Finding, Report};
use crate::request::{Request, Trouble};

/// Something slow at a line.
pub(super) struct Slow {
    pub line: usize,
    pub what: &'static str,
    pub why: &'static str,
    pub severity: Severity,
    pub confidence: f64,
}

pub(super) fn audit(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let issues: Vec<Issue> = look.products().flat_map(in_file).collect();
    let loops: usize = look.products().map(|file| file.loops).sum();
    let mut report = Report { summary: summary(&look, &issues, loops), ..Report::default() };
    report.findings = issues.iter().map(|issue| issue.finding(&look, "performance")).collect();
    report.claims = issues.iter().take(60).map(|issue| issue.claim(&look)).collect();
    report.findings.extend(measured::findings(&look));
    if !look.survey.files.is_empty() {
        report
            .open_questions
            .push("Nothing was measured: which of these places run often, and on how much data?".into());
    }
    Ok(json!(look.finish(report, "static analysis of loops and calls, not a profile")))
}

fn summary(look: &Look, issues: &[Issue], loops: usize) -> String {
    match (look.survey.files.is_empty(), issues.len()) {
        (true, _) => "There is no source code here that could be read.".into(),
        (_, 0) => {
            format!("Nothing in {} looks slow by its form; nothing was measured.", count(loops, "loop"))
        }
        (_, all) => format!(
            "{} in {} may be slow: {}. This is static analysis, nothing was measured.",
            count(all, "place"),
            count(loops, "loop"),
            by_severity(issues)
        ),
    }
}

/// One issue for each function and sort of slowness.
fn in_file(file: &FileFacts) -> Vec<Issue> {
    let mut slow = loops::slow(file);
    slow.extend(waiting::slow(file));
    let mut groups: BTreeMap<(usize, &str), Vec<Slow>> = BTreeMap::new();
    for place in slow {
        let function = innermost(file, place.line);
        groups.entry((function, place.what)).or_default().push(place);
    }
    groups.into_iter().filter_map(|((function, _), places)| issue(file, function, &places)).collect()
}

/// The index of the smallest function around a line.
fn innermost(file: &FileFacts, line: usize) -> usize {
    let around = file.functions.iter().enumerate().filter(|(_, f)| f.line <= line && line <= f.end());
    around.min_by_key(|(_, function)| function.lines).map_or(usize::MAX, |(index, _)| index)
}

fn issue(file: &FileFacts, function: usize, places: &[Slow]) -> Option<Issue> {
    let first = places.first()?;
    let subject = file.functions.get(function).map_or(file.path.clone(), |function| function.full_name());
    let mut lines: Vec<usize> = places.iter().map(|place| place.line).collect();
    lines.dedup();
    let shown: Vec<String> =
        lines.iter().take(3).map(|line| format!("`{}`", file.line_text(*line))).collect();
    Some(Issue {
        title: format!("{} in `{subject}`", capital(first.what)),
        subject,
        weakness: first.what.into(),
        detail: format!("{} {}", first.why, shown.join(", ")),
        severity: places.iter().map(|place| place.severity).max().unwrap_or(Severity::Low),
        confidence: places.iter().map(|place| place.confidence).fold(0.0, f64::max),
        evidence: lines.iter().take(5).map(|line| file.at(*line)).collect(),
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// A finding about what is there to measure with.
fn tool(look: &Look, title: String, detail: &str, evidence: Vec<String>) -> Finding {
    Finding {
        title,
        detail: detail.into(),
        relevance: 0.5,
        evidence,
        kind: "performance".into(),
        confidence: look.sure(0.9),
    }
}
