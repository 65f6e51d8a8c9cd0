//! What codex says about its trouble: the class of it, when trying again is worth it, and words for people.
//!
//! A status says most, then codex's own kind of error (it is in the rollout only), then the words it uses.

use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde_json::Value;

use crate::outcome::Miss;
use crate::told_time::{self, Wall, pause_ms};

/// `kind` is `codex_error_info` of the rollout, `reset_at_ms` what the rollout says about the used-up limit.
pub fn complaint(message: &str, kind: Option<&Value>, reset_at_ms: Option<u64>, wall: &Wall) -> Miss {
    let class = class_of(message, kind);
    let retry_after_ms = pause_ms(message);
    let refusal = match class {
        FailureClass::RateLimit => Refusal { retry_after_ms, reset_at_ms: None },
        FailureClass::Quota => {
            let reset_at_ms = reset_at_ms.or_else(|| told_time::reset_at_ms(message, wall));
            Refusal { retry_after_ms, reset_at_ms }
        }
        _ => Refusal::default(),
    };
    Miss::of_endpoint(class, readable(message), refusal)
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
const INVALID: &[&str] = &[
    "context window",
    "context_length_exceeded",
    "invalid_request",
    "model_not_found",
    "does not exist or you do not have access",
    "model is not supported",
];

const MODEL: &[&str] = &["status 404", "model_not_found", "does not exist", "model is not supported"];

/// The request was rejected because of the model that it names.
pub fn blames_model(message: &str, kind: Option<&Value>) -> bool {
    says(message, MODEL) || kind.is_some_and(|kind| kind == "model_not_found")
}

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
        "context_window_exceeded" | "bad_request" | "invalid_prompt" | "cyber_policy" | "model_not_found" => {
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

#[cfg(test)]
mod tests {
    use sage_core::policy::Cause;
    use serde_json::json;

    use super::*;

    fn failed(message: &str, kind: Option<Value>) -> (FailureClass, String, Option<Refusal>) {
        match complaint(message, kind.as_ref(), Some(9_000), &Wall::now(Some("UTC"))) {
            Miss::Failed { class, message, refusal, .. } => (class, message, refusal),
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
        assert_eq!(failed("The model `x` does not exist", Some(json!("model_not_found"))).0, Invalid);
    }

    // covers: R7
    #[test]
    fn the_rollout_knows_better_than_the_words_when_a_quota_is_full_again() {
        let (_, _, refusal) = failed("You’ve hit your usage limit. Try again at 3:05 PM.", None);
        assert_eq!(refusal, Some(Refusal { retry_after_ms: None, reset_at_ms: Some(9_000) }));
        let (_, _, refusal) = failed("rate limit exceeded: try again in 1.5s", None);
        assert_eq!(refusal, Some(Refusal { retry_after_ms: Some(1_500), reset_at_ms: None }));
        assert_eq!(failed("stream disconnected", None).2, None);
        let words = "You’ve hit your usage limit. Try again at Nov 19th, 2026 6:37 PM.";
        let Miss::Failed { refusal, .. } = complaint(words, None, None, &Wall::now(Some("UTC"))) else {
            panic!()
        };
        assert_eq!(refusal.unwrap().reset_at_ms, Some(1_795_113_480_000));
    }

    // covers: R7
    #[test]
    fn what_the_endpoint_rejects_is_terminal() {
        let cause = |message: &str| match complaint(message, None, None, &Wall::now(None)) {
            Miss::Failed { cause, .. } => cause,
            Miss::Stopped => panic!("{message}"),
        };
        assert_eq!(cause("unexpected status 413 Payload Too Large: x"), Some(Cause::Endpoint));
        assert_eq!(cause("unexpected status 503 Service Unavailable: x"), None);
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
