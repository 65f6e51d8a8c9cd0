//! What codex says about its trouble: the class of it, when trying again is worth it, and words for people.
//!
//! A status says most, then codex's own kind of error (it is in the rollout only), then the words it uses.

use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde_json::Value;

use crate::outcome::Miss;

/// `kind` is `codex_error_info` of the rollout.
pub fn complaint(message: &str, kind: Option<&Value>, reset_at_ms: Option<u64>) -> Miss {
    let class = class_of(message, kind);
    let refusal = match class {
        FailureClass::RateLimit => Refusal { retry_after_ms: wait_ms(message), reset_at_ms: None },
        FailureClass::Quota => Refusal { retry_after_ms: wait_ms(message), reset_at_ms },
        _ => Refusal::default(),
    };
    let refusal = (refusal != Refusal::default()).then_some(refusal);
    Miss::Failed { class, message: readable(message), refusal }
}

/// The status where there is one, else codex's own kind, else the words that it uses.
pub fn class_of(message: &str, kind: Option<&Value>) -> FailureClass {
    let typed = kind.and_then(of_kind);
    let status = kind.and_then(status_of_kind).or_else(|| status(message));
    // A used-up quota also comes with a 429.
    let quota = || Some(FailureClass::Quota).filter(|_| says(message, QUOTA));
    quota().or_else(|| status.map(of_status)).or(typed).unwrap_or_else(|| of_words(message))
}

const QUOTA: &[&str] = &["hit your usage limit", "quota exceeded", "insufficient_quota"];
const RATE: &[&str] = &["rate limit"];
const AUTH: &[&str] = &[
    "not logged in",
    "missing environment variable",
    "log in again",
    "sign in again",
    "refresh token",
    "to use codex with your chatgpt plan",
    "incorrect api key",
];
const PASSING: &[&str] = &[
    "stream disconnected",
    "high demand",
    "at capacity",
    "overloaded",
    "connection failed",
    "reconnecting",
    "timed out",
    "timeout",
    "error sending request",
];
const INVALID: &[&str] = &["context window", "context_length_exceeded", "invalid_request"];

fn says(message: &str, words: &[&str]) -> bool {
    let message = message.to_lowercase();
    words.iter().any(|word| message.contains(word))
}

fn of_words(message: &str) -> FailureClass {
    let known = [
        (AUTH, FailureClass::Auth),
        (INVALID, FailureClass::Invalid),
        (RATE, FailureClass::RateLimit),
        (PASSING, FailureClass::Transient),
    ];
    if let Some((_, class)) = known.into_iter().find(|(words, _)| says(message, words)) {
        return class;
    }
    // Of a 400 codex tells the body and nothing else.
    if error_of_body(message).is_some() { FailureClass::Invalid } else { FailureClass::Failed }
}

fn of_kind(kind: &Value) -> Option<FailureClass> {
    Some(match kind.as_str()? {
        "usage_limit_exceeded" | "session_budget_exceeded" => FailureClass::Quota,
        "rate_limit_exceeded" => FailureClass::RateLimit,
        "unauthorized" => FailureClass::Auth,
        "context_window_exceeded" | "bad_request" | "invalid_prompt" | "cyber_policy" => {
            FailureClass::Invalid
        }
        "server_overloaded" | "internal_server_error" => FailureClass::Transient,
        _ => return None,
    })
}

/// `{"http_connection_failed": {"http_status_code": 503}}`
fn status_of_kind(kind: &Value) -> Option<u16> {
    let status = kind.as_object()?.values().find_map(|detail| detail["http_status_code"].as_u64())?;
    u16::try_from(status).ok()
}

