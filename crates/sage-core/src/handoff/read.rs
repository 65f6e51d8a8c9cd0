//! Reads a handoff that somebody wrote, and says everything at once that is missing or wrong.
//!
//! Lists may be a single text. `timestamp`, `status` and `transitions` are sage's own: whatever is given for
//! them is replaced when the handoff is created.

use serde_json::{Map, Value};

use super::{Context, Deliverable, Handoff, Header, Issue, Memory, NextSteps, Severity, Status, WORK, is_id};
use crate::diagnostic::{did_you_mean, printable};
use crate::role::Role;

const TOP: &[&str] =
    &["handoff", "context", "deliverable", "nextSteps", "issues", "memory", "session", "transitions"];
const HEADER: &[&str] = &["from", "to", "timestamp", "type", "status", "handoffId"];
const CONTEXT: &[&str] = &["taskId", "phase", "scope", "dependencies"];
const DELIVERABLE: &[&str] = &["type", "location", "summary", "artifacts"];
const NEXT_STEPS: &[&str] = &["instructions", "constraints", "acceptanceCriteria"];
const ISSUE: &[&str] = &["severity", "description", "recommendation"];
const MEMORY: &[&str] = &["created", "referenced"];

/// One thing that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// `context.taskId`
    pub field: String,
    /// `is missing`
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", printable(&self.field), self.what)
    }
}

impl Problem {
    pub fn new(field: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { field: field.into(), what: what.into() }
    }
}

/// A whole handoff, or all of its problems. Without an id it gets none: the store gives it one.
pub fn read(value: &Value) -> Result<Handoff, Vec<Problem>> {
    let mut problems = Vec::new();
    let empty = Map::new();
    let top = value.as_object().unwrap_or_else(|| {
        problems
            .push(Problem::new("handoff", "must be in an object: {\"handoff\": {...}, \"context\": {...}}"));
        &empty
    });
    let mut reader = Reader { problems };
    reader.known("", top, TOP);
    let header = reader.header(top);
    let context = reader.part(top, "context", CONTEXT, |part| Context {
        task_id: part.text("taskId"),
        phase: part.text("phase"),
        scope: part.text("scope"),
        dependencies: part.texts("dependencies"),
    });
    let deliverable = reader.part(top, "deliverable", DELIVERABLE, |part| Deliverable {
        kind: part.text("type"),
        location: part.text("location"),
        summary: part.text("summary"),
        artifacts: part.texts("artifacts"),
    });
    let next_steps = reader.part(top, "nextSteps", NEXT_STEPS, |part| NextSteps {
        instructions: part.some_texts("instructions"),
        constraints: part.texts("constraints"),
        acceptance_criteria: part.some_texts("acceptanceCriteria"),
    });
    let issues = reader.issues(top.get("issues"));
    let mut memory = Memory::default();
    if is_given(top.get("memory")) {
        memory = reader.part(top, "memory", MEMORY, |part| Memory {
            created: part.texts("created"),
            referenced: part.texts("referenced"),
        });
    }
    let session = reader.session(top.get("session"));
    match header {
        Some(handoff) if reader.problems.is_empty() => {
            let transitions = Vec::new();
            Ok(Handoff { handoff, context, deliverable, next_steps, issues, memory, session, transitions })
        }
        _ => Err(reader.problems),
    }
}

fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

struct Reader {
    problems: Vec<Problem>,
}

/// One object of a handoff and its name.
struct Part<'r, 'v> {
    reader: &'r mut Reader,
    name: &'r str,
    fields: &'v Map<String, Value>,
}

impl Reader {
    fn say(&mut self, field: impl Into<String>, what: impl Into<String>) {
        self.problems.push(Problem::new(field, what));
    }

