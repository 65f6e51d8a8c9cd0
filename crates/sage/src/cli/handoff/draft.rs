//! A handoff from flags, from a file, or from a file with flags over it.

use std::io::Read;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::failure::Failure;

/// Of a file; the store takes less.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, clap::Args)]
pub struct Flags {
    /// Read the handoff from a JSON file, or from stdin with `-`; flags win over it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Who hands over: planner, implementer, auditor, cleaner, orchestrator
    #[arg(long, value_name = "ROLE")]
    from: Option<String>,
    /// Who gets it
    #[arg(long, value_name = "ROLE")]
    to: Option<String>,
    /// work, or requires_replanning to go back to the planner
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// What it is about (context.taskId): the handoffs with the same one are a chain
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// Where in the work it is (context.phase)
    #[arg(long)]
    phase: Option<String>,
    /// What belongs to it and what does not (context.scope)
    #[arg(long)]
    scope: Option<String>,
    /// What it depends on; may be given several times
    #[arg(long = "depends-on", value_name = "NAME")]
    dependencies: Vec<String>,
    /// What is delivered: plan, code, report (deliverable.type)
    #[arg(long, value_name = "TYPE")]
    deliverable: Option<String>,
    /// Where it is: a path of the project, or an address
    #[arg(long)]
    location: Option<String>,
    /// What was done, in short
    #[arg(long)]
    summary: Option<String>,
    /// A file that belongs to it; may be given several times
    #[arg(long = "artifact", value_name = "PATH")]
    artifacts: Vec<String>,
    /// What is to be done next; may be given several times
    #[arg(long = "instruction", value_name = "TEXT")]
    instructions: Vec<String>,
    /// What must be kept to; may be given several times
    #[arg(long = "constraint", value_name = "TEXT")]
    constraints: Vec<String>,
    /// How it is seen that it is done; may be given several times
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Vec<String>,
    /// "severity | description | recommendation"; may be given several times
    #[arg(long = "issue", value_name = "ISSUE")]
    issues: Vec<String>,
    /// A memory that was created; may be given several times
    #[arg(long = "created", value_name = "NAME")]
    created: Vec<String>,
    /// A memory that was used; may be given several times
    #[arg(long = "referenced", value_name = "NAME")]
    referenced: Vec<String>,
    /// The session that it came out of
    #[arg(long)]
    session: Option<String>,
}

impl Flags {
    pub fn draft(&self) -> Result<Value, Failure> {
        let mut draft = match &self.file {
            Some(file) => read(file)?,
            None => json!({}),
        };
        let Value::Object(top) = &mut draft else { return Ok(draft) };
        let text = |given: &Option<String>| given.clone().map(Value::String);
        let list = |given: &Vec<String>| (!given.is_empty()).then(|| json!(given));
        put(top, "handoff", [("from", text(&self.from)), ("to", text(&self.to)), ("type", text(&self.kind))]);
        put(
            top,
            "context",
            [
                ("taskId", text(&self.task_id)),
                ("phase", text(&self.phase)),
                ("scope", text(&self.scope)),
                ("dependencies", list(&self.dependencies)),
            ],
        );
        put(
            top,
            "deliverable",
            [
                ("type", text(&self.deliverable)),
                ("location", text(&self.location)),
                ("summary", text(&self.summary)),
                ("artifacts", list(&self.artifacts)),
            ],
        );
        put(
            top,
            "nextSteps",
            [
                ("instructions", list(&self.instructions)),
                ("constraints", list(&self.constraints)),
                ("acceptanceCriteria", list(&self.criteria)),
            ],
        );
        put(top, "memory", [("created", list(&self.created)), ("referenced", list(&self.referenced))]);
        if !self.issues.is_empty() {
            top.insert("issues".into(), self.issues.iter().map(|text| issue(text)).collect());
        }
        if let Some(session) = &self.session {
            top.insert("session".into(), session.as_str().into());
        }
        Ok(draft)
    }
}

/// Parts that are not given stay out, so that all of them are said to be missing.
fn put<const N: usize>(top: &mut Map<String, Value>, name: &str, fields: [(&str, Option<Value>); N]) {
    for (field, value) in fields {
        let Some(value) = value else { continue };
        let part = top.entry(name).or_insert_with(|| json!({}));
        // What is no object is complained about when the whole is read.
        if let Some(part) = part.as_object_mut() {
            part.insert(field.into(), value);
        }
    }
}

fn issue(text: &str) -> Value {
    let mut issue = Map::new();
    let parts = text.splitn(3, '|').map(str::trim);
    for (name, part) in ["severity", "description", "recommendation"].into_iter().zip(parts) {
        issue.insert(name.into(), part.into());
    }
    Value::Object(issue)
}

fn read(file: &PathBuf) -> Result<Value, Failure> {
    let name = file.display();
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read `{name}`: {error}"));
    let mut text = String::new();
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(unreadable)?)
    };
    source.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("`{name}` is not JSON: {error}")).hint("sage handoff create --help")
    })
}
