//! `quality.review`: what makes this code harder to change than it needs to be.

mod clones;
mod numbers;
mod size;
mod unused;

use serde_json::{Value, json};

use super::issue::{Issue, Severity, by_severity};
use super::look::{Look, count};
use crate::finding::Report;
use crate::request::{Request, Trouble};

pub(super) fn review(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let mut issues = size::issues(&look);
    issues.extend(clones::issues(&look));
    issues.extend(unused::issues(&look));
    issues.extend(numbers::issues(&look));
    issues.extend(left_to_do(&look));
    let functions = look.products().flat_map(|file| &file.functions).filter(|f| !f.in_test).count();
    let summary = match (look.survey.files.is_empty(), issues.len()) {
        (true, _) => "There is no source code here that could be read.".to_string(),
        (false, 0) => format!("Nothing stands out in {}.", count(functions, "function")),
        (false, all) => {
            format!("{} in {}: {}.", count(all, "issue"), count(functions, "function"), by_severity(&issues))
        }
    };
    let report = Report {
        summary,
        findings: issues.iter().map(|issue| issue.finding(&look, "quality")).collect(),
        claims: issues.iter().take(60).map(|issue| issue.claim(&look)).collect(),
        ..Report::default()
    };
    Ok(json!(look.finish(report, "sizes, decisions, nesting, copies and leftovers counted in syntax trees")))
}

/// What people wrote down to come back to.
fn left_to_do(look: &Look) -> Vec<Issue> {
    let mut issues = Vec::new();
    for file in &look.survey.files {
        for todo in &file.todos {
            let urgent = matches!(todo.mark, "FIXME" | "XXX") && !file.is_test;
            issues.push(Issue {
                subject: file.path.clone(),
                weakness: "unfinished".into(),
                title: format!("{} in `{}`", todo.mark, file.path),
                detail: format!("\"{}\"", todo.text),
                severity: if urgent { Severity::Medium } else { Severity::Low },
                confidence: 0.9,
                evidence: vec![file.at(todo.line)],
            });
        }
    }
    issues
}