/// `unexpected status 503 Service Unavailable: ...`, `exceeded retry limit, last status: 429 Too Many Requests`
fn status(message: &str) -> Option<u16> {
    let after = ["unexpected status ", "last status: "].iter().find_map(|word| message.split_once(word))?.1;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn of_status(status: u16) -> FailureClass {
    match status {
        401 | 403 => FailureClass::Auth,
        402 => FailureClass::Quota,
        429 => FailureClass::RateLimit,
        408 | 409 | 425 | 500.. => FailureClass::Transient,
        _ => FailureClass::Invalid,
    }
}

/// The message inside of a body of JSON.
fn error_of_body(message: &str) -> Option<String> {
    let body: Value = serde_json::from_str(message.trim()).ok()?;
    let text = [&body["error"]["message"], &body["message"], &body["detail"]];
    Some(text.iter().find_map(|text| text.as_str()).unwrap_or(message).to_string())
}

fn readable(message: &str) -> String {
    let mut text = error_of_body(message).unwrap_or_else(|| message.to_string());
    if says(message, &["401", "not logged in", "missing environment variable"]) {
        text.push_str("; `codex login`, or the key in CODEX_API_KEY");
    }
    text
}

/// `try again in 11.054s`, `in 250ms`, `in 2 days 3 hours 5 minutes`
fn wait_ms(message: &str) -> Option<u64> {
    let lower = message.to_lowercase();
    let (_, rest) = lower.split_once("try again in ")?;
    let mut total_ms = 0.0;
    let mut rest = rest.trim_start();
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit_ms = match &after[..letters] {
            "ms" => 1.0,
            unit if unit.starts_with('s') => 1_000.0,
            unit if unit.starts_with('m') => 60_000.0,
            unit if unit.starts_with('h') => 3_600_000.0,
            unit if unit.starts_with('d') => 86_400_000.0,
            _ => break,
        };
        total_ms += number * unit_ms;
        rest = after[letters..].trim_start_matches([',', ' ']);
    }
    (total_ms > 0.0).then(|| total_ms.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(message: &str, kind: Option<Value>) -> (FailureClass, String, Option<Refusal>) {
        match complaint(message, kind.as_ref(), Some(9_000)) {
            Miss::Failed { class, message, refusal } => (class, message, refusal),
            Miss::Stopped => panic!("{message}"),
        }
    }

    /// Every message is one that codex 0.166 has told, with and without its kind in the rollout.
    // covers: R7
    #[test]
    fn every_failure_has_its_class() {
        use FailureClass::{Auth, Failed, Invalid, Quota, RateLimit, Transient};
        let http = |status: u16| json!({"http_connection_failed": {"http_status_code": status}});
        let body = r#"{"error": {"message": "scripted 400", "code": "context_length_exceeded"}}"#;
        for (message, kind, class) in [
            ("unexpected status 401 Unauthorized: no, url: http://x", http(401), Auth),
            ("unexpected status 403 Forbidden: no, url: http://x", http(403), Auth),
            ("unexpected status 404 Not Found: the model `x` does not exist", http(404), Invalid),
            ("unexpected status 503 Service Unavailable: x, url: http://x", http(503), Transient),
            ("unexpected status 529 <unknown status code>: x", http(529), Transient),
            (
                "We’re currently experiencing high demand, which may cause temporary errors.",
                json!("internal_server_error"),
                Transient,
            ),
            (
                "Selected model is at capacity. Please try a different model.",
                json!("server_overloaded"),
                Transient,
            ),
            (
                "stream disconnected before completion: Transport error: network error",
                json!("other"),
                Transient,
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests",
                json!({"response_too_many_failed_attempts": {"http_status_code": 429}}),
                RateLimit,
            ),
            ("rate limit exceeded: try again in 3s", json!("rate_limit_exceeded"), RateLimit),
            ("You’ve hit your usage limit. Try again later.", json!("usage_limit_exceeded"), Quota),
            ("Quota exceeded. Check your plan and billing details.", json!("usage_limit_exceeded"), Quota),
            (
                "Codex ran out of room in the model's context window.",
                json!("context_window_exceeded"),
                Invalid,
            ),
            (body, json!("other"), Invalid),
            ("Missing environment variable: `OPENAI_KEY`.", json!("other"), Auth),
            ("something else", json!("other"), Failed),
        ] {
            assert_eq!(failed(message, Some(kind)).0, class, "{message}");
            assert_eq!(failed(message, None).0, class, "without its kind: {message}");
        }
        assert_eq!(failed("scripted failure", Some(json!("invalid_prompt"))).0, Invalid);
    }

    // covers: R7
    #[test]
    fn times_to_wait_are_read_and_a_quota_knows_its_reset() {
        assert_eq!(wait_ms("Please try again in 11.054s. Visit x"), Some(11_054));
        assert_eq!(wait_ms("try again in 250ms."), Some(250));
        assert_eq!(wait_ms("Try again in 2 days 3 hours 5 minutes."), Some(183_900_000));
        assert_eq!(wait_ms("try again in a while"), None);
        assert_eq!(wait_ms("try again at 3:05 PM"), None);
        let (_, _, refusal) = failed("You’ve hit your usage limit. Try again at 3:05 PM.", None);
        assert_eq!(refusal, Some(Refusal { retry_after_ms: None, reset_at_ms: Some(9_000) }));
        let (_, _, refusal) = failed("rate limit exceeded: try again in 1.5s", None);
        assert_eq!(refusal, Some(Refusal { retry_after_ms: Some(1_500), reset_at_ms: None }));
        assert_eq!(failed("stream disconnected", None).2, None);
    }

    #[test]
    fn messages_are_for_people() {
        assert_eq!(failed(r#"{"error": {"message": "no such field"}}"#, None).1, "no such field");
        assert!(
            failed("unexpected status 401 Unauthorized", None)
                .1
                .ends_with("`codex login`, or the key in CODEX_API_KEY")
        );
    }
}
