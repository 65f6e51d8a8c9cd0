//! What goes wrong with a model, and what that means for whoever decides about another try.
//!
//! | what happens                                          | class                     |
//! |-------------------------------------------------------|---------------------------|
//! | 429                                                   | rate limit, with the time |
//! | 402; no credit; 429 with a time that is far away      | quota, with the time      |
//! | 5xx, 529, 408, 409, 425; the connection breaks or fails | transient               |
//! | 401, 403                                              | auth                      |
//! | every other 4xx, a redirection, no event stream       | invalid                   |

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::HeaderMap;
use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde_json::Value;

use super::quota;
use crate::outcome::{Miss, excerpt};

/// Limits per minute are filled within one. Who is told to wait longer than this has used up something bigger.
const FAR: Duration = Duration::from_secs(5 * 60);

const ANSWERED: &str = "the model's endpoint answered";
const BROKE_OFF: &str = "the model's endpoint broke off";

/// The endpoint does not take what was said so far: too long, or broken.
pub fn blames_history(miss: &Miss) -> bool {
    let Miss::Failed { class: FailureClass::Invalid, message, .. } = miss else { return false };
    let status = message.strip_prefix(ANSWERED).unwrap_or_default().trim_start();
    ["400", "413", "422"].iter().any(|it| status.starts_with(it)) || message.starts_with(BROKE_OFF)
}

/// An answer that is not 200.
pub fn refused(status: u16, headers: &HeaderMap, body: &str, now: SystemTime) -> Miss {
    let error = Complaint::read(body);
    let retry_after_ms = quota::retry_after_ms(headers, now).or_else(|| error.reset_in_ms(now));
    let far = retry_after_ms.is_some_and(|ms| u128::from(ms) > FAR.as_millis());
    let class = match status {
        _ if error.names_quota() => FailureClass::Quota,
        429 if far => FailureClass::Quota,
        429 => FailureClass::RateLimit,
        402 => FailureClass::Quota,
        401 | 403 => FailureClass::Auth,
        408 | 409 | 425 | 500.. => FailureClass::Transient,
        _ => FailureClass::Invalid,
    };
    let hint = match (status, class) {
        (_, FailureClass::Auth) => "; check the key",
        (404, _) => "; check `model` and `url`",
        (300..400, _) => "; `url` has moved",
        _ => "",
    };
    let message = format!("{ANSWERED} {status}: {}{hint}", error.describe());
    Miss::of_endpoint(class, message, refusal(class, retry_after_ms, now).unwrap_or_default())
}

/// An error that is part of the answer, after it had begun.
pub fn midstream(error: &Value) -> Miss {
    let error = Complaint::of(error);
    let class = match error.kind() {
        _ if error.names_quota() => FailureClass::Quota,
        "rate_limit_error" | "rate_limit_exceeded" => FailureClass::RateLimit,
        "authentication_error" | "permission_error" => FailureClass::Auth,
        "invalid_request_error" | "invalid_prompt" | "context_length_exceeded" => FailureClass::Invalid,
        _ => FailureClass::Transient,
    };
    Miss::of_endpoint(class, format!("{BROKE_OFF}: {}", error.describe()), Refusal::default())
}

/// The connection was lost, or never made.
pub fn broken(message: impl Into<String>) -> Miss {
    Miss::failed(FailureClass::Transient, message)
}

fn refusal(class: FailureClass, retry_after_ms: Option<u64>, now: SystemTime) -> Option<Refusal> {
    let ms = retry_after_ms?;
    if class != FailureClass::Quota {
        return Some(Refusal { retry_after_ms: Some(ms), reset_at_ms: None });
    }
    let now_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    Some(Refusal { retry_after_ms: None, reset_at_ms: Some(now_ms.saturating_add(ms)) })
}

/// `{"error": {"type", "code", "message"}}`, as both protocols have it, or whatever else came.
struct Complaint {
    words: Vec<String>,
    message: String,
    /// Of a used-up limit, in seconds: from now, or since the epoch.
    resets_in_s: Option<u64>,
    resets_at_s: Option<u64>,
}

impl Complaint {
    fn read(body: &str) -> Complaint {
        match serde_json::from_str::<Value>(body) {
            Ok(value) if value.is_object() => Complaint::of(&value),
            _ => {
                let (words, message) = (Vec::new(), excerpt(body));
                Complaint { words, message, resets_in_s: None, resets_at_s: None }
            }
        }
    }

    fn of(value: &Value) -> Complaint {
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let word = |name: &str| error[name].as_str().filter(|word| *word != "error").map(str::to_string);
        let plain = value["error"].as_str().or(value["message"].as_str()).or(value["detail"].as_str());
        let message = error["message"].as_str().or(plain);
        let message = message.map_or_else(|| excerpt(&value.to_string()), str::to_string);
        Complaint {
            words: ["code", "type"].into_iter().filter_map(word).collect(),
            message,
            resets_in_s: error["resets_in_seconds"].as_u64(),
            resets_at_s: error["resets_at"].as_u64(),
        }
    }

