//! Tracebacks of Python, and the short lines in which pytest sums up.

use super::{Frame, Trace};

pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    traceback(lines, at).or_else(|| summary(lines, at))
}

fn traceback(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let start = lines[at].find("Traceback (most recent call last)")?;
    // A container writes its name before each line.
    let prefix = &lines[at][..start];
    let mut frames = Vec::new();
    let mut next = at + 1;
    while next < lines.len() {
        let line = lines[next].strip_prefix(prefix).unwrap_or(lines[next]);
        next += 1;
        if let Some(frame) = frame(line.trim()) {
            frames.push(frame);
        } else if !line.starts_with(char::is_whitespace) && !line.is_empty() {
            frames.reverse();
            let message = line.to_string();
            return Some((Trace { sort: "Python exception", message, frames, line: at }, next));
        }
    }
    None
}

/// `File "shop/pay.py", line 3, in pay`
fn frame(line: &str) -> Option<Frame> {
    let rest = line.strip_prefix("File \"")?;
    let (path, rest) = rest.split_once("\", line ")?;
    let (number, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    Some(Frame::new(path, number.trim().parse().ok()?, function))
}

/// `FAILED tests/test_pay.py::test_pay - AssertionError: ...`
fn summary(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let rest = lines[at].strip_prefix("FAILED ")?;
    let (test, message) = rest.split_once(" - ").unwrap_or((rest, "failed"));
    let (path, name) = test.split_once("::")?;
    let frames = vec![Frame::new(path, 0, name)];
    Some((Trace { sort: "failed test", message: format!("{name}: {message}"), frames, line: at }, at + 1))
}
