//! Panics, also those that test runners quote, and errors of `rustc`.

use super::{named, next};

/// `tests::empty: assertion failed: no prices (left: -1, right: 0), src/lib.rs:11:9`
pub fn panic(lines: &[&str]) -> Option<String> {
    let (at, thread, place) = lines.iter().enumerate().find_map(|(at, line)| {
        let (thread, place) = line.trim().strip_prefix("thread '")?.split_once(" panicked at ")?;
        Some((at, thread.split('\'').next().unwrap_or_default(), place))
    })?;
    let (message, place) = match place.strip_suffix(':') {
        Some(place) => (next(lines, at).unwrap_or_default(), place),
        // As it was before Rust 1.73: `'message', src/lib.rs:11:9`.
        None => place.strip_prefix('\'')?.rsplit_once("', ")?,
    };
    let sides: Vec<&str> = lines[at..]
        .iter()
        .skip(2)
        .take(3)
        .map(|line| line.trim())
        .filter(|line| line.starts_with("left: ") || line.starts_with("right: "))
        .collect();
    let sides = if sides.is_empty() { String::new() } else { format!(" ({})", sides.join(", ")) };
    let thread = if thread == "main" || thread.starts_with("tokio") { "" } else { thread };
    Some(format!("{}, {place}", named(thread, &format!("{message}{sides}"))))
}

/// `error[E0308]: mismatched types (src/lib.rs:8:5)`
pub fn compiler(lines: &[&str]) -> Option<String> {
    lines.iter().enumerate().find_map(|(at, line)| {
        let error = line.starts_with("error[") || line.starts_with("error: ");
        let place = next(lines, at)?.strip_prefix("--> ")?;
        error.then(|| format!("{line} ({place})"))
    })
}
