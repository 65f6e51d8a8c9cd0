//! What an agent's error means for trying again. The protocol has no classes for what went wrong behind the
//! agent: they are read from its own word for it (`errorKind`), a status code, or the text.

use agent_client_protocol::{Error, ErrorCode};
use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde_json::Value;

use crate::outcome::Miss;
use crate::told_time::{Wall, pause_ms, reset_at_ms};

/// Longest text of an error that is shown.
const SHOWN_CHARS: usize = 600;

/// Words that agents have for kinds of errors; a text is searched for the others.
const KINDS: &[(&str, FailureClass)] = &[
    ("authentication_failed", FailureClass::Auth),
    ("oauth_org_not_allowed", FailureClass::Auth),
    ("verification_required", FailureClass::Auth),
    ("cloud_credential_error", FailureClass::Auth),
    ("billing_error", FailureClass::Quota),
    ("account_on_hold", FailureClass::Quota),
    ("usageLimitExceeded", FailureClass::Quota),
    ("rate_limit", FailureClass::RateLimit),
    ("rateLimitExceeded", FailureClass::RateLimit),
    ("overloaded", FailureClass::Transient),
    ("serverOverloaded", FailureClass::Transient),
    ("server_error", FailureClass::Transient),
    ("internalServerError", FailureClass::Transient),
    ("transport_lost", FailureClass::Transient),
    ("worker_shutdown", FailureClass::Transient),
    ("invalid_request", FailureClass::Invalid),
    ("badRequest", FailureClass::Invalid),
    ("model_not_found", FailureClass::Invalid),
];

const PHRASES: &[(&str, FailureClass)] = &[
    ("daily quota", FailureClass::Quota),
    ("quota will reset", FailureClass::Quota),
    ("usage limit", FailureClass::Quota),
    ("credit balance", FailureClass::Quota),
    ("insufficient_quota", FailureClass::Quota),
    ("exceeded your current quota", FailureClass::Quota),
    ("rate limit", FailureClass::RateLimit),
    ("too many requests", FailureClass::RateLimit),
    ("resource_exhausted", FailureClass::RateLimit),
    ("overloaded", FailureClass::Transient),
    ("high demand", FailureClass::Transient),
    ("stream disconnected", FailureClass::Transient),
    ("connection", FailureClass::Transient),
    ("timed out", FailureClass::Transient),
    ("api key", FailureClass::Auth),
    ("unauthorized", FailureClass::Auth),
    ("failed to authenticate", FailureClass::Auth),
    // Gemini tells a 404 as a 500.
    ("is not found for api version", FailureClass::Invalid),
    ("model_not_found", FailureClass::Invalid),
];

pub fn miss(error: &Error) -> Miss {
    let text = text(error);
    if error.code == ErrorCode::AUTH_REQUIRED {
        return Miss::failed(FailureClass::Auth, shown(&text));
    }
    match error.data.as_ref().and_then(kind) {
        Some(class) => failed(class, &text),
        None => {
            // Gemini's codes of errors are those of HTTP; the protocol's own are below zero.
            let status = u16::try_from(error.code.value()).ok().and_then(of_status);
            judged(&text, status.or_else(|| by_status(&text.to_lowercase())))
        }
    }
}

/// A failure that the agent put in words of its own.
pub fn said(text: &str) -> Miss {
    judged(text, by_status(&text.to_lowercase()))
}

/// `status` is what a status code says, if there is one.
fn judged(text: &str, status: Option<FailureClass>) -> Miss {
    let lower = text.to_lowercase();
    let phrase = PHRASES.iter().find(|(phrase, _)| lower.contains(phrase)).map(|(_, class)| *class);
    let class = match (status, phrase) {
        (Some(FailureClass::RateLimit), Some(FailureClass::Quota)) if pause_ms(text).is_none() => {
            FailureClass::Quota
        }
        (Some(FailureClass::Transient), Some(FailureClass::Invalid)) => FailureClass::Invalid,
        // A key that is not valid is a bad request to Gemini.
        (Some(FailureClass::Invalid), Some(FailureClass::Auth)) => FailureClass::Auth,
        (Some(class), _) => class,
        (None, phrase) => phrase.unwrap_or(FailureClass::Failed),
    };
    failed(class, text)
}

fn failed(class: FailureClass, text: &str) -> Miss {
    let times =
        || Refusal { retry_after_ms: pause_ms(text), reset_at_ms: reset_at_ms(text, &Wall::now(None)) };
    let refusal = if class.refused() { times() } else { Refusal::default() };
    Miss::of_endpoint(class, shown(text), refusal)
}

/// The message, and what its data adds to it.
pub fn text(error: &Error) -> String {
    let extra = error.data.as_ref().and_then(|data| match data {
        Value::String(text) => Some(text.clone()),
        data => ["message", "details", "additionalDetails"]
            .iter()
            .find_map(|name| data.get(*name).and_then(Value::as_str).map(str::to_string)),
    });
    match extra.filter(|extra| !error.message.contains(extra.as_str())) {
        Some(extra) => format!("{}: {extra}", error.message),
        None => error.message.clone(),
    }
}

