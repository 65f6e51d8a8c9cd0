//! What came of a tool call, in one line.

use sage_core::headline::headline;
use sage_core::port::AskKind;
use sage_core::text::{cut, last_state, without_escapes};

/// More does not fit in a line.
const LINE_CHARS: usize = 200;
/// Enough to find the line that says what went wrong.
const READ_BYTES: usize = 256 << 10;

/// Of what was read the length, of what ran the last line, of a failure the line that says why.
pub fn outcome_line(kind: AskKind, text: &str, failed: bool) -> String {
    let text = without_escapes(end_of(text));
    let lines: Vec<&str> =
        text.lines().map(|line| last_state(line).trim()).filter(|it| !it.is_empty()).collect();
    let line = match (lines.as_slice(), kind) {
        ([], _) => "no output".to_string(),
        ([only], _) => (*only).to_string(),
        _ if failed => headline(&text, "").map(|found| found.text).unwrap_or_default(),
        (many, AskKind::Read) => format!("{} lines", many.len()),
        (many @ [.., last], AskKind::Run) => format!("{last} ({} lines)", many.len()),
        ([first, ..], AskKind::Write) => (*first).to_string(),
        (many @ [first, ..], _) => format!("{first} ({} lines)", many.len()),
    };
    cut(&line, LINE_CHARS)
}

fn end_of(text: &str) -> &str {
    let mut start = text.len().saturating_sub(READ_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R8
    #[test]
    fn an_outcome_is_one_line() {
        let output = "running 3 tests\n...\n\u{1b}[32mtest result: ok. 3 passed\u{1b}[0m\n\n";
        assert_eq!(outcome_line(AskKind::Run, output, false), "test result: ok. 3 passed (3 lines)");
        assert_eq!(outcome_line(AskKind::Read, "a\nb\nc", false), "3 lines");
        assert_eq!(outcome_line(AskKind::Write, "updated src/x.rs\n1 a\n2 b", false), "updated src/x.rs");
        assert_eq!(outcome_line(AskKind::Run, " 10%\r100%\n", false), "100%");
        assert_eq!(outcome_line(AskKind::Run, "\n", false), "no output");
        let failed = "building\nerror: no such file `x`\nsee the log";
        assert_eq!(outcome_line(AskKind::Run, failed, true), "error: no such file `x`");
    }
}
