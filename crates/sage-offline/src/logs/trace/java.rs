//! Exceptions of Java and Kotlin. The last `Caused by` is what went wrong; the rest is how it was passed on.

use super::{Frame, Trace};

pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    frame(lines.get(at + 1)?)?;
    let mut message = message(lines[at]);
    let mut frames = Vec::new();
    let mut next = at + 1;
    while let Some(line) = lines.get(next) {
        if let Some(frame) = frame(line) {
            frames.push(frame);
        } else if let Some(cause) = line.trim().strip_prefix("Caused by: ") {
            message = cause.to_string();
            frames.clear();
        } else if !line.trim().starts_with("... ") {
            break;
        }
        next += 1;
    }
    Some((Trace { sort: "Java exception", message, frames, line: at }, next))
}

fn message(line: &str) -> String {
    let line = line.trim();
    let thread = line.strip_prefix("Exception in thread \"").and_then(|rest| rest.split_once("\" "));
    thread.map_or(line, |(_, message)| message).to_string()
}

/// `at com.shop.Pay.take(Pay.java:12)`: the file is `com/shop/Pay.java`.
fn frame(line: &str) -> Option<Frame> {
    let rest = line.trim().strip_prefix("at ")?;
    let (function, position) = rest.trim_end_matches(')').split_once('(')?;
    let (file, number) = position.split_once(':')?;
    if !(file.ends_with(".java") || file.ends_with(".kt") || file.ends_with(".scala")) {
        return None;
    }
    let function = function.rsplit_once('/').map_or(function, |(_, name)| name);
    let mut parts: Vec<&str> = function.split('.').collect();
    // The method and the class.
    parts.truncate(parts.len().saturating_sub(2));
    parts.push(file);
    Some(Frame::new(&parts.join("/"), number.parse().ok()?, function))
}
