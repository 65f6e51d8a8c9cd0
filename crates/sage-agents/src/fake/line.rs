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
    /// Of one response; the sum of these lines is the usage of the attempt.
    Usage(Usage),
    Limits(QuotaSignal),
    /// A permission that the agent asks for; the answer comes on its standard input.
    Ask {
        ask: Value,
    },
    Result {
        result: Value,
    },
    Error(Complaint),
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