    fn known(&mut self, place: &str, fields: &Map<String, Value>, known: &[&str]) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let field = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            let near = did_you_mean(name, known.iter().copied());
            self.say(field, format!("is not known; {}", near.unwrap_or_else(|| known.join(", "))));
        }
    }

    /// An object that is not there is one without fields: each of them is missing.
    fn part<T>(
        &mut self,
        top: &Map<String, Value>,
        name: &str,
        known: &[&str],
        read: impl FnOnce(&mut Part<'_, '_>) -> T,
    ) -> T {
        let empty = Map::new();
        let fields = match top.get(name) {
            Some(Value::Object(fields)) => fields,
            None | Some(Value::Null) => &empty,
            Some(_) => {
                self.say(name, "must be an object");
                &empty
            }
        };
        self.known(name, fields, known);
        read(&mut Part { reader: self, name, fields })
    }

    fn header(&mut self, top: &Map<String, Value>) -> Option<Header> {
        self.part(top, "handoff", HEADER, |part| {
            let (from, to) = (part.role("from"), part.role("to"));
            let kind = if part.is_given("type") { part.text("type") } else { WORK.into() };
            if part.is_given("status") && part.fields["status"] != Status::Pending.name() {
                part.say("status", "of a new one is `pending`; leave it out");
            }
            let handoff_id = if part.is_given("handoffId") { part.text("handoffId") } else { String::new() };
            if !handoff_id.is_empty() && !is_id(&handoff_id) {
                part.say(
                    "handoffId",
                    "has other characters than letters, digits, `-`, `_` and `.`; leave it out",
                );
            }
            let timestamp = String::new();
            Some(Header { from: from?, to: to?, timestamp, kind, status: Status::Pending, handoff_id })
        })
    }

    fn issues(&mut self, given: Option<&Value>) -> Vec<Issue> {
        let list = match given {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.say("issues", "must be a list");
                return Vec::new();
            }
        };
        let mut issues = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let name = format!("issues[{index}]");
            let Some(fields) = value.as_object() else {
                self.say(name, "must be an object: {severity, description, recommendation}");
                continue;
            };
            self.known(&name, fields, ISSUE);
            let mut part = Part { reader: self, name: &name, fields };
            let severity = part.severity();
            let (description, recommendation) = (part.text("description"), part.text("recommendation"));
            issues.extend(severity.map(|severity| Issue { severity, description, recommendation }));
        }
        issues
    }

    fn session(&mut self, given: Option<&Value>) -> Option<String> {
        match given {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().into()),
            Some(_) => {
                self.say("session", "must be the name of a session, or left out");
                None
            }
        }
    }
}

impl Part<'_, '_> {
    fn is_given(&self, name: &str) -> bool {
        is_given(self.fields.get(name))
    }

    fn say(&mut self, name: &str, what: impl Into<String>) {
        let field = format!("{}.{name}", self.name);
        self.reader.say(field, what);
    }

    /// Text that must be there.
    fn text(&mut self, name: &str) -> String {
        match self.fields.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => return text.trim().into(),
            None | Some(Value::Null) => self.say(name, "is missing"),
            Some(Value::String(_)) => self.say(name, "is empty"),
            Some(_) => self.say(name, "must be text"),
        }
        String::new()
    }

    /// A list of texts, or one text; nothing is an empty list.
    fn texts(&mut self, name: &str) -> Vec<String> {
        let list = match self.fields.get(name) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(list)) => list.as_slice(),
            Some(single) => std::slice::from_ref(single),
        };
        let texts: Option<Vec<String>> = list
            .iter()
            .map(|item| item.as_str().map(str::trim).filter(|text| !text.is_empty()).map(String::from))
            .collect();
        if texts.is_none() {
            self.say(name, "must be a list of texts that are not empty");
        }
        texts.unwrap_or_default()
    }

    fn some_texts(&mut self, name: &str) -> Vec<String> {
        let before = self.reader.problems.len();
        let texts = self.texts(name);
        if texts.is_empty() && self.reader.problems.len() == before {
            self.say(name, "is missing");
        }
        texts
    }

    fn role(&mut self, name: &str) -> Option<Role> {
        let text = self.text(name);
        if text.is_empty() {
            return None;
        }
        let role = Role::parse(&text.to_lowercase());
        role.map_err(|unknown| self.say(name, format!("`{}` is no role; {}", printable(&text), unknown.hint)))
            .ok()
    }

    fn severity(&mut self) -> Option<Severity> {
        let text = self.text("severity");
        if text.is_empty() {
            return None;
        }
        let found = Severity::ALL.into_iter().find(|severity| severity.name() == text.to_lowercase());
        if found.is_none() {
            let names = Severity::ALL.map(Severity::name);
            let near = did_you_mean(&text.to_lowercase(), names).unwrap_or_else(|| names.join(", "));
            self.say("severity", format!("`{}` is not known; {near}", printable(&text)));
        }
        found
    }
}