    /// Where no header says it.
    fn reset_in_ms(&self, now: SystemTime) -> Option<u64> {
        let now_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let at = || self.resets_at_s.map(|at_s| at_s.saturating_sub(now_s));
        self.resets_in_s.or_else(at).map(|seconds| seconds.saturating_mul(1_000))
    }

    fn kind(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// There is no money or no quota left, whatever the status is.
    fn names_quota(&self) -> bool {
        let spent =
            ["insufficient_quota", "billing_error", "billing_hard_limit_reached", "usage_limit_reached"];
        self.words.iter().any(|word| spent.contains(&word.as_str()))
            || self.message.contains("credit balance is too low")
    }

    fn describe(&self) -> String {
        let mut text: String = self.message.chars().take(600).collect();
        if let Some(kind) = self.words.first() {
            text = format!("{kind}: {text}");
        }
        if text.is_empty() { "no reason given".into() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;

    fn class(miss: &Miss) -> FailureClass {
        match miss {
            Miss::Failed { class, .. } => *class,
            Miss::Stopped => panic!("stopped"),
        }
    }

    // covers: R7
    #[test]
    fn every_status_has_its_class() {
        use FailureClass::{Auth, Invalid, Quota, RateLimit, Transient};
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let anthropic = r#"{"type":"error","error":{"type":"x_error","message":"why"}}"#;
        for (status, expected) in [
            (301, Invalid),
            (400, Invalid),
            (401, Auth),
            (402, Quota),
            (403, Auth),
            (404, Invalid),
            (408, Transient),
            (413, Invalid),
            (422, Invalid),
            (429, RateLimit),
            (500, Transient),
            (502, Transient),
            (503, Transient),
            (529, Transient),
        ] {
            let miss = refused(status, &HeaderMap::new(), anthropic, now);
            assert_eq!(class(&miss), expected, "{status}");
            let Miss::Failed { message, refusal, .. } = miss else { unreachable!() };
            let begin = format!("the model's endpoint answered {status}: x_error: why");
            assert!(message.starts_with(&begin), "{message}");
            assert_eq!(refusal, None, "nobody named a time");
        }
    }

    // covers: R7
    #[test]
    fn the_time_and_the_words_tell_a_rate_limit_from_a_quota() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let after = |seconds: &str, body: &str| {
            let headers = [(hyper::header::RETRY_AFTER, HeaderValue::from_str(seconds).unwrap())];
            let Miss::Failed { class, refusal, .. } = refused(429, &HeaderMap::from_iter(headers), body, now)
            else {
                unreachable!()
            };
            (class, refusal.unwrap())
        };
        let soon = Refusal { retry_after_ms: Some(7_000), reset_at_ms: None };
        assert_eq!(after("7", "{}"), (FailureClass::RateLimit, soon));
        let late = Refusal { retry_after_ms: None, reset_at_ms: Some(4_600_000) };
        assert_eq!(after("3600", "<html>"), (FailureClass::Quota, late));
        let spent = r#"{"error":{"type":"x","code":"insufficient_quota","message":"no"}}"#;
        assert_eq!(after("7", spent).0, FailureClass::Quota);
        for body in ["\"resets_in_seconds\":3600", "\"resets_at\":4600"] {
            let body = format!(r#"{{"error":{{"type":"usage_limit_reached","message":"no",{body}}}}}"#);
            let miss = refused(429, &HeaderMap::new(), &body, now);
            let Miss::Failed { class, refusal, .. } = miss else { unreachable!() };
            assert_eq!((class, refusal.unwrap()), (FailureClass::Quota, late), "{body}");
        }
        let credit =
            r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#;
        assert_eq!(class(&refused(400, &HeaderMap::new(), credit, now)), FailureClass::Quota);
    }

    #[test]
    fn errors_in_the_middle_are_passing_unless_they_say_otherwise() {
        let kind = |error: Value| class(&midstream(&error));
        assert_eq!(
            kind(json!({"error": {"type": "overloaded_error", "message": "m"}})),
            FailureClass::Transient
        );
        assert_eq!(kind(json!({"type": "error", "code": "server_error"})), FailureClass::Transient);
        assert_eq!(kind(json!({"code": "rate_limit_exceeded"})), FailureClass::RateLimit);
        assert_eq!(kind(json!({"code": "insufficient_quota"})), FailureClass::Quota);
        assert_eq!(kind(json!({"code": "invalid_prompt"})), FailureClass::Invalid);
        assert_eq!(kind(json!("what?")), FailureClass::Transient);
    }
}
