//! `analyze.code`: the code that a described bug may be in, what is risky there, who calls it and what tests it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::coverage::Coverage;
use super::facts::{FileFacts, Function, Mark, MarkKind};
use super::look::{Look, claim, count};
use super::near::{Near, near};
use crate::finding::{Finding, Report};
use crate::request::{Request, Trouble};

const MAX_PLACES: usize = 12;
/// More decisions than a person keeps in mind.
const COMPLEX: usize = 12;

pub(super) fn analyze(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let near = near(&look, false);
    let coverage = Coverage::new(&look.survey);
    let callers = Callers::new(&look);
    let mut report = Report::default();
    let places: Vec<&Near> =
        near.iter().filter(|place| place.function().is_some()).take(MAX_PLACES).collect();
    for place in &places {
        let Some(function) = place.function() else { continue };
        let risks = risks(place.file, function);
        report.findings.push(suspect(&look, place, function, &risks, &callers, &coverage));
        for risk in &risks {
            let at = vec![place.file.at(risk.line)];
            report.claims.push(claim(&place.at(), risk.what, true, &at, look.sure(risk.sure)));
        }
    }
    report.findings.extend(messages(&look));
    report.summary = summary(&look, &places, &report);
    if places.is_empty() && !look.survey.files.is_empty() {
        let question =
            "No function shares enough words with the description: which part of the program shows the bug?";
        report.open_questions.push(question.into());
    }
    report
        .open_questions
        .push("Nothing was run: whether the bug is in one of these places is not known.".into());
    Ok(json!(look.finish(
        report,
        "functions ranked by the words of the description, their callers, tests and risky places"
    )))
}

fn summary(look: &Look, places: &[&Near], report: &Report) -> String {
    let Some(first) = places.first() else {
        return format!("No code was found that has to do with \"{}\".", look.title());
    };
    let risks = report.claims.len();
    format!(
        "{} may have to do with \"{}\", first `{}` ({}); {} in them.",
        count(places.len(), "function"),
        look.title(),
        first.name(),
        first.at(),
        count(risks, "risky place")
    )
}

fn suspect(
    look: &Look,
    place: &Near,
    function: &Function,
    risks: &[Risk],
    callers: &Callers,
    coverage: &Coverage,
) -> Finding {
    let mut detail = format!("`{}`", function.signature);
    if let Some(doc) = &function.doc {
        detail.push_str(&format!(" — {doc}"));
    }
    for risk in risks.iter().take(6) {
        detail.push_str(&format!(" Line {}: {}.", risk.line, risk.detail));
    }
    let telling = coverage.is_telling(function);
    let by = if telling { callers.of(function) } else { Vec::new() };
    detail.push_str(&match by.len() {
        _ if !telling => String::new(),
        0 => " Nothing else calls it by name.".to_string(),
        few => format!(
            " Called by {}.",
            listed(by.iter().map(|(file, f)| format!("`{}` ({})", f.name, file.path)), few)
        ),
    });
    let tests = if telling { coverage.tests_of(function) } else { &[] };
    detail.push_str(&match (telling, tests.len()) {
        (false, _) => String::new(),
        (true, 0) if coverage.reaches(place.file, function) => {
            " Tests reach it through other functions.".to_string()
        }
        (true, 0) => " No test calls it.".to_string(),
        (true, few) => {
            format!(" Tested by {}.", listed(tests.iter().map(|(_, test)| format!("`{}`", test.name)), few))
        }
    });
    let mut evidence = vec![place.at()];
    evidence.extend(risks.iter().take(4).map(|risk| place.file.at(risk.line)));
    evidence.extend(by.iter().take(3).map(|(file, f)| file.at(f.line)));
    evidence.extend(tests.iter().take(2).map(|(file, f)| file.at(f.line)));
    evidence.dedup();
    let worst = risks.iter().map(|risk| risk.sure).fold(0.0, f64::max);
    Finding {
        title: format!("`{}` may be involved", place.name()),
        detail,
        relevance: (place.score + 0.15 * worst).min(1.0),
        evidence,
        kind: "errors".into(),
        confidence: look.sure(0.3 + 0.5 * place.score),
    }
}

fn listed(names: impl Iterator<Item = String>, all: usize) -> String {
    let few: Vec<String> = names.take(4).collect();
    let more = all.saturating_sub(few.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", few.join(", "))
}

/// Who calls what, by name; names that many functions have say nothing.
struct Callers<'a> {
    by_name: HashMap<&'a str, Vec<(&'a FileFacts, &'a Function)>>,
}

