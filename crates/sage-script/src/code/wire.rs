//! What the session and its process say to each other: one JSON object a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::FailureKind;
use super::limits::CodeLimits;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToWorker {
    Start(Start),
    /// All that one `Need` asked for.
    Modules(BTreeMap<String, Module>),
    Answer {
        id: u32,
        good: bool,
        /// The result, or the text of the failure.
        value: Box<RawValue>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// For messages: `code.ts`.
    pub name: String,
    pub code: String,
    pub input: Value,
    /// What the clock of the code shows, all the time.
    pub now_ms: u64,
    pub seed: u64,
    pub limits: CodeLimits,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Module {
    Script(String),
    TypeScript(String),
    Missing { why: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FromWorker {
    Need(Vec<String>),
    Call {
        id: u32,
        ask: Ask,
    },
    Console(String),
    /// Bytes that were printed and not sent.
    Cut(usize),
    Done {
        /// It returned nothing at all; `null` is something.
        nothing: bool,
        value: Box<RawValue>,
    },
    Failed {
        kind: FailureKind,
        message: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    Tool { server: String, tool: String, input: Value },
    Search { query: String, detail: Option<String>, limit: Option<usize> },
    Handle(String),
}

/// JSON text as it is.
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
