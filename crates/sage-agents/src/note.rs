//! The last word of a program to Sage: one line of JSON at the end of its stderr.
//!
//! ```text
//! {"sage": {"class": "rate-limit", "message": "slow down", "retryAfterMs": 1500}}       why it failed
//! {"sage": {"class": "quota", "resetAt": "2030-01-01T00:00:00Z"}}                       until when
//! {"sage": {"usage": {"input": 900, "cacheRead": 50, "output": 40, "costUsd": 0.01}}}   what it has used
//! ```
//! Both may be in one line. `class` makes it a failure whatever the exit code is (classes: complaint.rs);
//! `usage` counts however the program ended. A line that does not fit is ordinary output.

use sage_core::port::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::process::Captured;

/// Longest line that is read. Less than the end of a stream that is kept, so that it is seen whole.
const NOTE_BYTES: usize = 4 * 1024;
/// More tokens than anybody has ever used: a mistake, which must not overflow a sum.
const TOKENS_MAX: u64 = 1_000_000_000_000_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    pub complaint: Option<Complaint>,
    pub usage: Usage,
}

/// Reads the note and takes it out of the text that messages quote.
pub fn take(stderr: &mut Captured) -> Note {
    let said = stderr.tail.trim_end();
    let start = said.rfind('\n').map_or(0, |newline| newline + 1);
    let line = said[start..].to_string();
    let Some(note) = parse(&line) else {
        return Note::default();
    };
    stderr.tail.truncate(start);
    if let Some(said) = stderr.text.trim_end().strip_suffix(&line).map(str::len) {
        stderr.text.truncate(said);
    }
    note
}

fn parse(line: &str) -> Option<Note> {
    if line.len() > NOTE_BYTES {
        return None;
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let said = value.get("sage")?;
    let usage = match said.get("usage") {
        Some(usage) => Usage::deserialize(usage).ok().filter(is_believable)?,
        None => Usage::default(),
    };
    let complaint = match said.get("class") {
        Some(_) => Some(Complaint::deserialize(said).ok()?),
        None => None,
    };
    Some(Note { complaint, usage })
}

/// Nobody gives tokens or money back.
fn is_believable(usage: &Usage) -> bool {
    let tokens = [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning];
    tokens.iter().flatten().all(|count| *count <= TOKENS_MAX) && usage.cost_usd.is_none_or(|cost| cost >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (Note, String) {
        let mut stderr = Captured { tail: text.to_string(), ..Captured::default() };
        let note = take(&mut stderr);
        (note, stderr.tail)
    }

    // covers: R7
    #[test]
    fn the_last_line_is_a_note_if_it_fits() {
        let (note, rest) = taken("warming up\n{\"sage\":{\"class\":\"auth\",\"usage\":{\"input\":3}}}\n\n");
        assert_eq!(note.complaint.map(|it| it.class).as_deref(), Some("auth"));
        assert_eq!((note.usage.input, rest.as_str()), (Some(3), "warming up\n"));
        let long = format!(r#"{{"sage":{{"class":"auth","message":"{}"}}}}"#, "x".repeat(NOTE_BYTES));
        for ordinary in [
            "",
            "plain\n",
            "{\"sage\":{\"class\":\"auth\"}}\nlast words\n",
            r#"{"sage":{"class":5}}"#,
            r#"{"sage":{"class":"quota","retryAfterMs":"soon"}}"#,
            r#"{"sage":{"usage":{"input":-1}}}"#,
            r#"{"sage":{"usage":{"input":18446744073709551615}}}"#,
            r#"{"sage":{"usage":{"costUsd":-0.5}}}"#,
            r#"{"usage":{"input":1}}"#,
            long.as_str(),
        ] {
            assert_eq!(taken(ordinary), (Note::default(), ordinary.to_string()));
        }
    }
}
