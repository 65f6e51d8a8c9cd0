//! Values as people write them: times, sizes, priorities, budgets, names.

use sage_core::budget::Cap;

use super::file::Time;
use crate::cli::failure::Failure;

/// Longer names are a mistake, and they go into file names.
const MAX_NAME: usize = 120;
/// A plain number that is smaller was meant as something else than milliseconds.
pub const SHORTEST_NUMBER_MS: u64 = 1_000;

/// What is wrong with a value of `sage.toml`, and where.
pub fn wrong(key: &str, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("`sage.toml`: `{key}`: {why}"))
}

/// Milliseconds as a number, or text such as `10m`.
pub fn duration(text: &str) -> Result<u64, Failure> {
    let value = text.parse::<u64>().map_or_else(|_| text.into(), serde_json::Value::from);
    sage_core::duration::from_json(&value).map_err(|error| Failure::usage(error.to_string()))
}

/// A time of `sage.toml` that cannot be nothing.
pub fn time(key: &str, time: &Time) -> Result<u64, Failure> {
    check_unit(key, time)?;
    let example = || format!("{key} = \"60s\"");
    match (duration(&time.text()), time) {
        (Ok(0), _) => Err(wrong(key, "it must be longer than 0").hint(example())),
        // Nobody means so few milliseconds; who does can write "60ms".
        (Ok(ms), Time::Milliseconds(_)) if ms < SHORTEST_NUMBER_MS => {
            Err(wrong(key, format!("{ms} without a unit is {ms} milliseconds"))
                .hint(format!("{key} = \"{ms}s\"")))
        }
        (Ok(ms), _) => Ok(ms),
        (Err(failure), _) => Err(wrong(key, failure.message).hint(example())),
    }
}

/// A number in quotes would be guesswork: milliseconds for us, seconds for many tools.
pub fn check_unit(key: &str, time: &Time) -> Result<(), Failure> {
    match time {
        Time::Text(text) if text.trim().parse::<f64>().is_ok() => {
            let number = text.trim();
            Err(wrong(key, format!("\"{number}\" has no unit")).hint(format!("{key} = \"{number}s\"")))
        }
        _ => Ok(()),
    }
}

pub fn budget(key: &str, text: &str) -> Result<Cap, Failure> {
    Cap::parse(text).map_err(|error| wrong(key, error).hint(format!("{key} = \"5usd\"")))
}

/// `P0` (first) to `P3` (last).
pub fn priority(text: &str) -> Result<u8, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "p0" => Ok(0),
        "p1" => Ok(1),
        "p2" => Ok(2),
        "p3" => Ok(3),
        _ => Err(format!("`{text}` is not a priority; it is P0 (first), P1, P2 or P3 (last)")),
    }
}

/// `512MB`, `1.5GB`, `0`; a plain number is bytes. `MB` and `MiB` are the same here: 1,048,576 bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c.is_whitespace());
    let unit = match lower[number.len()..].trim() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1_u64 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => 0,
    };
    let count: Option<f64> = number.parse().ok().filter(|count: &f64| count.is_finite() && *count >= 0.0);
    match count {
        Some(count) if unit > 0 => Ok((count * unit as f64) as u64),
        _ => Err(format!("`{text}` is not a size; write \"512MB\", \"2GB\" or \"0\"")),
    }
}

/// A part of a target's name: of a provider, an account.
pub fn plain_name(key: &str, name: &str) -> Result<(), Failure> {
    let unfit = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':');
    if name.is_empty() || name.len() > MAX_NAME || name.contains(unfit) {
        return Err(wrong(
            key,
            format!("`{}` is not a name: it has no spaces, no `/` and no `:`", name.escape_debug()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(bytes("512MB"), Ok(512 << 20));
        assert_eq!(bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!((bytes("0"), bytes("1024")), (Ok(0), Ok(1024)));
        for wrong in ["", "MB", "-1MB", "5 apples", "1e3x", "inf"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn priorities_have_four_names() {
        assert_eq!((priority("P0"), priority("p3")), (Ok(0), Ok(3)));
        for wrong in ["", "4", "P4", "high"] {
            assert!(priority(wrong).is_err(), "{wrong}");
        }
    }
}
