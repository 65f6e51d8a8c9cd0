//! `patterns.extract`: what this code base does everywhere, in figures, with the places that do it otherwise.
//!
//! A pattern's confidence is the share of the places that follow it. Conventions matter to every feature.

mod documents;
mod errors;
mod framework;
mod naming;
mod page;
mod structure;
mod tests_of;
mod typing;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::look::{Look, claim, count, listed};
use super::near::{Near, near};
use crate::finding::{Finding, Report};
use crate::request::{Request, Trouble};

/// The least that any convention matters to a feature.
const CONVENTION: f64 = 0.6;
const MAX_NEAR: usize = 10;
const EXAMPLES: usize = 3;

/// Something that is done the same way in many places.
pub(super) struct Pattern {
    /// `naming`, `typing`, `errors`, `tests`, `structure`, `quality`
    pub kind: &'static str,
    /// `function naming`
    pub subject: String,
    /// `style`
    pub predicate: &'static str,
    pub value: Value,
    pub title: String,
    pub detail: String,
    /// Of the places, the share that follows it.
    pub share: f64,
    pub places: usize,
    pub examples: Vec<String>,
    /// With what is different: `Read_all src/a.rs:3`.
    pub exceptions: Vec<String>,
}

pub(super) fn extract(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let mut patterns = naming::patterns(&look);
    patterns.extend(typing::patterns(&look));
    patterns.extend(errors::patterns(&look));
    patterns.extend(tests_of::patterns(&look));
    patterns.extend(structure::patterns(&look));
    patterns.extend(documents::patterns(&look));
    let near = near(&look, false);
    let mut report = Report { summary: summary(&look, &patterns, &near), ..Report::default() };
    report.findings.extend(patterns.iter().map(|pattern| finding(&look, pattern)));
    report.findings.extend(near.iter().take(MAX_NEAR).map(|place| near_finding(&look, place)));
    report.claims = patterns
        .iter()
        .map(|pattern| {
            claim(
                &pattern.subject,
                pattern.predicate,
                pattern.value.clone(),
                &pattern.examples,
                look.sure(pattern.share),
            )
        })
        .collect();
    questions(&look, &near, &mut report);
    let report = look.finish(report, "conventions counted over all functions, types and tests");
    let document = page::page(&look, &patterns, &near, &report.method);
    let mut result = json!(report);
    result["document"] = json!(document);
    Ok(result)
}

fn summary(look: &Look, patterns: &[Pattern], near: &[Near]) -> String {
    if look.survey.files.is_empty() {
        return "There is no source code here that could be read, so there are no patterns to follow.".into();
    }
    let mut kinds = HashSet::new();
    let strong = patterns.iter().filter(|p| p.share >= 0.8 && p.kind != "structure");
    let strongest: Vec<&str> = strong.filter(|p| kinds.insert(p.kind)).map(|p| p.title.as_str()).collect();
    let mut text = format!("{}: {}.", listed(&look.survey.languages), count(patterns.len(), "pattern"));
    if !strongest.is_empty() {
        text.push_str(&format!(" {}.", strongest.join("; ")));
    }
    if let Some(first) = near.first() {
        let all = count(near.len(), "function");
        text.push_str(&format!(
            " {all} or types have to do with \"{}\", first `{}`.",
            look.title(),
            first.name()
        ));
    }
    text
}

fn finding(look: &Look, pattern: &Pattern) -> Finding {
    let places = pattern.examples.iter().chain(pattern.exceptions.iter().take(5));
    let closest = places.map(|place| look.relevance(place)).fold(0.0, f64::max);
    let mut detail = pattern.detail.clone();
    if !pattern.exceptions.is_empty() {
        let few: Vec<&str> = pattern.exceptions.iter().take(5).map(String::as_str).collect();
        detail.push_str(&format!(" Exceptions: {}.", few.join(", ")));
    }
    Finding {
        title: pattern.title.clone(),
        detail,
        relevance: CONVENTION + (1.0 - CONVENTION) * 0.75 * closest,
        evidence: evidence(pattern),
        kind: pattern.kind.to_string(),
        confidence: look.sure(pattern.share),
    }
}

/// The examples, then the places of the exceptions.
fn evidence(pattern: &Pattern) -> Vec<String> {
    let place = |text: &String| text.rsplit(' ').next().unwrap_or(text).trim_matches('`').to_string();
    pattern.examples.iter().chain(pattern.exceptions.iter().take(5)).map(place).collect()
}

fn near_finding(look: &Look, place: &Near) -> Finding {
    let doc = place.doc().map(|doc| format!(" — {doc}")).unwrap_or_default();
    let calls = place.function().filter(|function| !function.calls.is_empty()).map(|function| {
        let few: Vec<&str> = function.calls.iter().take(6).map(String::as_str).collect();
        format!(" Calls {}.", few.join(", "))
    });
    Finding {
        title: format!("Near this feature: `{}`", place.name()),
        detail: format!("`{}`{doc}{}", place.signature(), calls.unwrap_or_default()),
        relevance: place.score,
        evidence: vec![place.at()],
        kind: "near".into(),
        confidence: look.sure(0.5 + 0.5 * place.score),
    }
}

fn questions(look: &Look, near: &[Near], report: &mut Report) {
    if near.is_empty() && !look.wanted.is_empty() && !look.survey.files.is_empty() {
        let title = look.title();
        report
            .open_questions
            .push(format!("Nothing in the code shares enough words with \"{title}\": where does it belong?"));
    }
}

/// The best examples of a list, from different files: near the title first, then spread over the project.
pub(super) fn best(look: &Look, places: Vec<String>) -> Vec<String> {
    let mut files: HashMap<&str, f64> = HashMap::new();
    for place in &places {
        files.entry(file_of(place)).or_insert_with_key(|file| look.relevance(file));
    }
    let step = (files.len() / EXAMPLES).max(1);
    let mut near: Vec<(&str, f64)> =
        files.iter().filter(|(_, near)| **near > 0.0).map(|(f, n)| (*f, *n)).collect();
    near.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let mut seen = HashSet::new();
    let firsts: Vec<&String> = places.iter().filter(|place| seen.insert(file_of(place))).collect();
    let related = near.iter().filter_map(|(file, _)| firsts.iter().find(|place| file_of(place) == *file));
    let spread = firsts.iter().step_by(step);
    let mut chosen: Vec<String> = Vec::new();
    for place in related.take(EXAMPLES).chain(spread) {
        if chosen.len() < EXAMPLES && !chosen.contains(place) {
            chosen.push(place.to_string());
        }
    }
    chosen
}

fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(file, _)| file)
}
