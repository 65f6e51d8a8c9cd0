//! Functions that are too long, too deep, decide too much or take too much; and files that are too long.

use super::super::facts::{FileFacts, Function};
use super::super::issue::{Issue, Severity};
use super::super::look::Look;

const LINES: usize = 70;
const DECISIONS: usize = 15;
const NESTING: usize = 5;
const PARAMETERS: usize = 7;
const FILE_LINES: usize = 800;

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let mut issues = Vec::new();
    for file in look.products() {
        let code = code_lines(file);
        let own = file.functions.iter().enumerate().filter(|(_, function)| !function.in_test);
        issues.extend(own.filter_map(|(index, function)| of(file, function, code[index])));
        if file.lines > FILE_LINES {
            issues.push(Issue {
                subject: file.path.clone(),
                weakness: "long file".into(),
                title: format!("`{}` has {} lines", file.path, file.lines),
                detail: format!(
                    "{} functions and {} types in one file.",
                    file.functions.len(),
                    file.types.len()
                ),
                severity: if file.lines > 2 * FILE_LINES { Severity::Medium } else { Severity::Low },
                confidence: 0.9,
                evidence: vec![file.path.clone()],
            });
        }
    }
    issues
}

/// One issue for a function, whatever number of limits it is over.
fn of(file: &FileFacts, function: &Function, lines: usize) -> Option<Issue> {
    // Markup is long without being complicated.
    let markup =
        file.markup.iter().any(|m| (m.line as usize) >= function.line && (m.line as usize) <= function.end());
    let limit = if markup { 2 * LINES } else { LINES };
    // What overrides or is registered takes what others say; a constructor takes what there is.
    let builds = matches!(function.name.as_str(), "__init__" | "constructor" | "new");
    let free = !function.is_expected && !builds && function.owner.as_ref() != Some(&function.name);
    let params = if free { function.params } else { 0 };
    let measures = [
        (lines, limit, "long function", "lines of code"),
        (function.complexity, DECISIONS, "complex function", "decisions"),
        (function.nesting, NESTING - 1, "deep nesting", "levels of nesting"),
        (params, PARAMETERS - 1, "many parameters", "parameters"),
    ];
    let over: Vec<_> = measures.iter().filter(|(is, most, _, _)| is > most).collect();
    let worst = over.iter().max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))?;
    let told: Vec<String> = over
        .iter()
        .map(|(is, most, _, what)| format!("{is} {what} (at most {most} is easy to read)"))
        .collect();
    let double = over.iter().any(|(is, most, _, _)| *is > 2 * most);
    let severity = match (over.len(), double) {
        (1, false) => Severity::Low,
        (1, true) | (2, false) => Severity::Medium,
        _ => Severity::High,
    };
    Some(Issue {
        subject: function.full_name(),
        weakness: worst.2.into(),
        title: format!("`{}` has {} {}", function.full_name(), worst.0, worst.3),
        detail: format!("{}.", told.join(", ")),
        severity,
        confidence: 0.9,
        evidence: vec![file.at(function.line)],
    })
}

/// Lines with code in the body of each function: no comments, no documentation, no functions inside it.
fn code_lines(file: &FileFacts) -> Vec<usize> {
    let mut lines = vec![0; file.functions.len()];
    for line in &file.shape {
        if let Some(number) = lines.get_mut(line.function as usize) {
            *number += 1;
        }
    }
    lines
}