impl<'a> Callers<'a> {
    fn new(look: &'a Look) -> Callers<'a> {
        let mut by_name: HashMap<&str, Vec<(&FileFacts, &Function)>> = HashMap::new();
        for file in look.products() {
            for function in file.functions.iter().filter(|function| !function.in_test) {
                for call in &function.calls {
                    by_name.entry(call).or_default().push((file, function));
                }
            }
        }
        Callers { by_name }
    }

    fn of(&self, function: &Function) -> Vec<(&'a FileFacts, &'a Function)> {
        let all = self.by_name.get(function.name.as_str()).into_iter().flatten();
        all.filter(|(_, caller)| caller.name != function.name).copied().collect()
    }
}

/// A place in a function that often has to do with bugs.
struct Risk {
    line: usize,
    what: &'static str,
    detail: String,
    sure: f64,
}

fn risks(file: &FileFacts, function: &Function) -> Vec<Risk> {
    let inside = |line: usize| line >= function.line && line <= function.end();
    let mut risks: Vec<Risk> =
        file.marks.iter().filter(|mark| inside(mark.line as usize)).filter_map(described).collect();
    for call in file.calls.iter().filter(|call| inside(call.line as usize) && file.language == "Rust") {
        if file.slice(call.name) == "unwrap" && !call.is_macro {
            let detail = "`unwrap` ends the program on an error".to_string();
            risks.push(Risk { line: call.line as usize, what: "unwrap", detail, sure: 0.6 });
        }
    }
    for todo in file.todos.iter().filter(|todo| inside(todo.line)) {
        risks.push(Risk {
            line: todo.line,
            what: "unfinished",
            detail: format!("\"{}\"", todo.text),
            sure: 0.6,
        });
    }
    if function.complexity > COMPLEX {
        let detail = format!("{} decisions in one function", function.complexity);
        risks.push(Risk { line: function.line, what: "complex", detail, sure: 0.4 });
    }
    risks.sort_by(|a, b| b.sure.total_cmp(&a.sure).then(a.line.cmp(&b.line)));
    risks
}

fn described(mark: &Mark) -> Option<Risk> {
    let note = &mark.note;
    let (what, detail, sure) = match mark.kind {
        MarkKind::EmptyCatch => ("swallowed error", format!("`{note}` does nothing with the error"), 0.8),
        MarkKind::Discarded => ("swallowed error", format!("the answer of `{note}` is thrown away"), 0.6),
        MarkKind::BroadCatch => ("broad handler", format!("`{note}` catches everything"), 0.5),
        MarkKind::OffByOne => ("off by one", format!("`{note}` may go one too far"), 0.7),
        MarkKind::ComputedIndex => ("unchecked index", format!("`{note}` must be in range"), 0.35),
        MarkKind::NoDefault => ("missing default", "a `switch` without a default".to_string(), 0.35),
        MarkKind::OpenChain => ("missing else", "`else if` without a last `else`".to_string(), 0.3),
        _ => return None,
    };
    Some(Risk { line: mark.line as usize, what, detail, sure })
}

/// What stands between the first and the last quote of a line.
fn quoted(line: &str) -> Option<&str> {
    let mark =
        line.chars().find(|c| matches!(c, '"' | '`')).or_else(|| line.contains('\'').then_some('\''))?;
    let (start, end) = (line.find(mark)?, line.rfind(mark)?);
    line.get(start + 1..end).filter(|said| said.contains(' '))
}

/// Lines whose text has most of the description's words: the message that a user saw comes from there.
fn messages(look: &Look) -> Vec<Finding> {
    if look.wanted.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for file in look.products() {
        for (index, line) in file.text.lines().enumerate() {
            let Some(said) = quoted(line) else { continue };
            let lower = said.to_lowercase();
            let having = look.wanted.iter().filter(|term| lower.contains(term.as_str())).count();
            let share = having as f64 / look.wanted.len() as f64;
            if having >= 2 && share >= 0.6 && look.relevance(said) >= 0.6 {
                found.push((share, file, index + 1));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
    let tell = |(share, file, line): (f64, &FileFacts, usize)| Finding {
        title: "A text with the words of the description".into(),
        detail: format!("`{}`", file.line_text(line)),
        relevance: 0.9 * share,
        evidence: vec![file.at(line)],
        kind: "errors".into(),
        confidence: look.sure(0.6),
    };
    found.into_iter().take(5).map(tell).collect()
}
