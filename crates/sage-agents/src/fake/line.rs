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
    /// A permission that the agent would ask for. Nobody answers yet, and the agent goes on.
    Ask {
        ask: Value,
    },
    Result {
        result: Value,
    },
    Error(Complaint),
}
