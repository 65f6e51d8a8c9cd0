//! What earlier steps came back with, from any agent: our own reports, a model's, plain text, or nothing.
//!
//! Agents do not keep to shapes, so everything is read leniently. What cannot be read is not guessed at.

use serde_json::{Map, Value};

use super::fuzzy;
use crate::finding::{Claim, Finding};

/// All that came before, in the order of the steps.
#[derive(Clone, Debug, Default)]
pub struct Earlier {
    pub said: Vec<Said>,
    /// Steps that came back with nothing.
    pub silent: Vec<String>,
    /// Files that a step wrote, with the step.
    files: Vec<(String, String)>,
}

/// One result of one step.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// `research/market`
    pub step: String,
    pub value: Value,
    pub summary: String,
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    pub open_questions: Vec<String>,
}

impl Earlier {
    pub fn read(steps: &Map<String, Value>) -> Earlier {
        let mut earlier = Earlier::default();
        for (step, value) in steps {
            let files = value["artifacts"].as_array().into_iter().flatten().filter_map(Value::as_str);
            earlier.files.extend(files.map(|file| (step.clone(), file.to_string())));
            earlier.take(step, unwrapped(value));
        }
        earlier
    }

    /// The list of a fan-out is one result for each of its items.
    fn take(&mut self, step: &str, value: &Value) {
        match value {
            Value::Null => self.silent.push(step.to_string()),
            Value::String(text) if text.trim().is_empty() => self.silent.push(step.to_string()),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    self.take(&format!("{step}[{index}]"), unwrapped(item));
                }
            }
            Value::Object(_) | Value::String(_) | Value::Array(_) => self.said.push(said(step, value)),
            Value::Bool(_) | Value::Number(_) => self.silent.push(step.to_string()),
        }
    }

    /// All findings with the step they are from, the most relevant first.
    pub fn findings(&self) -> Vec<(&str, &Finding)> {
        let mut all: Vec<(&str, &Finding)> = self
            .said
            .iter()
            .flat_map(|said| said.findings.iter().map(move |found| (said.step.as_str(), found)))
            .collect();
        all.sort_by(|a, b| b.1.relevance.total_cmp(&a.1.relevance));
        all
    }

    /// The newest specification, also one without a requirement.
    pub fn specification(&self) -> Option<&Value> {
        let is_it = |said: &&Said| said.value["requirements"].is_array();
        self.said.iter().rev().find(is_it).map(|said| &said.value)
    }

    /// The file that the newest specification was written to.
    pub fn specification_file(&self) -> Option<&str> {
        let is_it = |said: &&Said| said.value["requirements"].is_array();
        let step = &self.said.iter().rev().find(is_it)?.step;
        self.files.iter().find(|(of, _)| of == step).map(|(_, file)| file.as_str())
    }

    /// The first result that has `key` as a list with something in it: a specification, a plan.
    pub fn with_list(&self, key: &str) -> Option<&Value> {
        let has = |said: &&Said| said.value[key].as_array().is_some_and(|list| !list.is_empty());
        self.said.iter().rev().find(has).map(|said| &said.value)
    }
}

/// A step as expressions see it is `{state, result, full, artifacts}`; as a prompt sees it, the result alone.
fn unwrapped(value: &Value) -> &Value {
    match value.as_object() {
        Some(step) if step.contains_key("result") && step.contains_key("state") => &step["result"],
        _ => value,
    }
}

fn said(step: &str, value: &Value) -> Said {
    let findings = ["findings", "issues", "recommendations", "insights", "results"];
    let list = findings.iter().find_map(|key| value.get(*key).and_then(Value::as_array));
    let summary =
        value.as_str().map(first_sentence).or_else(|| value["summary"].as_str().map(str::to_string));
    let plain = value.as_array().filter(|_| list.is_none());
    Said {
        step: step.to_string(),
        value: value.clone(),
        summary: summary.unwrap_or_default(),
        findings: list.or(plain).into_iter().flatten().filter_map(fuzzy::finding).collect(),
        claims: value["claims"].as_array().into_iter().flatten().filter_map(fuzzy::claim).collect(),
        open_questions: fuzzy::texts(value.get("openQuestions").or_else(|| value.get("open_questions"))),
    }
}

fn first_sentence(text: &str) -> String {
    let line = text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    line[..end].to_string()
}
