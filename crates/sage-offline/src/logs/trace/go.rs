//! Panics and failed tests of Go.

use super::{Frame, Trace, place};

pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    panic(lines, at).or_else(|| failed(lines, at))
}

fn panic(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let message = ["panic: ", "fatal error: "].iter().find_map(|mark| lines[at].split_once(mark))?.1;
    let mut next = at + 1;
    let mut frames = Vec::new();
    let mut function = "";
    let mut goroutine = false;
    while let Some(line) = lines.get(next) {
        if line.starts_with("goroutine ") {
            // The first one is the one that failed.
            if goroutine {
                break;
            }
            goroutine = true;
        } else if let Some(position) = line.strip_prefix('\t') {
            let position = position.split(" +0x").next().unwrap_or(position);
            let outer = function.starts_with("panic(") || function.starts_with("runtime.");
            frames.extend(
                place(position).filter(|_| !outer).map(|(path, line)| Frame::new(path, line, function)),
            );
        } else if goroutine && line.is_empty() {
            break;
        } else if goroutine {
            function = line;
        } else if !line.is_empty() && !line.starts_with('[') {
            return None;
        }
        next += 1;
    }
    goroutine.then(|| (Trace { sort: "Go panic", message: message.to_string(), frames, line: at }, next))
}

/// `--- FAIL: TestPay (0.00s)` and below it `    pay_test.go:12: want 1, got 2`.
fn failed(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let name = lines[at].trim().strip_prefix("--- FAIL: ")?.split(' ').next()?;
    let (position, message) = lines.get(at + 1)?.trim().split_once(": ")?;
    let (path, line) = place(position).filter(|(path, _)| path.ends_with(".go"))?;
    let frames = vec![Frame::new(path, line, name)];
    Some((Trace { sort: "failed test", message: format!("{name}: {message}"), frames, line: at }, at + 2))
}
