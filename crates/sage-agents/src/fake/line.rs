//! The lines that the fake agent prints: one JSON object each.

use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    Text {
        text: String,
    },
    Usage(Usage),
    /// A permission that the agent would ask for. Nobody answers yet, and the agent goes on.
    Ask {
        ask: Value,
    },
    Result {
        result: Value,
    },
    Error(ErrorLine),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorLine {
    pub class: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
}

impl ErrorLine {
    pub fn failure_class(&self) -> FailureClass {
        match self.class.as_str() {
            "rate-limit" => FailureClass::RateLimit,
            "quota" => FailureClass::Quota,
            "overloaded" => FailureClass::Transient,
            "auth" => FailureClass::Auth,
            "invalid" => FailureClass::Invalid,
            _ => FailureClass::Failed,
        }
    }

    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}", self.class, self.message);
        if let Some(ms) = self.retry_after_ms {
            text.push_str(&format!(" (retry after {ms} ms)"));
        }
        if let Some(time) = &self.reset_at {
            text.push_str(&format!(" (resets at {time})"));
        }
        text
    }
}
