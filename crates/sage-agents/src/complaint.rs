//! What an agent says about its own failure: the class of it, and when trying again is worth it.
//!
//! Classes: `rate-limit`, `quota`, `overloaded` or `transient`, `auth`, `invalid`; every other word is a
//! plain failure. What only the engine can know (a timeout, a rejection, a budget) nobody can claim.

use std::time::UNIX_EPOCH;

use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde::{Deserialize, Serialize};

use crate::outcome::Miss;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Complaint {
    pub class: String,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
}

impl Complaint {
    pub fn to_miss(&self) -> Miss {
        Miss::of_endpoint(self.failure_class(), self.describe(), self.refusal().unwrap_or_default())
    }

    fn failure_class(&self) -> FailureClass {
        match self.class.as_str() {
            "rate-limit" => FailureClass::RateLimit,
            "quota" => FailureClass::Quota,
            "overloaded" | "transient" => FailureClass::Transient,
            "auth" => FailureClass::Auth,
            "invalid" => FailureClass::Invalid,
            _ => FailureClass::Failed,
        }
    }

    /// A time that cannot be read is left out: it stays in the message, and a guess would be worse.
    fn refusal(&self) -> Option<Refusal> {
        let time = self.reset_at.as_ref().and_then(|time| humantime::parse_rfc3339(time).ok());
        let since_epoch = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let reset_at_ms = since_epoch.and_then(|since| u64::try_from(since.as_millis()).ok());
        let refusal = Refusal { retry_after_ms: self.retry_after_ms, reset_at_ms };
        (refusal != Refusal::default()).then_some(refusal)
    }

    fn describe(&self) -> String {
        let mut text = self.class.clone();
        if !self.message.is_empty() {
            text.push_str(&format!(": {}", self.message));
        }
        if let Some(ms) = self.retry_after_ms {
            text.push_str(&format!(" (retry after {ms} ms)"));
        }
        if let Some(time) = &self.reset_at {
            text.push_str(&format!(" (resets at {time})"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R7
    #[test]
    fn times_are_read_and_nonsense_is_not_guessed() {
        let complaint = |reset_at: Option<&str>, retry_after_ms| Complaint {
            class: "quota".into(),
            message: String::new(),
            retry_after_ms,
            reset_at: reset_at.map(str::to_string),
        };
        let reset_at_ms = Some(1_500);
        let both = complaint(Some("1970-01-01T00:00:01.5Z"), Some(7)).refusal();
        assert_eq!(both, Some(Refusal { retry_after_ms: Some(7), reset_at_ms }));
        assert_eq!(complaint(Some("tomorrow"), None).refusal(), None);
        assert_eq!(complaint(None, None).refusal(), None);
        assert_eq!(
            complaint(Some("tomorrow"), Some(7)).describe(),
            "quota (retry after 7 ms) (resets at tomorrow)"
        );
    }
}
