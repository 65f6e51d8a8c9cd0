//! The lines that the fake agent prints: one JSON object each.

use sage_core::port::{QuotaSignal, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::complaint::Complaint;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    Text {
        text: String,
    },
    /// It writes a file or runs a command.
    Tool {
        tool: String,
        input: Value,
    },
    ToolResult {
        tool: String,
        output: String,
        failed: bool,
    },
    /// Of one response; the sum of these lines is the usage of the attempt.
    Usage(Used),
    Limits(QuotaSignal),
    /// A permission that the agent asks for; the answer comes on its standard input.
    Ask {
        ask: Value,
    },
    /// It has read a message of a person.
    Heard {
        text: String,
    },
    Result {
        result: Value,
    },
    Error(Complaint),
}

/// What a response used, and whether another one follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    #[serde(flatten)]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// A person's message, as the fake agent reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    pub message: String,
}

/// The answer to a question, as the fake agent reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub allow: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
