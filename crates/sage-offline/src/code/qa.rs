//! `qa.backend` and `qa.frontend`: what of the change, or of the code near the feature, no test reaches.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::coverage::{Coverage, is_constructor, subject_of};
use super::facts::{FileFacts, Function};
use super::issue::{Issue, Severity};
use super::look::{Look, count, percent};
use super::near::near;
use crate::finding::Report;
use crate::request::{Request, Trouble};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Backend,
    Frontend,
}

/// Short functions that only pass on are tested with what they call.
const LEAST_LINES: usize = 4;

pub(super) fn check(request: &Request, side: Side) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let (own, name) = match side {
        Side::Backend => (false, "backend"),
        Side::Frontend => (true, "frontend"),
    };
    let files: Vec<&FileFacts> = look.products().filter(|file| is_interface(&file.path) == own).collect();
    let how = "functions that tests call by name, directly or through others; nothing was run";
    if files.is_empty() {
        let others = look.tree.files.iter().filter(|file| own && is_interface(&file.path)).count();
        let summary = match others {
            0 => format!("There is no {name} code here: nothing to check."),
            some => format!("The {name} has {} and no code that could have tests.", count(some, "file")),
        };
        return Ok(json!(look.finish(Report { summary, ..Report::default() }, how)));
    }
    let coverage = Coverage::new(&look.survey);
    let concerned = concerned(&look, &files);
    let mut issues = modules(&look, &coverage, &concerned);
    issues.extend(functions(&coverage, &concerned));
    issues.extend(error_paths(&coverage, &concerned));
    let all: Vec<(&FileFacts, &Function)> =
        files.iter().flat_map(|file| own_functions(file).map(move |f| (*file, f))).collect();
    let reached = all.iter().filter(|(file, function)| coverage.reaches(file, function)).count();
    let summary = format!(
        "{}: {} in {}; tests reach {} of them by name ({} tests). {} concerned, {} to look at.",
        if own { "Frontend" } else { "Backend" },
        count(all.len(), "function"),
        count(files.len(), "module"),
        percent(reached, all.len()),
        coverage.tests,
        count(concerned.files.len(), "module"),
        count(issues.len(), "gap")
    );
    let mut report = Report { summary, ..Report::default() };
    report.findings = issues.iter().map(|issue| issue.finding(&look, "tests")).collect();
    report.claims = issues.iter().take(60).map(|issue| issue.claim(&look)).collect();
    if concerned.guessed {
        let question = "No earlier step said which files were changed: modules near the title were looked at, or all if there are none.";
        report.open_questions.push(question.into());
    }
    Ok(json!(look.finish(report, how)))
}

/// Files of a user interface: by what they hold, or by where scripts live.
pub(super) fn is_interface(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default();
    let shown = ["tsx", "jsx", "vue", "svelte", "html", "htm", "css", "scss", "less", "astro"];
    let script = ["ts", "js", "mjs"].contains(&extension);
    let folders = ["frontend", "web", "ui", "client", "webapp", "components", "pages"];
    shown.contains(&extension) || (script && path.split('/').any(|part| folders.contains(&part)))
}

/// The modules that the change is about.
struct Concerned<'a> {
    files: Vec<&'a FileFacts>,
    guessed: bool,
}

fn concerned<'a>(look: &'a Look, files: &[&'a FileFacts]) -> Concerned<'a> {
    let mut changed = HashSet::new();
    look.request.steps.values().for_each(|step| changed_files(step, &mut changed));
    let touched: Vec<&FileFacts> =
        files.iter().copied().filter(|file| changed.contains(file.path.as_str())).collect();
    if !touched.is_empty() {
        return Concerned { files: touched, guessed: false };
    }
    let close: HashSet<&str> = near(look, false).iter().map(|place| place.file.path.as_str()).collect();
    let related: Vec<&FileFacts> =
        files.iter().copied().filter(|file| close.contains(file.path.as_str())).collect();
    let files = if related.is_empty() { files.to_vec() } else { related };
    Concerned { files, guessed: true }
}

/// Every `filesChanged` of a result, however deep.
fn changed_files<'a>(value: &'a Value, found: &mut HashSet<&'a str>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
            if name == "filesChanged" {
                found.extend(inner.as_array().into_iter().flatten().filter_map(Value::as_str));
            }
            changed_files(inner, found);
        }),
        Value::Array(items) => items.iter().for_each(|inner| changed_files(inner, found)),
        _ => {}
    }
}

fn own_functions(file: &FileFacts) -> impl Iterator<Item = &Function> {
    let quiet = |f: &Function| f.name == "main" || f.name.starts_with("__") || is_constructor(f);
    file.functions.iter().filter(move |f| !f.in_test && f.lines >= LEAST_LINES && !quiet(f))
}