fn kind(data: &Value) -> Option<FailureClass> {
    let said = data.get("errorKind").or_else(|| data.get("codexErrorInfo"))?;
    let word = match said {
        Value::Object(fields) => fields.keys().next()?.clone(),
        word => word.as_str()?.to_string(),
    };
    KINDS.iter().find(|(kind, _)| *kind == word).map(|(_, class)| *class)
}

/// A status code that the text speaks of as one.
fn by_status(lower: &str) -> Option<FailureClass> {
    if !["error", "status", "http", "rejected"].iter().any(|word| lower.contains(word)) {
        return None;
    }
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    of_status(words.filter(|word| word.len() == 3).find_map(|word| word.parse::<u16>().ok())?)
}

fn of_status(status: u16) -> Option<FailureClass> {
    match status {
        401 | 403 => Some(FailureClass::Auth),
        402 => Some(FailureClass::Quota),
        429 => Some(FailureClass::RateLimit),
        408 | 500..=599 => Some(FailureClass::Transient),
        400 | 404 | 413 | 422 => Some(FailureClass::Invalid),
        _ => None,
    }
}

fn shown(text: &str) -> String {
    let text = text.strip_prefix("Internal error: ").unwrap_or(text).trim();
    // Gemini tells the body of the endpoint's answer.
    let body = serde_json::from_str::<Value>(text).ok();
    let inner = body.as_ref().and_then(|body| body["error"]["message"].as_str());
    let text = inner.unwrap_or(text);
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use sage_core::policy::Cause;
    use serde_json::json;

    use super::*;

    fn class(miss: &Miss) -> FailureClass {
        match miss {
            Miss::Failed { class, .. } => *class,
            Miss::Stopped => panic!("{miss:?}"),
        }
    }

    // covers: R7
    #[test]
    fn errors_of_real_agents_get_their_class() {
        let error = |message: &str, data: Value| class(&miss(&Error::new(-32603, message).data(data)));
        let claude = |status: &str, kind: &str| {
            error(&format!("Internal error: API Error: {status} scripted"), json!({ "errorKind": kind }))
        };
        assert_eq!(claude("400", "unknown"), FailureClass::Invalid);
        assert_eq!(claude("Request rejected (429) ·", "rate_limit"), FailureClass::RateLimit);
        assert_eq!(claude("529", "server_error"), FailureClass::Transient);
        assert_eq!(claude("500", "unknown"), FailureClass::Transient);
        assert_eq!(
            error("Internal error", json!({"codexErrorInfo": "usageLimitExceeded"})),
            FailureClass::Quota
        );
        assert_eq!(error("Internal error", json!("it broke")), FailureClass::Failed);
        assert_eq!(class(&miss(&Error::new(-32000, "Authentication required"))), FailureClass::Auth);
    }

    // covers: R7
    #[test]
    fn texts_are_read_for_status_and_pause() {
        let of = |text: &str| class(&said(text));
        assert_eq!(of("exceeded retry limit, last status: 429 Too Many Requests"), FailureClass::RateLimit);
        assert_eq!(of("We're currently experiencing high demand"), FailureClass::Transient);
        assert_eq!(of("You've hit your usage limit. Upgrade to Pro"), FailureClass::Quota);
        assert_eq!(of("status 429: you exceeded your current quota"), FailureClass::Quota);
        assert_eq!(of("I counted 429 lines"), FailureClass::Failed);
        let Miss::Failed { class, refusal, .. } = said("status 429: quota; please retry in 7.5s.") else {
            panic!()
        };
        assert_eq!((class, refusal.unwrap().retry_after_ms), (FailureClass::RateLimit, Some(7_500)));
        let Miss::Failed { refusal, .. } = said("usage limit reached|1760000000") else { panic!() };
        assert_eq!(refusal.unwrap().reset_at_ms, Some(1_760_000_000_000));
    }

    /// As Gemini CLI 0.61 has told them.
    // covers: R7
    #[test]
    fn errors_of_gemini_have_the_code_of_http() {
        let told = |code: i32, message: &str| match miss(&Error::new(code, message)) {
            Miss::Failed { class, cause, message, .. } => (class, cause, message),
            Miss::Stopped => panic!(),
        };
        let daily = "You have exhausted your daily quota on this model.";
        assert_eq!(told(429, daily), (FailureClass::Quota, None, daily.to_string()));
        let body = r#"{"error":{"code":400,"message":"Invalid argument xyz","status":"INVALID_ARGUMENT"}}"#;
        let invalid = (FailureClass::Invalid, Some(Cause::Endpoint));
        assert_eq!(told(400, body), (invalid.0, invalid.1, "Invalid argument xyz".to_string()));
        let unknown = "models/gemini-x is not found for API version v1beta";
        assert_eq!(told(500, unknown), (invalid.0, invalid.1, unknown.to_string()));
        assert_eq!(told(403, "no permission").0, FailureClass::Auth);
        assert_eq!(told(400, r#"{"error":{"message":"API key not valid."}}"#).0, FailureClass::Auth);
        assert_eq!(told(500, "internal").0, FailureClass::Transient);
    }
}
