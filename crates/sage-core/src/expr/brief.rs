//! The filter `brief`: results of earlier steps as a prompt should read them.
//!
//! `{{ steps | brief }}` gives each step a heading and its result as prose: a document as it is, findings as a list
//! with relevance and evidence, skills as a list, anything else as one line of JSON. The same facts as JSON cost a
//! third more tokens.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// What findings already say, and what is for synthesis, not for a reader.
const UNSAID: &[&str] = &["findings", "claims", "summary", "openQuestions", "method", "document", "skills"];

/// All of `steps`, in order.
pub fn steps(steps: &Value) -> String {
    let mut text = String::new();
    let Some(steps) = steps.as_object() else { return result(steps) };
    for (path, step) in steps {
        let outcome = step.get("result").unwrap_or(&Value::Null);
        let state = step.get("state").and_then(Value::as_str).unwrap_or_default();
        let body = match (outcome, state) {
            (Value::Null, "skipped") => continue,
            (Value::Null, "succeeded") => "no result".to_string(),
            (Value::Null, state) => format!("no result: {state}"),
            (outcome, _) => result(outcome),
        };
        let _ = writeln!(text, "### {path}");
        if let Some(pointer) = step.get("pointer").and_then(Value::as_str) {
            let _ = writeln!(text, "({pointer})");
        }
        let _ = writeln!(text, "{}\n", body.trim_end());
    }
    text.trim_end().to_owned()
}

/// One result.
fn result(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(map) => object(map),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            let each = items.iter().filter_map(Value::as_object).map(object);
            each.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn object(map: &Map<String, Value>) -> String {
    let text_of = |name: &str| map.get(name).and_then(Value::as_str);
    if let Some(document) = text_of("document") {
        return document.to_owned();
    }
    let mut text = String::new();
    if let Some(summary) = text_of("summary") {
        let _ = writeln!(text, "{summary}");
    }
    for finding in list(map, "findings") {
        finding_line(finding, &mut text);
    }
    for skill in list(map, "skills") {
        let of = |name: &str| skill.get(name).and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(text, "- skill {}: {} ({})", of("name"), of("description"), of("path"));
        // Only of those that a person has approved for use.
        of("instructions").trim().lines().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
    }
    let questions: Vec<&str> = list(map, "openQuestions").iter().filter_map(Value::as_str).collect();
    if !questions.is_empty() {
        let _ = writeln!(text, "Open questions: {}", questions.join(" | "));
    }
    let rest: Map<String, Value> = map
        .iter()
        .filter(|(name, value)| !UNSAID.contains(&name.as_str()) && !is_empty(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !rest.is_empty() {
        let _ = writeln!(text, "{}", Value::Object(rest));
    }
    text.trim_end().to_owned()
}

fn list<'a>(map: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    map.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// `- title (0.92): detail [a.rs:4; b.rs]`
fn finding_line(finding: &Value, text: &mut String) {
    let Value::Object(map) = finding else {
        let _ = writeln!(text, "- {}", finding.as_str().map_or_else(|| finding.to_string(), str::to_owned));
        return;
    };
    let of = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default();
    let _ = write!(text, "- {}", of("title"));
    if let Some(relevance) = map.get("relevance").and_then(Value::as_f64) {
        let _ = write!(text, " ({relevance:.2})");
    }
    if !of("detail").is_empty() {
        let _ = write!(text, ": {}", of("detail").trim());
    }
    let evidence = match map.get("evidence") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(items)) => {
            let texts =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    };
    let _ = if evidence.is_empty() { writeln!(text) } else { writeln!(text, " [{evidence}]") };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R10
    #[test]
    fn results_are_told_as_prose_with_their_evidence() {
        let told = steps(&json!({
            "research/market": {"state": "succeeded", "pointer": "1 of 60 findings; all: sage result x research/market --full",
                "result": {"summary": "Two markets.", "method": "m", "claims": [{"subject": "s"}],
                    "findings": [{"title": "Cards", "detail": "Most pay so.", "relevance": 0.9, "evidence": ["a.md:3", "b.md"]}],
                    "openQuestions": ["Which countries?"], "extra": 5}},
            "research/failed": {"state": "failed", "result": null},
            "research/off": {"state": "skipped", "result": null},
            "specification/specify": {"state": "succeeded", "result": {"document": "# Spec\nBody\n", "summary": "s"}},
            "look/tests": {"state": "succeeded", "result": [1, 2]},
        }));
        assert_eq!(
            told,
            "### research/market\n(1 of 60 findings; all: sage result x research/market --full)\nTwo markets.\n\
             - Cards (0.90): Most pay so. [a.md:3; b.md]\nOpen questions: Which countries?\n{\"extra\":5}\n\n\
             ### research/failed\nno result: failed\n\n### specification/specify\n# Spec\nBody\n\n### look/tests\n[1,2]"
        );
    }

    // covers: R12
    #[test]
    fn skills_are_offered_with_their_instructions_where_they_may_be_used() {
        let told = steps(&json!({"research/skills": {"state": "succeeded", "result": {"skills": [
            {"name": "cards", "description": "Take cards", "path": ".sage/skills/cards", "instructions": "1. Ask.\n2. Charge.\n"},
            {"name": "books", "description": "Keep books", "path": ".sage/skills/books"}]}}}));
        assert_eq!(
            told,
            "### research/skills\n- skill cards: Take cards (.sage/skills/cards)\n  1. Ask.\n  2. Charge.\n\
             - skill books: Keep books (.sage/skills/books)"
        );
    }

    #[test]
    fn odd_shapes_are_told_as_they_are() {
        assert_eq!(steps(&json!("text")), "text");
        assert_eq!(
            steps(&json!({"a/b": {"state": "succeeded", "result": {"findings": ["plain", 3]}}})),
            "### a/b\n- plain\n- 3"
        );
        assert_eq!(steps(&json!({})), "");
    }
}
