//! `audit.security`: places where an attacker would look first.
//!
//! Secrets are told by kind and place; their value is never in a report.

mod calls;
mod env;
mod locks;
mod options;
mod secrets;
mod sql;

use serde_json::{Value, json};

use super::facts::{FileFacts, MarkKind};
use super::issue::{Issue, Severity, by_severity};
use super::look::{Look, count};
use crate::finding::Report;
use crate::request::{Request, Trouble};

pub(super) fn audit(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let mut issues = secrets::issues(&look);
    for file in look.products() {
        issues.extend(calls::issues(file));
        issues.extend(sql::issues(file));
        issues.extend(options::issues(file));
    }
    issues.extend(unsafe_code(&look));
    issues.extend(locks::issues(&look));
    issues.extend(env::issues(&look));
    let files = look.tree.files.len();
    let summary = match issues.len() {
        0 => format!(
            "No known weakness was found in {}. That is no proof that there is none.",
            count(files, "file")
        ),
        all => format!(
            "{} in {}: {}.",
            count(all, "possible weakness"),
            count(files, "file"),
            by_severity(&issues)
        ),
    };
    let mut report = Report { summary, ..Report::default() };
    report.findings = issues.iter().map(|issue| issue.finding(&look, "security")).collect();
    report.claims = issues.iter().take(60).map(|issue| issue.claim(&look)).collect();
    report
        .open_questions
        .push("Known holes in dependencies were not looked up: that needs a database of them.".into());
    Ok(json!(look.finish(
        report,
        "patterns of known weaknesses in syntax trees and text; where data comes from is not followed"
    )))
}

/// `unsafe` that does not say why it is sound.
fn unsafe_code(look: &Look) -> Option<Issue> {
    let mut places = Vec::new();
    for file in look.products() {
        let blocks = file.marks.iter().filter(|mark| mark.kind == MarkKind::Unsafe && !mark.in_test);
        places.extend(
            blocks.filter(|mark| !is_explained(file, mark.line as usize)).map(|m| file.at(m.line as usize)),
        );
    }
    (!places.is_empty()).then(|| Issue {
        subject: "unsafe code".into(),
        weakness: "unsafe without a reason".into(),
        title: format!("{} without a `SAFETY` comment", count(places.len(), "unsafe block")),
        detail: "Nobody can check what is not written down: say above each block why it is sound.".into(),
        severity: Severity::Low,
        confidence: 0.8,
        evidence: places.into_iter().take(8).collect(),
    })
}

fn is_explained(file: &FileFacts, line: usize) -> bool {
    let first = line.saturating_sub(5);
    let near = file.text.lines().skip(first).take(line - first);
    near.into_iter().any(|text| text.to_uppercase().contains("SAFETY"))
}

/// An issue at one line of a file.
fn at(
    file: &FileFacts,
    line: usize,
    weakness: &str,
    why: &str,
    severity: Severity,
    confidence: f64,
) -> Issue {
    Issue {
        subject: file.path.clone(),
        weakness: weakness.into(),
        title: format!("{} in `{}`", capital(weakness), file.path),
        detail: format!("{why} `{}`", file.line_text(line)),
        severity,
        confidence,
        evidence: vec![file.at(line)],
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
