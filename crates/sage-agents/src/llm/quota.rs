//! What an endpoint says about its limits in the headers of every answer, and when to come back after a refusal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::HeaderMap;
use sage_core::port::{Level, QuotaSignal};

/// `None` if it says nothing.
pub fn signal(headers: &HeaderMap, now: SystemTime) -> Option<QuotaSignal> {
    let anthropic = |name: &str| {
        let field = |end: &str| text(headers, &format!("anthropic-ratelimit-{name}-{end}"));
        level(field("limit"), field("remaining"), field("reset").and_then(|at| until(at, now)))
    };
    let openai = |name: &str| {
        let field = |kind: &str| text(headers, &format!("x-ratelimit-{kind}-{name}"));
        level(field("limit"), field("remaining"), field("reset").and_then(span_ms))
    };
    let signal = QuotaSignal {
        requests: anthropic("requests").or_else(|| openai("requests")),
        // Where input and output count together, it is the input that counts.
        input_tokens: anthropic("input-tokens").or_else(|| anthropic("tokens")).or_else(|| openai("tokens")),
        output_tokens: anthropic("output-tokens"),
    };
    (signal != QuotaSignal::default()).then_some(signal)
}

/// How long to wait after a refusal, as far as the headers tell.
pub fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let millis = text(headers, "retry-after-ms").and_then(number);
    let seconds = || {
        let text = text(headers, "retry-after")?;
        number_of_seconds(text).or_else(|| until_http_date(text, now))
    };
    let unified = || {
        let at_s = number(text(headers, "anthropic-ratelimit-unified-reset")?)?;
        Some(since(UNIX_EPOCH.checked_add(Duration::from_secs(at_s))?, now))
    };
    millis.or_else(seconds).or_else(unified).or_else(|| used_up_ms(headers, now))
}

/// Of the limits that are used up, the one that is filled last.
fn used_up_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let QuotaSignal { requests, input_tokens, output_tokens } = signal(headers, now)?;
    let levels = [requests, input_tokens, output_tokens].into_iter().flatten();
    levels.filter(|level| level.left == 0).filter_map(|level| level.reset_after_ms).max()
}

fn level(limit: Option<&str>, left: Option<&str>, reset_after_ms: Option<u64>) -> Option<Level> {
    Some(Level { limit: number(limit?)?, left: number(left?)?, reset_after_ms })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Whole or not, in ms.
fn number_of_seconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..1e9).contains(&seconds).then_some((seconds * 1000.0).ceil() as u64)
}

/// RFC 3339.
fn until(text: &str, now: SystemTime) -> Option<u64> {
    Some(since(humantime::parse_rfc3339_weak(text).ok()?, now))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn until_http_date(text: &str, now: SystemTime) -> Option<u64> {
    let parts: Vec<&str> = text.split([' ', ',']).filter(|part| !part.is_empty()).collect();
    let [_, day, month, year, time, "GMT"] = parts.as_slice() else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| name == month)? + 1;
    until(&format!("{year}-{month:02}-{day:0>2}T{time}Z"), now)
}

fn since(at: SystemTime, now: SystemTime) -> u64 {
    let left = at.duration_since(now).unwrap_or_default();
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

/// `6m0s`, `1.5s`, `120ms`, `1h2m`.
fn span_ms(text: &str) -> Option<u64> {
    let (mut ms, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let amount: f64 = rest[..digits].parse().ok()?;
        let factor = match &rest[digits..unit] {
            "us" | "µs" => 0.001,
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        ms += amount * factor;
        rest = &rest[unit..];
    }
    (!text.is_empty() && ms < 1e15).then_some(f64::ceil(ms) as u64)
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn at(time: &str) -> SystemTime {
        humantime::parse_rfc3339(time).unwrap()
    }

    // covers: R7
    #[test]
    fn limits_are_read_from_both_kinds_of_headers() {
        let now = at("2026-01-01T00:00:00Z");
        let anthropic = headers(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:30Z"),
            ("anthropic-ratelimit-input-tokens-limit", "1000"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-limit", "200"),
            ("anthropic-ratelimit-output-tokens-remaining", "7"),
            ("anthropic-ratelimit-output-tokens-reset", "2025-12-31T23:59:00Z"),
        ]);
        let expected = QuotaSignal {
            requests: Some(Level { limit: 50, left: 49, reset_after_ms: Some(30_000) }),
            input_tokens: Some(Level { limit: 1000, left: 0, reset_after_ms: None }),
            output_tokens: Some(Level { limit: 200, left: 7, reset_after_ms: Some(0) }),
        };
        assert_eq!(signal(&anthropic, now), Some(expected));
        let openai = headers(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0.5s"),
        ]);
        let expected = QuotaSignal {
            requests: Some(Level { limit: 60, left: 59, reset_after_ms: Some(1_000) }),
            input_tokens: Some(Level { limit: 150_000, left: 149_984, reset_after_ms: Some(360_500) }),
            output_tokens: None,
        };
        assert_eq!(signal(&openai, now), Some(expected));
        let half = headers(&[("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-tokens", "x")]);
        assert_eq!(signal(&half, now), None);
    }

    // covers: R7
    #[test]
    fn the_time_to_come_back_is_read_in_every_form() {
        let now = at("2026-01-01T00:00:00Z");
        let ms = |pairs: &[(&'static str, &str)]| retry_after_ms(&headers(pairs), now);
        assert_eq!(ms(&[("retry-after", "3")]), Some(3_000));
        assert_eq!(ms(&[("retry-after", "0.25")]), Some(250));
        assert_eq!(ms(&[("retry-after", "3"), ("retry-after-ms", "40")]), Some(40));
        assert_eq!(ms(&[("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT")]), Some(60_000));
        assert_eq!(ms(&[("retry-after", "soon")]), None);
        assert_eq!(ms(&[("retry-after", "-1")]), None);
        assert_eq!(ms(&[("anthropic-ratelimit-unified-reset", "1767229200")]), Some(3_600_000));
        let used_up = [
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "3"),
            ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:50Z"),
            ("anthropic-ratelimit-input-tokens-limit", "9"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:00:20Z"),
        ];
        assert_eq!(ms(&used_up), Some(20_000));
        assert_eq!(ms(&[]), None);
    }

    #[test]
    fn spans_are_read_or_left_alone() {
        for (text, ms) in
            [("120ms", 120), ("1h2m", 3_720_000), ("6m0s", 360_000), ("1.5s", 1_500), ("17us", 1)]
        {
            assert_eq!(span_ms(text), Some(ms), "{text}");
        }
        for text in ["", "5", "s", "1x", "1s2", "..s", "9999999999999d"] {
            assert_eq!(span_ms(text), None, "{text}");
        }
    }
}
