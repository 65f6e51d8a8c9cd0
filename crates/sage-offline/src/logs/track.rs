//! `errors.track`: what went wrong according to logs, test reports and the text that the user gave.

use crate::finding::{Claim, Finding, Report};
use crate::research::library::excerpt::cut;
use crate::research::library::rounded;
use crate::research::rank::Query;
use crate::walk::Tree;

use super::files::{Left, Sort, files};
use super::group::{Group, Groups};
use super::masked;
use super::reports::{junit, last_failed};
use super::trace::{Frame, Trace, traces};

const MAX_FINDINGS: usize = 20;
const MAX_CLAIMS: usize = 10;
/// Frames shown of one error.
const MAX_FRAMES: usize = 5;

/// What went wrong; `given` is a text of the user.
pub(crate) fn track(tree: &Tree, query: &Query, given: Option<&str>) -> Report {
    let left = files(&tree.root);
    let mut groups = Groups::new(tree);
    for trace in given.map(traces).unwrap_or_default() {
        let seen = format!("the given log, line {}", trace.line + 1);
        groups.add(trace, seen, true);
    }
    for file in &left {
        for trace in read(file) {
            let seen = format!("{}:{}", file.path, file.first_line + trace.line);
            groups.add(trace, seen, false);
        }
    }
    let groups = groups.into_groups();
    let mut report = Report { method: method(&left, given), ..Report::default() };
    for group in &groups {
        report.findings.push(finding(tree, group, query));
    }
    report.findings.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    report.findings.truncate(MAX_FINDINGS);
    let mut placed: Vec<&Group> = groups.iter().collect();
    placed.sort_by_key(|group| std::cmp::Reverse(group.count));
    report.claims = placed.into_iter().take(MAX_CLAIMS).flat_map(|group| claims(tree, group)).collect();
    sum_up(&mut report, &groups, &left, given);
    report
}

fn read(file: &Left) -> Vec<Trace> {
    match file.sort {
        Sort::Log => traces(&file.text),
        Sort::Junit => junit(&file.text),
        Sort::LastFailed => last_failed(&file.text),
    }
}

fn method(left: &[Left], given: Option<&str>) -> String {
    let text = if given.is_some() { "the given log and " } else { "" };
    format!(
        "offline: {text}{} logs and test reports of the project read from their ends; traces of Rust, Python, \
         JavaScript, Java and Go grouped by message without numbers; secrets masked; nothing was run",
        left.len()
    )
}

fn finding(tree: &Tree, group: &Group, query: &Query) -> Finding {
    let message = masked(&group.trace.message);
    let place = group.place.as_ref().map(|frame| placed(tree, frame));
    let mut detail = format!("{}, {}", group.trace.sort, times(group));
    if let (Some(frame), Some(place)) = (&group.place, &place) {
        let within =
            if frame.function.is_empty() { String::new() } else { format!(" in {}", frame.function) };
        detail.push_str(&format!("; nearest own code: {place}{within}"));
    }
    let shown: Vec<String> = group
        .trace
        .frames
        .iter()
        .take(MAX_FRAMES)
        .map(|frame| format!("{}:{}", frame.path, frame.line))
        .collect();
    if shown.len() > 1 {
        detail.push_str(&format!("; frames: {}", shown.join(" < ")));
    }
    if message.len() > 120 {
        detail.push_str(&format!(". {}", cut(&message, 400)));
    }
    let said = format!("{} {}", group.trace.message, shown.join(" "));
    // What the user gave is what the user means.
    let (base, about) = if group.given { (0.7, 0.3) } else { (0.2, 0.6) };
    let often = (group.count as f64).log10().min(1.0) * 0.1;
    let known = if place.is_some() { 0.1 } else { 0.0 };
    let mut evidence: Vec<String> = place.into_iter().collect();
    evidence.extend((!group.given).then(|| group.last.clone()));
    Finding {
        title: cut(&message, 120),
        detail: masked(&detail),
        relevance: rounded((base + about * query.share(&said) + often + known).min(1.0)),
        evidence,
        kind: "log".into(),
        confidence: if group.place.is_some() { 0.9 } else { 0.6 },
    }
}

fn times(group: &Group) -> String {
    match group.count {
        1 => format!("once ({})", group.first),
        count => format!("{count} times ({} to {})", group.first, group.last),
    }
}

/// `path:line`; a report that names only a test leads to where it is defined.
fn placed(tree: &Tree, frame: &Frame) -> String {
    let defined = || {
        let name = frame.function.split(['[', ':']).next().filter(|name| !name.is_empty())?;
        let text = tree.text(tree.find(&frame.path)?)?;
        text.lines().position(|line| line.contains(&format!("def {name}("))).map(|at| at + 1)
    };
    match Some(frame.line).filter(|line| *line > 0).or_else(defined) {
        Some(line) => format!("{}:{line}", frame.path),
        None => frame.path.clone(),
    }
}

fn claims(tree: &Tree, group: &Group) -> Vec<Claim> {
    let subject = format!("error: {}", cut(&masked(&group.normal), 120));
    let claim = |predicate: &str, value: serde_json::Value, confidence: f64| Claim {
        subject: subject.clone(),
        predicate: predicate.to_string(),
        value,
        evidence: vec![group.first.clone()],
        confidence,
    };
    let mut found = vec![claim("count", group.count.into(), 1.0)];
    found.extend(group.place.as_ref().map(|frame| claim("raisedAt", placed(tree, frame).into(), 0.9)));
    found
}

fn sum_up(report: &mut Report, groups: &[Group], left: &[Left], given: Option<&str>) {
    if groups.is_empty() {
        let looked = if left.is_empty() {
            "there are no logs or test reports in the project"
        } else {
            "the logs and test reports hold no error"
        };
        let text = if given.is_some() { "; no trace was recognised in the given log" } else { "" };
        report.summary = format!("No errors found: {looked}{text}.");
        report.open_questions.push(
            "What does the error say? Give its text or trace as `log`, or leave a `*.log` in the project."
                .into(),
        );
        report.open_questions.push("How can the bug be made to happen again?".into());
        return;
    }
    let total: usize = groups.iter().map(|group| group.count).sum();
    let own = groups.iter().filter(|group| group.place.is_some()).count();
    report.summary = format!(
        "{total} errors of {} kinds in {} files; {own} kinds lead to the project's own code.",
        groups.len(),
        left.len() + usize::from(given.is_some()),
    );
    if let Some(first) = report.findings.first() {
        let place = first.evidence.first().map(|place| format!(" ({place})")).unwrap_or_default();
        report.summary.push_str(&format!(" Most relevant: {}{place}.", first.title.trim_end_matches('.')));
    }
    if groups.len() > MAX_FINDINGS {
        report
            .open_questions
            .push(format!("{} more kinds of errors are not shown.", groups.len() - MAX_FINDINGS));
    }
    report
        .open_questions
        .push("Which of these errors is the reported one, and with what input does it happen?".into());
    if own == 0 {
        report
            .open_questions
            .push("No trace leads to a file of the project: where does it call what fails?".into());
    }
}
