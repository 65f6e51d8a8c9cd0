//! Errors of JavaScript and TypeScript: a line with the message, then lines that begin with `at`.

use super::{Frame, Trace, place};

pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let mut next = at + 1;
    let mut frames = Vec::new();
    while let Some(frame) = lines.get(next).and_then(|line| frame(line.trim())) {
        frames.extend(frame);
        next += 1;
    }
    let message = message(lines[at].trim())?;
    let has_place = frames.iter().any(|frame: &Frame| !frame.path.is_empty());
    has_place.then_some((Trace { sort: "JavaScript error", message, frames, line: at }, next))
}

/// `TypeError: x is not a function`, also after `Uncaught` or the time.
fn message(line: &str) -> Option<String> {
    let at =
        ["Error: ", "Exception: ", "Error [", "AssertionError"].iter().find_map(|mark| line.find(mark))?;
    let start = line[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |space| space + 1);
    Some(line[start..].to_string())
}

/// `at pay (/app/src/pay.ts:3:5)`, `at /app/src/pay.ts:3:5`; a frame without a file is a frame all the same.
fn frame(line: &str) -> Option<Option<Frame>> {
    let rest = line.strip_prefix("at ")?;
    let (function, position) = match rest.rsplit_once(" (") {
        Some((function, position)) => (function, position.trim_end_matches(')')),
        None => ("", rest),
    };
    // Java writes the same with `(File.java:12)` behind the name, without a space.
    if position.contains('(') || position.ends_with(".java") {
        return None;
    }
    let position = position.trim_start_matches("async ").trim_start_matches("file://");
    let position = position.split_once("webpack-internal:///").map_or(position, |(_, path)| path);
    Some(place(position).map(|(path, line)| Frame::new(path, line, function.trim_start_matches("async "))))
}
