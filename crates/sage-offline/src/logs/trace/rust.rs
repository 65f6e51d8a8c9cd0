//! Panics and compiler errors of Rust.

use super::{Frame, Trace, place};

pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    panic(lines, at).or_else(|| compiler(lines, at))
}

/// `thread 'main' panicked at src/main.rs:10:5:` with the message below, or the older form with it in quotes.
fn panic(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let (head, rest) = lines[at].split_once("panicked at ")?;
    if !head.contains("thread ") {
        return None;
    }
    let mut next = at + 1;
    let (message, position) = match rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
        Some((message, position)) => (message.to_string(), position),
        None => {
            let mut said = Vec::new();
            while next < lines.len() && said.len() < 4 && !ends(lines[next]) {
                said.push(lines[next].trim());
                next += 1;
            }
            (said.join(" "), rest)
        }
    };
    let (path, line) = place(position)?;
    let mut frames = vec![Frame::new(path, line, "")];
    next = backtrace(lines, next, &mut frames);
    Some((Trace { sort: "Rust panic", message, frames, line: at }, next))
}

fn ends(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("note: ") || line.starts_with("stack backtrace:")
}

/// `4: shop::pay` and below it `at ./src/pay.rs:24:5`.
fn backtrace(lines: &[&str], mut next: usize, frames: &mut Vec<Frame>) -> usize {
    let mut function = "";
    while next < lines.len() {
        let line = lines[next].trim();
        let numbered = line.split_once(": ").filter(|(number, _)| number.chars().all(|c| c.is_ascii_digit()));
        if let Some(position) = line.strip_prefix("at ") {
            frames.extend(place(position).map(|(path, line)| Frame::new(path, line, function)));
        } else if let Some((_, name)) = numbered {
            function = name;
        } else if !(line.starts_with("stack backtrace:") || line.starts_with("note: ")) {
            break;
        }
        next += 1;
    }
    next
}

/// `error[E0308]: mismatched types` and below it ` --> src/main.rs:3:5`.
fn compiler(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let message =
        lines[at].strip_prefix("error").filter(|rest| rest.starts_with('[') || rest.starts_with(": "))?;
    let position = lines.get(at + 1)?.trim().strip_prefix("--> ")?;
    let (path, line) = place(position)?;
    let message = message.trim_start_matches(": ").to_string();
    let frames = vec![Frame::new(path, line, "")];
    Some((Trace { sort: "compiler error", message, frames, line: at }, at + 2))
}
