//! A definition as a person sees it before trusting it: everything that it does, and nothing that only looks so.
//!
//! ```text
//! operations.plan  .sage/operations/plan.md
//!   runs:
//!     true
//!     touch a
//!   sets A=b
//! ```
//! What must stay true: all lines are there, or their number is; a name chosen by the project is quoted unless it is
//! plain; characters that cannot be seen are escaped.

use super::Definition;
use crate::command_line::sage;
use crate::display::text::{named, visible};

/// Lines of one definition; the whole is shown where it is named.
pub const MANY: usize = 40;
/// A longer line is broken into several.
const COLUMNS: usize = 160;

impl Definition {
    /// The first line, then what it does; at most `most` lines of that.
    pub fn lines(&self, note: &str, most: usize) -> Vec<String> {
        lines(&self.name, &self.file, self.does.iter().cloned(), note, most)
    }
}

pub fn lines(
    name: &str,
    file: &str,
    does: impl IntoIterator<Item = String>,
    note: &str,
    most: usize,
) -> Vec<String> {
    let head = format!("{}  {}{note}", named(name), named(file));
    let mut body: Vec<String> = does.into_iter().flat_map(|what| phrase(&what)).collect();
    // What fits into a line stays there.
    if let [only] = body.as_slice()
        && only.chars().count() < COLUMNS
    {
        return vec![format!("{}  {}  {only}{note}", named(name), named(file))];
    }
    let hidden = body.len().saturating_sub(most);
    if hidden > 0 {
        body.truncate(most);
        let all = sage("trust").arg(name);
        body.push(format!("... {hidden} more lines: {all}"));
    }
    std::iter::once(head).chain(body.into_iter().map(|line| format!("  {line}"))).collect()
}

/// All that it does, after a few words that begin a sentence: on the same line, or on lines of their own.
pub fn whole(does: &[String]) -> String {
    let lines: Vec<String> = does.iter().flat_map(|what| phrase(what)).collect();
    match lines.as_slice() {
        [only] => only.clone(),
        lines => format!("does this:\n  {}", lines.join("\n  ")),
    }
}

/// All that it does on one line, for tables and errors.
pub fn brief(definition: &Definition) -> String {
    let does: Vec<String> = definition.does.iter().map(|what| visible(what)).collect();
    sage_core::text::cut(&does.join(", "), COLUMNS)
}

/// A script line by line, anything else as it is.
fn phrase(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    let first = if lines.is_empty() { "" } else { lines.remove(0) };
    let begin = broken(first);
    let rest = lines.iter().flat_map(|line| broken(line)).map(|line| format!("  {line}"));
    begin.into_iter().chain(rest).collect()
}

fn broken(line: &str) -> Vec<String> {
    let shown: Vec<char> = visible(line).chars().collect();
    if shown.is_empty() {
        return vec![String::new()];
    }
    shown.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(name: &str, does: &[&str]) -> Definition {
        Definition::setting(name, "sage.toml", does.iter().map(ToString::to_string), &json!(1))
    }

    // covers: R17
    #[test]
    fn nothing_is_left_out_without_a_word() {
        assert_eq!(of("gc", &["a"]).lines(" (new)", MANY), ["gc  sage.toml  a (new)"]);
        let script = of("x", &["runs:\none\n\ntwo\n", "sets A=b"]);
        assert_eq!(
            script.lines("", MANY),
            ["x  sage.toml", "  runs:", "    one", "    ", "    two", "  sets A=b"]
        );
        assert_eq!(
            script.lines("", 2),
            ["x  sage.toml", "  runs:", "    one", "  ... 3 more lines: sage trust x"]
        );
        let long = "y".repeat(2 * COLUMNS + 1);
        assert_eq!(of("x", &[&long]).lines("", MANY).len(), 4);
    }

    // covers: R17
    #[test]
    fn names_and_texts_are_what_they_seem() {
        let lines =
            of("agents.a  sage.toml  runs ls", &["r\u{202e}m\u{e0041}\u{ad}\u{3164}\u{fe0f}\t\u{1b}[2J"]);
        assert_eq!(
            lines.lines("", MANY),
            [
                r#""agents.a  sage.toml  runs ls"  sage.toml  r\u{202e}m\u{e0041}\u{ad}\u{3164}\u{fe0f}\t\u{1b}[2J"#
            ]
        );
    }
}
