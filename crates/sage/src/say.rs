//! The one way to a person's terminal.
//!
//! What steps, agents, tools and cloned files say is data: on a terminal nothing in it may move the cursor,
//! change a colour, hide or turn text around. Standard output is cleaned when it is a terminal and is byte for
//! byte what it was when it is not; standard error is for people and always cleaned. `eprintln!` and `eprint!` of
//! this crate are those of this file, so that no message can go another way; `tidy` looks after the rest.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

use crate::display::text::clean_lines;
use crate::out::Out;

macro_rules! eprintln {
    () => { $crate::say::err("\n") };
    ($($text:tt)*) => { $crate::say::err(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::say::err(format_args!($($text)*)) };
}

/// To standard output. A reader that has gone away is no reason to stop.
pub(crate) fn out(text: impl Display) {
    // What goes wrong is remembered by `Out`, and `main` reports it.
    let _ = match std::io::stdout().is_terminal() {
        true => Out.write_all(clean_lines(&text.to_string()).as_bytes()),
        false => write!(Out, "{text}"),
    };
}

/// Text that is clean already: lines of the display, with colours of ours, and JSON.
pub(crate) fn painted(text: impl Display) {
    let _ = write!(Out, "{text}");
}

/// Lines that are clean already. An error: nobody reads them any more.
pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> std::io::Result<()> {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    Out.write_all(text.as_bytes()).and_then(|()| Out.flush())
}

/// Bytes of a program's output, of a log or a file.
pub(crate) fn bytes(to_stdout: bool, bytes: &[u8]) -> std::io::Result<()> {
    let clean = || clean_lines(&String::from_utf8_lossy(bytes)).into_owned();
    match to_stdout {
        true if std::io::stdout().is_terminal() => Out.write_all(clean().as_bytes()),
        true => Out.write_all(bytes),
        false if std::io::stderr().is_terminal() => std::io::stderr().write_all(clean().as_bytes()),
        false => std::io::stderr().write_all(bytes),
    }
}

/// To standard error.
pub(crate) fn err(text: impl Display) {
    let _ = std::io::stderr().write_all(clean_lines(&text.to_string()).as_bytes());
}

/// JSON in which everything that a terminal would obey is escaped; it means the same.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains('\u{7f}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Between strings JSON has only ASCII; in them the controls of ASCII are escaped already.
        match sage_core::diagnostic::is_invisible(c) && c != '\n' {
            true => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")))
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn json_is_the_same_without_what_a_terminal_obeys() {
        let value = serde_json::json!({"a": "\u{1b}[31m\u{9b}2J\u{202e}x\u{7f}\u{200b}\u{e0041}\u{ad}\n", "ü": "日本"});
        let text = format!("{value}\n");
        let escaped = json(&text);
        assert!(
            !escaped.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7f}', '\u{200b}', '\u{e0041}', '\u{ad}']),
            "{escaped}"
        );
        assert!(escaped.contains("日本") && escaped.contains("\\u202e") && escaped.ends_with("}\n"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
