//! Tracebacks, `unittest` and `pytest`.

use super::{indent, named};

const TRACEBACK: &str = "Traceback (most recent call last):";

/// `test_shop.py::test_total: assert 2 == 3`
pub fn pytest(lines: &[&str]) -> Option<String> {
    let is_title = |line: &&&str, title: &str| line.starts_with("==") && line.contains(title);
    let reports = |line: &&&str| is_title(line, " FAILURES ") || is_title(line, " ERRORS ");
    lines.iter().find(reports)?;
    let explained = lines.iter().find_map(|line| line.strip_prefix("E  ")).unwrap_or_default();
    let summary = lines.iter().skip_while(|line| !is_title(line, " short test summary info "));
    let first =
        summary.filter_map(|line| line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR "))).next();
    let Some(first) = first else { return Some(explained.trim().to_string()).filter(|it| !it.is_empty()) };
    // A long message is cut off in the summary, and one of a broken import is not in it at all.
    match first.split_once(" - ") {
        Some((name, message)) if !message.ends_with("...") => Some(named(name, message)),
        Some((name, _)) => Some(named(name, explained)),
        None => Some(named(first, explained)),
    }
}

/// `test_empty: AssertionError: -1 != 0`
pub fn unittest(lines: &[&str]) -> Option<String> {
    let ruled = |line: &str| line.len() > 10 && line.bytes().all(|byte| byte == b'-');
    let (at, name) = lines.windows(2).enumerate().find_map(|(at, pair)| {
        let name = pair[0].strip_prefix("FAIL: ").or_else(|| pair[0].strip_prefix("ERROR: "))?;
        ruled(pair[1]).then_some((at, name))
    })?;
    let raised = lines[at + 2..].iter().position(|line| *line == TRACEBACK);
    let message = raised.and_then(|from| exception(&lines[at + 2 + from..])).unwrap_or_default();
    Some(named(name.split(' ').next().unwrap_or(name), message))
}

/// The exception that ended the program: the last one where one led to another.
pub fn traceback(lines: &[&str]) -> Option<String> {
    match lines.iter().rposition(|line| line.trim() == TRACEBACK) {
        Some(at) => exception(&lines[at..]).map(str::to_string),
        None => syntax(lines),
    }
}

/// After the frames, as deep as the traceback itself.
fn exception<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let depth = indent(lines.first()?);
    lines.iter().skip(1).find(|line| !line.is_empty() && indent(line) <= depth).map(|line| line.trim())
}

/// A file that cannot be parsed has no traceback.
fn syntax(lines: &[&str]) -> Option<String> {
    let errors = ["SyntaxError: ", "IndentationError: ", "TabError: "];
    let at = lines.iter().position(|line| errors.iter().any(|error| line.starts_with(error)))?;
    let place = lines[..at].iter().rev().find_map(|line| line.trim().strip_prefix("File "))?;
    Some(format!("{} ({})", lines[at], place.replace('"', "")))
}
