//! The verdict on research, by rules: is there enough of it, does its evidence exist, does it contradict itself?

use serde_json::{Value, json};

use super::earlier::{Earlier, Said};
use super::fuzzy;
use super::markdown::count;
use super::place::{Standing, standing};
use crate::finding::{Claim, Finding};
use crate::request::{Request, Trouble};
use crate::words::{share, terms};

/// Without `params.minFindings`.
const LEAST: u64 = 3;
/// This share of an objection's words must be in the new findings for it to count as answered.
const ANSWERED: f64 = 0.5;
/// How many wrong places are listed one by one.
const MOST_ISSUES: usize = 20;

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let earlier = Earlier::read(&request.steps);
    let conflicts = conflicts(&earlier);
    let mut issues = thin(request, &earlier);
    issues.extend(wrong_places(request, &earlier));
    issues.extend(unanswered(request, &earlier));
    let stuck = is_stuck(request, &issues);
    let verdict = match () {
        () if !conflicts.is_empty() || stuck => "ESCALATE",
        () if issues.is_empty() => "APPROVED",
        () => "REQUEST_CHANGES",
    };
    let findings = earlier.findings().len();
    let summary = match verdict {
        "APPROVED" => format!("{findings} findings; every place they name exists; no two claims contradict."),
        "ESCALATE" if stuck => {
            "The same was asked for the round before and nothing changed: a person decides.".to_string()
        }
        "ESCALATE" => {
            format!(
                "{} between steps: a person decides which is right.",
                count(conflicts.len(), "contradiction")
            )
        }
        _ => format!("{} to change before this is enough to build on.", count(issues.len(), "thing")),
    };
    let mut all = conflicts;
    all.extend(issues);
    Ok(json!({"verdict": verdict, "summary": summary, "issues": all, "findings": findings,
        "method": "offline: evidence looked up in the project, claims compared by value; nothing was judged by a model"}))
}

fn issue(title: String, detail: String, severity: &str, evidence: Vec<String>) -> Value {
    json!({"title": title, "detail": detail, "severity": severity, "evidence": evidence})
}

/// Too few findings that stand on something in the project.
fn thin(request: &Request, earlier: &Earlier) -> Vec<Value> {
    let least = request.params.get("minFindings").and_then(Value::as_u64).unwrap_or(LEAST) as usize;
    let stands = |found: &Finding| {
        let there = |place: &String| standing(&request.project, place) == Standing::There;
        found.evidence.iter().any(there)
    };
    let all = earlier.findings();
    let standing = all.iter().filter(|(_, found)| stands(found)).count();
    if standing >= least {
        return Vec::new();
    }
    let title = match all.len() {
        0 => "No findings".to_string(),
        count => {
            format!("{standing} of {count} findings stand on a place in the project, {least} are needed")
        }
    };
    let silent = match earlier.silent.is_empty() {
        true => String::new(),
        false => format!(" Nothing came from: {}.", earlier.silent.join(", ")),
    };
    let detail = format!("Name files and lines (`path:line`) that show what is said.{silent}");
    vec![issue(title, detail, "high", Vec::new())]
}

fn wrong_places(request: &Request, earlier: &Earlier) -> Vec<Value> {
    let mut issues = Vec::new();
    for (step, found) in earlier.findings() {
        for place in &found.evidence {
            if let Standing::Missing(why) = standing(&request.project, place) {
                let title = format!("Evidence that does not exist: {place}");
                let detail = format!("{step} says \"{}\" and points there, but {why}.", found.title);
                issues.push(issue(title, detail, "high", vec![place.clone()]));
            }
        }
    }
    issues.truncate(MOST_ISSUES);
    issues
}

/// What the round before asked for (`params.feedback`) and no finding speaks about.
fn unanswered(request: &Request, earlier: &Earlier) -> Vec<Value> {
    let said: Vec<String> =
        earlier.findings().iter().flat_map(|(_, f)| terms(&format!("{} {}", f.title, f.detail))).collect();
    let about_places = |title: &str| {
        title.starts_with("Evidence that") || title.contains("findings stand") || title == "No findings"
    };
    let asked = asked(request);
    let open = asked.iter().filter(|title| !about_places(title) && share(&terms(title), &said) < ANSWERED);
    let to_issue = |title: &String| {
        let title = title.strip_prefix("Not answered: ").unwrap_or(title);
        let detail = "It was asked for in the round before; no finding speaks about it.".to_string();
        issue(format!("Not answered: {title}"), detail, "medium", Vec::new())
    };
    open.map(to_issue).collect()
}

/// The objections of the round before, whatever shape they come in.
fn asked(request: &Request) -> Vec<String> {
    match request.params.get("feedback") {
        Some(Value::Object(critique)) if critique.contains_key("issues") => {
            fuzzy::texts(critique.get("issues"))
        }
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(critique)) => fuzzy::texts(critique.get("issues")),
            Ok(list @ Value::Array(_)) => fuzzy::texts(Some(&list)),
            _ => text
                .lines()
                .map(|line| line.trim_start_matches(['-', '*', ' ']).trim())
                .filter(|line| !line.is_empty())
                .map(str::to_string)
                .collect(),
        },
        other => fuzzy::texts(other),
    }
}

/// A later round with exactly the objections of the one before: another round brings nothing.
fn is_stuck(request: &Request, issues: &[Value]) -> bool {
    let round = request.params.get("round");
    let round = round.and_then(|r| r.as_u64().or_else(|| r.as_str()?.trim().parse().ok())).unwrap_or(1);
    let asked = asked(request);
    let same = |issue: &Value| asked.iter().any(|title| issue["title"] == title.as_str());
    round > 1 && !issues.is_empty() && issues.iter().all(same)
}

/// Two steps that give different values to the same thing.
fn conflicts(earlier: &Earlier) -> Vec<Value> {
    let claims: Vec<(&Said, &Claim)> =
        earlier.said.iter().flat_map(|said| said.claims.iter().map(move |claim| (said, claim))).collect();
    let mut found: Vec<Value> = Vec::new();
    for (at, (one, a)) in claims.iter().enumerate() {
        let other = claims[at + 1..].iter().find(|(two, b)| {
            one.step != two.step
                && same(&a.subject, &b.subject)
                && same(&a.predicate, &b.predicate)
                && !equal(&a.value, &b.value)
        });
        let Some((two, b)) = other else { continue };
        let title = format!("Contradiction: {} {}", a.subject, a.predicate);
        if found.iter().all(|before| before["title"] != title.as_str()) {
            let detail =
                format!("{} says {}, {} says {}.", one.step, told(&a.value), two.step, told(&b.value));
            let evidence = a.evidence.iter().chain(&b.evidence).cloned().collect();
            found.push(issue(title, detail, "high", evidence));
        }
    }
    found
}

fn same(a: &str, b: &str) -> bool {
    a.trim().eq_ignore_ascii_case(b.trim())
}

/// `1` and `1.0` are one value, and so are `Yes` and `yes`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => same(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().all(|x| b.iter().any(|y| equal(x, y)))
        }
        _ => a == b,
    }
}

fn told(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("\"{text}\""))
}
