//! What an address says instead of an answer, and what that means for a call.

use std::error::Error;

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use sage_core::policy::FailureClass;
use sage_core::port::Refusal;

use super::answer::ToolFailure;
use crate::outcome::excerpt;

/// A server that says no more than that it is busy is asked again after this, in ms.
const BUSY_MS: u64 = 1_000;

#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    pub class: FailureClass,
    pub message: String,
    retry_after_ms: Option<u64>,
}

impl Trouble {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Trouble {
        Trouble { class, message: message.into(), retry_after_ms: None }
    }

    /// A status that is no success.
    pub fn refused(status: StatusCode, headers: &HeaderMap, said: &str) -> Trouble {
        let (class, hint) = match status.as_u16() {
            401 | 403 => (FailureClass::Auth, entry(headers)),
            429 => (FailureClass::RateLimit, ""),
            408 | 500.. => (FailureClass::Transient, ""),
            _ => (FailureClass::Invalid, ""),
        };
        let said = excerpt(said);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        Trouble {
            class,
            message: format!("HTTP {}{said}{hint}", status.as_u16()),
            retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1_000)),
        }
    }

    /// The one in an error of the transport.
    pub fn of<'a>(error: &'a (dyn Error + Send + Sync + 'static)) -> Option<&'a Trouble> {
        match error.downcast_ref::<StreamableHttpError<Trouble>>()? {
            StreamableHttpError::Client(trouble) => Some(trouble),
            _ => None,
        }
    }

    pub fn failure(&self) -> ToolFailure {
        let refusal = (self.class == FailureClass::RateLimit).then(|| Refusal {
            retry_after_ms: Some(self.retry_after_ms.unwrap_or(BUSY_MS)),
            reset_at_ms: None,
        });
        ToolFailure { class: self.class, message: self.message.clone(), refusal }
    }
}

/// How sage is let in. An address that wants OAuth says so; we do not log in for anybody.
fn entry(headers: &HeaderMap) -> &'static str {
    let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
    let challenge: Vec<String> =
        challenges.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
    let has = |word: &str| challenge.iter().any(|it| it.contains(word));
    if has("invalid_token") {
        return "; the token in its `headers` is wrong or too old: get a new one";
    }
    if has("insufficient_scope") {
        return "; the token in its `headers` may not do this: get one that may";
    }
    if has("resource_metadata") || has("bearer") {
        return "; it wants OAuth, and sage cannot log in there by itself: get a token from it and give it to the \
                server in sage.toml: headers = { Authorization = \"Bearer ${TOKEN}\" }";
    }
    "; its `headers` must let sage in"
}
