//! Times in templates and settings: milliseconds as a number, or text such as `10m`, `1h 30m`, `30d`.

use serde_json::{Number, Value};

/// Longer than this is a mistake, and adding it to a clock must not overflow.
pub const MAX_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// A smaller number without a unit was meant as something else: seconds, or minutes.
pub const SHORTEST_NUMBER_MS: u64 = 1_000;

/// What is wrong with a number of milliseconds that is given without a unit, and what to write.
pub fn without_unit(ms: u64) -> Option<(String, String)> {
    (1..SHORTEST_NUMBER_MS).contains(&ms).then(|| {
        let message = format!("{ms} without a unit means {ms} milliseconds");
        (message, format!("write \"{ms}s\" or \"{ms}ms\""))
    })
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration cannot be negative")]
    Negative,
    #[error("a duration in milliseconds must be a whole number")]
    Fraction,
    #[error("the duration is longer than 100 years")]
    TooLong,
    #[error("`{text}` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"")]
    NotADuration { text: String },
    #[error("a duration is a number of milliseconds, or text such as \"10m\"")]
    WrongType,
}

/// `1500` or `"1.5s"`... as a template writes it.
pub fn from_json(value: &Value) -> Result<u64, DurationError> {
    match value {
        Value::Number(number) => from_number(number),
        Value::String(text) => from_text(text),
        _ => Err(DurationError::WrongType),
    }
}

pub fn from_number(number: &Number) -> Result<u64, DurationError> {
    if let Some(ms) = number.as_u64() {
        return within_limit(u128::from(ms));
    }
    match number.as_f64() {
        Some(ms) if ms < 0.0 => Err(DurationError::Negative),
        Some(ms) if ms > MAX_MS as f64 => Err(DurationError::TooLong),
        Some(ms) if ms.fract() == 0.0 => Ok(ms as u64),
        _ => Err(DurationError::Fraction),
    }
}

pub fn from_text(text: &str) -> Result<u64, DurationError> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(DurationError::Negative);
    }
    // A bare number in quotes would be guesswork: milliseconds for us, seconds for many tools.
    match humantime::parse_duration(trimmed) {
        Ok(duration) if trimmed.contains(|c: char| c.is_alphabetic()) => {
            within_limit(duration.as_nanos().div_ceil(1_000_000))
        }
        Err(humantime::DurationError::NumberOverflow) => Err(DurationError::TooLong),
        _ => Err(DurationError::NotADuration { text: text.escape_debug().take(80).collect() }),
    }
}

fn within_limit(ms: u128) -> Result<u64, DurationError> {
    match u64::try_from(ms) {
        Ok(ms) if ms <= MAX_MS => Ok(ms),
        _ => Err(DurationError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R14
    #[test]
    fn numbers_are_milliseconds_and_text_has_units() {
        let table = [
            (json!(0), 0),
            (json!(1_500), 1_500),
            (json!(1e3), 1_000),
            (json!("10m"), 600_000),
            (json!("2s"), 2_000),
            (json!("250ms"), 250),
            (json!("1h 30m"), 5_400_000),
            (json!("1h30m"), 5_400_000),
            (json!(" 30d "), 2_592_000_000),
            (json!("1us"), 1),
        ];
        for (value, expected) in table {
            assert_eq!(from_json(&value), Ok(expected), "{value}");
        }
    }

    // covers: RELIABILITY 44
    #[test]
    fn what_is_no_duration_is_refused() {
        let table = [
            (json!(-1), DurationError::Negative),
            (json!(-0.5), DurationError::Negative),
            (json!("-5s"), DurationError::Negative),
            (json!(1.5), DurationError::Fraction),
            (json!(u64::MAX), DurationError::TooLong),
            (json!(1e300), DurationError::TooLong),
            (json!("99999999999999999999d"), DurationError::TooLong),
            (json!("1000years"), DurationError::TooLong),
            (json!(true), DurationError::WrongType),
            (json!(null), DurationError::WrongType),
        ];
        for (value, expected) in table {
            assert_eq!(from_json(&value), Err(expected), "{value}");
        }
        for text in ["", "10", "soon", "10 minutes!", "NaN", "inf", "1e3", "\u{1b}[31m"] {
            let error = from_text(text).unwrap_err();
            assert!(matches!(error, DurationError::NotADuration { .. }), "{text:?}: {error}");
            assert!(!error.to_string().contains('\u{1b}'));
        }
    }
}
