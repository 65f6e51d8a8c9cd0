//! A synthesis as Markdown: everything that the JSON has, for people and for the prompt of whoever goes on.

use std::fmt::Write as _;

use serde_json::Value;

use super::output::{Conflict, Mark, Remark, Synthesis};

/// A value in a sentence: text without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

pub fn document(synthesis: &Synthesis) -> String {
    let mut text = format!("# Synthesis\n\n{}\n", line(&synthesis.summary));
    if let Some(why) = &synthesis.escalate_why {
        let _ = write!(text, "\n**A person should decide:** {}\n", line(why));
    }
    agreements(synthesis, &mut text);
    if !synthesis.conflicts.is_empty() {
        text.push_str("\n## Conflicts\n");
        synthesis.conflicts.iter().for_each(|conflict| table(conflict, &mut text));
    }
    single(synthesis, &mut text);
    insights(synthesis, &mut text);
    remarks("Looked and found nothing", &synthesis.clear, &mut text);
    remarks("Gaps", &synthesis.gaps, &mut text);
    remarks("Not independent", &synthesis.dependent, &mut text);
    remarks("Notes", &synthesis.notes, &mut text);
    let confidence = &synthesis.confidence;
    if confidence.independent == 0 && !synthesis.escalate {
        return text;
    }
    let _ = write!(
        text,
        "\n## Confidence\n\n{} ({} to {}), from {} independent {}. Never above the best independent evidence.\n",
        confidence.value,
        confidence.low,
        confidence.high,
        confidence.independent,
        if confidence.independent == 1 { "source" } else { "sources" },
    );
    text
}

fn agreements(synthesis: &Synthesis, text: &mut String) {
    if synthesis.agreements.is_empty() {
        return;
    }
    text.push_str("\n## Agreements\n\n");
    for agreement in &synthesis.agreements {
        let silent = match agreement.silent.is_empty() {
            true => String::new(),
            false => format!("; silent: {}", agreement.silent.join(", ")),
        };
        let _ = writeln!(
            text,
            "- **{}**, {}: {} - {}; independent: {}; confidence {} ({} to {}){silent}{}",
            line(&agreement.subject),
            line(&agreement.predicate),
            line(&plain(&agreement.value)),
            agreement.sources.join(", "),
            agreement.independent_sources,
            agreement.confidence,
            agreement.range[0],
            agreement.range[1],
            evidence(&agreement.evidence),
        );
    }
}

fn table(conflict: &Conflict, text: &mut String) {
    let critical = if conflict.critical { " (critical)" } else { "" };
    let _ = write!(
        text,
        "\n### {}: {}{critical}\n\n{}. Not resolved; confidence in the first side: {}\n\n",
        line(&conflict.subject),
        line(&conflict.predicate),
        line(&conflict.why),
        conflict.confidence,
    );
    text.push_str("| value | sources | evidence | confidence |\n|---|---|---|---|\n");
    for side in &conflict.sides {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(&plain(&side.value)),
            cell(&side.sources.join(", ")),
            cell(&side.evidence.join(", ")),
            side.confidence,
        );
    }
}

/// What one source alone says, and what the only source says.
fn single(synthesis: &Synthesis, text: &mut String) {
    if !synthesis.minority.is_empty() {
        text.push_str("\n## Said by one source only\n\n");
    }
    for said in &synthesis.minority {
        let mark = match said.mark {
            Mark::Contradicted => "others contradict",
            Mark::Alone => "others are silent",
        };
        let _ = writeln!(
            text,
            "- **{}**, {}: {} - {}; {mark}; confidence {}{}",
            line(&said.subject),
            line(&said.predicate),
            line(&plain(&said.value)),
            said.source,
            said.confidence,
            evidence(&said.evidence),
        );
    }
    let lone: Vec<_> = synthesis.partial.iter().filter(|partial| partial.sources.len() == 1).collect();
    if !lone.is_empty() {
        text.push_str("\n## Said by the only source\n\n");
    }
    for said in lone {
        let _ = writeln!(
            text,
            "- **{}**, {}: {} - {}; confidence {}{}",
            line(&said.subject),
            line(&said.predicate),
            line(&plain(&said.value)),
            said.sources.join(", "),
            said.confidence,
            evidence(&said.evidence),
        );
    }
}

fn insights(synthesis: &Synthesis, text: &mut String) {
    if synthesis.insights.is_empty() {
        return;
    }
    text.push_str("\n## Only seen together\n\n");
    for insight in &synthesis.insights {
        let _ = writeln!(text, "- {}; confidence {}", line(&insight.text), insight.confidence);
    }
}

fn remarks(title: &str, remarks: &[Remark], text: &mut String) {
    if remarks.is_empty() {
        return;
    }
    let _ = write!(text, "\n## {title}\n\n");
    for remark in remarks {
        let _ = writeln!(text, "- {}: {}", line(&remark.source), line(&remark.why));
    }
}

fn evidence(pieces: &[String]) -> String {
    match pieces.is_empty() {
        true => String::new(),
        false => format!("; evidence: {}", line(&pieces.join(", "))),
    }
}

/// What an agent wrote must not become a heading or a list of its own.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}
