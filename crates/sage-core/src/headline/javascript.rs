//! Jest, Vitest, TAP, and exceptions of Node and Java, which print them alike.

use super::{indent, named, next};

/// Frames follow an exception within so many lines; messages have several.
const NEAR: usize = 12;

/// `adds two prices: expected 3, received 2`
pub fn jest(lines: &[&str]) -> Option<String> {
    lines.iter().find(|line| line.starts_with("Test Suites: ") || line.starts_with("FAIL "))?;
    let at = lines.iter().position(|line| line.trim().starts_with("● "))?;
    let (name, message) = (lines[at].trim().trim_start_matches("● "), next(lines, at)?);
    let after = |word: &str| {
        let near = lines[at..].iter().take(NEAR).map(|line| line.trim());
        near.filter_map(|line| line.strip_prefix(word)).next()
    };
    let name = if name == "Test suite failed to run" { "" } else { name };
    match (message.starts_with("expect("), after("Expected: "), after("Received: ")) {
        (true, Some(expected), Some(received)) => {
            Some(named(name, &format!("expected {expected}, received {received}")))
        }
        _ => Some(named(name, message)),
    }
}

/// `sum.test.mjs > adds: AssertionError: expected 2 to be 3`
pub fn vitest(lines: &[&str]) -> Option<String> {
    lines.iter().find(|line| line.contains("⎯ Failed "))?;
    let at = lines.iter().position(|line| line.trim().starts_with("FAIL "))?;
    let message = next(lines, at)?.split(" // ").next()?;
    Some(named(lines[at].trim().trim_start_matches("FAIL "), message))
}

/// `adds: Expected values to be strictly equal: 2 !== 3`
pub fn tap(lines: &[&str]) -> Option<String> {
    let (at, name) = lines.iter().enumerate().find_map(|(at, line)| {
        let (number, name) = line.trim().strip_prefix("not ok ")?.split_once(" - ")?;
        number.parse::<u32>().ok().map(|_| (at, name))
    })?;
    let details = lines[at + 1..].iter().enumerate().take_while(|(_, line)| line.trim() != "...");
    let found =
        details.filter_map(|(on, line)| Some((at + 1 + on, line.trim().strip_prefix("error: ")?))).next();
    let Some((on, error)) = found else { return Some(name.to_string()) };
    let message = match error {
        "|-" | "|" | ">-" => {
            let depth = indent(lines[on]);
            let block = lines[on + 1..].iter().take_while(|line| line.is_empty() || indent(line) > depth);
            block.map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        }
        text => text.trim_matches(['\'', '"']).to_string(),
    };
    Some(named(name, &message))
}

/// `TypeError: Cannot read properties of null (reading 'amount')`, with the cause of a Java exception.
pub fn exception(lines: &[&str]) -> Option<String> {
    let is_frame = |line: &str| line.trim_start().starts_with("at ");
    let traced = |at: usize| lines[at + 1..].iter().take(NEAR).any(|line| is_frame(line));
    let at = (0..lines.len()).find(|&at| is_exception(lines[at].trim()) && traced(at))?;
    let mut text = lines[at].trim().to_string();
    if let Some(more) = next(lines, at).filter(|more| text.ends_with(':') && !is_frame(more)) {
        text = format!("{text} {more}");
    }
    let cause = lines[at..].iter().filter_map(|line| line.trim().strip_prefix("Caused by: ")).next_back();
    match cause {
        Some(cause) => Some(format!("{text}; caused by {cause}")),
        None => Some(text),
    }
}

/// `Error: ...`, `java.lang.IllegalStateException: ...`, `AssertionError [ERR_ASSERTION]: ...`
fn is_exception(line: &str) -> bool {
    let line = line
        .strip_prefix("Exception in thread ")
        .map_or(line, |rest| rest.split_once("\" ").map_or(rest, |(_, exception)| exception));
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let head = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
    let name = head.split(" [").next().unwrap_or_default();
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$');
    let is_name = !name.is_empty() && name.chars().all(letters);
    is_name && (name.ends_with("Error") || name.ends_with("Exception"))
}
