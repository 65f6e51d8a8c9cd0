//! How long codex would wait before it tries again: its log says so on standard error, its events do not.
//!
//! ```text
//! RUST_LOG=error,codex_core::responses_retry=warn
//! WARN codex_core::responses_retry: … retrying sampling request (1/5 in 5.999s)... sampling_error=why
//! ```
//! Commands that codex runs must not see the variable, so their environment excludes it. Who has set either of
//! the two has the last word: then nothing is logged, and codex waits itself.

use std::path::Path;

use crate::agent::Order;
use crate::lines::Lines;

const VARIABLE: &str = "RUST_LOG";
const FILTER: &str = "error,codex_core::responses_retry=warn";
const POLICY: &str = "shell_environment_policy";
/// A line of the log holds at most an error of the endpoint.
const LINE_BYTES: usize = 64 * 1024;
/// A configuration is written by hand.
const CONFIG_BYTES: u64 = 4 << 20;

/// A try of codex's own that has not begun yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub ms: u64,
    pub why: String,
}

#[derive(Debug)]
pub struct RetryLog(Lines);

impl Default for RetryLog {
    fn default() -> RetryLog {
        RetryLog(Lines::new(LINE_BYTES))
    }
}

impl RetryLog {
    /// The last wait that the chunk tells of.
    pub fn push(&mut self, chunk: &[u8]) -> Option<Wait> {
        let mut last = None;
        self.0.push(chunk, &mut |line| last = wait(&String::from_utf8_lossy(line)).or(last.take()));
        last
    }
}

fn wait(line: &str) -> Option<Wait> {
    let (_, told) = line.split_once("retrying sampling request (")?;
    let (_, time) = told.split_once(" in ")?;
    let (time, _) = time.split_once(')')?;
    let (_, why) = told.split_once("sampling_error=")?;
    Some(Wait { ms: span_ms(time)?, why: why.trim().to_string() })
}

/// As Rust writes it: `5.999s`, `250ms`.
fn span_ms(text: &str) -> Option<u64> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s')?, 1e3),
    };
    let ms = number.parse::<f64>().ok()? * factor;
    // Whole milliseconds of at most a few days: nothing is lost.
    (0.0..1e9).contains(&ms).then(|| ms.ceil() as u64)
}

/// Whether this turn asks for the log: nobody else decides about the two settings that it needs.
pub fn is_wanted(order: &Order, home: Option<&Path>) -> bool {
    let given =
        order.env.iter().any(|(name, _)| name == VARIABLE) || order.config.variable(VARIABLE).is_some();
    let argued = order.config.command.iter().any(|word| word.contains(POLICY));
    let configs = [home.map(|home| home.join("config.toml")), Some(order.cwd.join(".codex/config.toml"))];
    let configured = |path: &Path| {
        path.exists() && crate::text_file::read(path, CONFIG_BYTES).map_or(true, |text| text.contains(POLICY))
    };
    !given && !argued && !configs.iter().flatten().any(|path| configured(path))
}

/// The variable of codex itself.
pub fn variable() -> (std::ffi::OsString, std::ffi::OsString) {
    (VARIABLE.into(), FILTER.into())
}

/// The setting that keeps it from the commands that codex runs.
pub fn setting() -> String {
    format!("{POLICY}.exclude=[{VARIABLE:?}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_lines_in_pieces() {
        let line = "2026-11-18T00:33:06.166472Z  WARN codex_core::responses_retry: stream disconnected - retrying \
                    sampling request (1/5 in 2.999713105s)... turn_id=t retries=1 max_retries=5 \
                    sampling_error=exceeded retry limit, last status: 429 Too Many Requests\n";
        let mut log = RetryLog::default();
        let (head, tail) = line.split_at(90);
        assert_eq!(log.push(head.as_bytes()), None);
        let why = "exceeded retry limit, last status: 429 Too Many Requests".to_string();
        assert_eq!(log.push(tail.as_bytes()), Some(Wait { ms: 3_000, why }));
        assert_eq!(log.push(b"WARN something else (1/5 in 3s)\n"), None);
        for (text, ms) in [("250ms", Some(250)), ("1s", Some(1_000)), ("1\u{b5}s", None), ("s", None)] {
            assert_eq!(span_ms(text), ms, "{text}");
        }
    }
}
