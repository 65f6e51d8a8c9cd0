//! The `SKILL.md` of a run: what was asked, how each step was told, what it found, what passed.

use std::fmt::Write;

use sage_core::diagnostic::printable;
use sage_core::run::Run;
use sage_core::skill::MAX_DESCRIPTION;
use serde_json::Value;

use super::facts::{Facts, StepFacts};

const MAX_STEPS: usize = 40;
/// Of one prompt or one result; the whole results are in `result.json`.
const MAX_TEXT_BYTES: usize = 2_000;
const MAX_FINDINGS: usize = 5;

pub fn text(run: &Run, facts: &Facts, name: &str, description: Option<&str>) -> String {
    let title = printable(&run.title);
    let description = match description {
        Some(given) => given.trim().to_string(),
        None => default_description(&title, facts),
    };
    let mut out = String::new();
    // JSON's quoted text is YAML's, too. Writing to a string cannot fail.
    let _ = write!(out, "---\nname: {name}\ndescription: {}\n---\n# {title}\n\n", Value::String(description));
    let _ = writeln!(
        out,
        "Use this when something like \"{title}\" is asked for again. It was made from a run of the template\n`{}` that succeeded. What is below are facts of that run: check what may have changed since then.\n",
        printable(&run.template.name)
    );
    out += "## Steps\n\n";
    facts.steps.iter().take(MAX_STEPS).for_each(|step| self::step(&mut out, step));
    if facts.steps.len() > MAX_STEPS {
        let _ = writeln!(out, "And {} more steps.\n", facts.steps.len() - MAX_STEPS);
    }
    list(&mut out, "Commands that passed", &facts.commands);
    list(&mut out, "Files", &facts.files);
    out
}

fn default_description(title: &str, facts: &Facts) -> String {
    let said = facts.steps.iter().rev().find_map(|step| step.result["summary"].as_str());
    let said = said.map(|text| printable(text.lines().next().unwrap_or_default())).unwrap_or_default();
    let checked = if facts.commands.is_empty() { "asked and found" } else { "asked, found and checked" };
    let text = format!("{title}: what was {checked} when it was last done. {said}");
    text.trim_end().chars().take(MAX_DESCRIPTION).collect()
}

fn step(out: &mut String, step: &StepFacts) {
    let _ = writeln!(out, "### {} ({})\n", printable(&step.path), printable(&step.type_name));
    if let Some(prompt) = &step.prompt {
        out.push_str("Asked:\n\n");
        fenced(out, "text", prompt);
    }
    let (kind, found) = found(&step.result);
    if !found.trim().is_empty() {
        out.push_str("Found:\n\n");
        fenced(out, kind, &found);
    }
}

/// What people want to read of a result.
fn found(result: &Value) -> (&'static str, String) {
    match result {
        Value::Null => ("text", String::new()),
        Value::String(text) => ("text", text.clone()),
        Value::Object(map) if map.get("summary").is_some_and(Value::is_string) => {
            let mut text = result["summary"].as_str().unwrap_or_default().to_string();
            for finding in result["findings"].as_array().into_iter().flatten().take(MAX_FINDINGS) {
                let title = finding["title"].as_str().unwrap_or_default();
                let places = finding["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let _ = write!(text, "\n- {title} {}", places.collect::<Vec<_>>().join(", "));
            }
            ("text", text)
        }
        Value::Object(map) if map.get("stdout").is_some_and(Value::is_string) => {
            ("text", result["stdout"].as_str().unwrap_or_default().trim().to_string())
        }
        other => ("json", serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

/// A fence that nothing inside can close.
fn fenced(out: &mut String, kind: &str, text: &str) {
    let head = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let cut = if head.len() < text.len() { "\n..." } else { "" };
    let longest = head.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "{fence}{kind}\n{}{cut}\n{fence}\n", head.trim_end());
}

fn list(out: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {heading}\n");
    for item in items {
        match item.lines().count() {
            0 | 1 => {
                let _ = writeln!(out, "- `{}`", printable(item).replace('`', "'"));
            }
            _ => fenced(out, "sh", item),
        }
    }
    out.push('\n');
}