fn modules(look: &Look, coverage: &Coverage, concerned: &Concerned) -> Vec<Issue> {
    let tests = look.survey.files.iter().filter(|file| file.is_test);
    let subjects: HashSet<String> = tests.map(|file| subject_of(&file.path)).collect();
    let untested = concerned.files.iter().filter(|file| {
        let has_own = file.functions.iter().any(|f| f.is_test) || subjects.contains(&subject_of(&file.path));
        let mut own = own_functions(file).peekable();
        !has_own && own.peek().is_some() && !own.any(|f| coverage.reaches(file, f))
    });
    let issue = |file: &&FileFacts| Issue {
        subject: file.path.clone(),
        weakness: "module without tests".into(),
        title: format!("No test reaches `{}`", file.path),
        detail: format!(
            "{} in {} lines, and none is called by a test.",
            count(own_functions(file).count(), "function"),
            file.lines
        ),
        severity: Severity::High,
        confidence: 0.7,
        evidence: vec![file.path.clone()],
    };
    untested.take(15).map(issue).collect()
}

/// The largest functions that nothing reaches, in modules that have tests.
fn functions(coverage: &Coverage, concerned: &Concerned) -> Vec<Issue> {
    let all = concerned.files.iter().flat_map(|file| own_functions(file).map(move |f| (*file, f)));
    let gaps = all.filter(|(file, f)| !coverage.reaches(file, f) && !f.is_expected);
    let mut gaps: Vec<(&FileFacts, &Function)> = gaps.collect();
    gaps.sort_by_key(|(_, f)| std::cmp::Reverse(f.complexity * 5 + f.lines));
    let issue = |(file, function): (&FileFacts, &Function)| Issue {
        subject: function.full_name(),
        weakness: "untested function".into(),
        title: format!("No test reaches `{}`", function.full_name()),
        detail: format!(
            "`{}` has {} lines and {}.",
            function.signature,
            function.lines,
            count(function.complexity - 1, "decision")
        ),
        severity: if function.complexity > 5 { Severity::Medium } else { Severity::Low },
        confidence: 0.6,
        evidence: vec![file.at(function.line)],
    };
    gaps.into_iter().take(15).map(issue).collect()
}

/// Functions that can fail whose tests never see them fail.
fn error_paths(coverage: &Coverage, concerned: &Concerned) -> Vec<Issue> {
    let all = concerned.files.iter().flat_map(|file| own_functions(file).map(move |f| (*file, f)));
    let gaps = all.filter(|(file, f)| can_fail(file, f) && coverage.is_telling(f)).filter(|(_, f)| {
        let tests = coverage.tests_of(f);
        !tests.is_empty() && !tests.iter().any(|(file, test)| expects_failure(file, test))
    });
    let issue = |(file, function): (&FileFacts, &Function)| Issue {
        subject: function.full_name(),
        weakness: "error path without tests".into(),
        title: format!("No test sees `{}` fail", function.full_name()),
        detail: format!(
            "Called by {}, none of which looks for an error.",
            count(coverage.tests_of(function).len(), "test")
        ),
        severity: Severity::Low,
        confidence: 0.5,
        evidence: vec![file.at(function.line)],
    };
    gaps.take(10).map(issue).collect()
}

fn can_fail(file: &FileFacts, function: &Function) -> bool {
    let throws = file.language != "Rust" && file.language != "Go" && {
        let body = file.text.lines().skip(function.line.saturating_sub(1)).take(function.lines);
        body.into_iter()
            .any(|line| line.trim_start().starts_with("throw ") || line.trim_start().starts_with("raise "))
    };
    function.is_fallible || throws
}

fn expects_failure(file: &FileFacts, test: &Function) -> bool {
    let lower = test.name.to_lowercase();
    let said = [
        "err", "fail", "invalid", "reject", "throw", "panic", "refus", "wrong", "bad", "missing", "not_",
        "cannot", "unknown", "without", "broken", "no_",
    ];
    let calls = [
        "unwrap_err",
        "is_err",
        "expect_err",
        "raises",
        "toThrow",
        "toThrowError",
        "rejects",
        "assertThrows",
        "assertRaises",
        "Error",
        "exit",
        "assert_err",
    ];
    let body = || {
        file.text
            .lines()
            .skip(test.line.saturating_sub(1))
            .take(test.lines)
            .any(|line| line.contains("Err(") || line.contains("err == nil") || line.contains("catch"))
    };
    said.iter().any(|word| lower.contains(word))
        || test.calls.iter().any(|call| calls.contains(&call.as_str()))
        || body()
}
