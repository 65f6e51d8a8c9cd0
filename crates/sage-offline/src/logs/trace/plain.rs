//! Lines of logs that say that something went wrong, without a trace.

use super::Trace;

const LEVELS: &[&str] = &["ERROR", "FATAL", "CRITICAL", "PANIC", "SEVERE"];

/// `2026-01-02 10:00:00 ERROR shop: no such order`, `level=error msg="..."`, `npm ERR! ...`
pub(super) fn read(lines: &[&str], at: usize) -> Option<(Trace, usize)> {
    let message =
        levelled(lines[at]).or_else(|| keyed(lines[at])).or_else(|| lines[at].strip_prefix("npm ERR! "))?;
    let message = message.trim_start_matches([']', ':', '-', ' ', '|']).trim();
    let says = message.chars().filter(|c| c.is_alphabetic()).count() > 3;
    says.then(|| (Trace { sort: "error in a log", message: message.to_string(), ..Trace::default() }, at + 1))
}

/// The level stands near the start, as a word of its own.
fn levelled(line: &str) -> Option<&str> {
    let found = LEVELS.iter().filter_map(|level| line.find(level).map(|at| (at, at + level.len())));
    let (start, end) = found.min().filter(|(start, _)| *start <= 60)?;
    let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    (alone(line[..start].chars().next_back()) && alone(line[end..].chars().next())).then(|| &line[end..])
}

fn keyed(line: &str) -> Option<&str> {
    let said = ["level=error", "level=fatal", "\"level\":\"error\""].iter().any(|level| line.contains(level));
    let after = ["msg=\"", "message=\"", "\"msg\":\"", "\"message\":\""]
        .iter()
        .find_map(|mark| line.split_once(mark));
    after.filter(|_| said).map(|(_, rest)| rest.split('"').next().unwrap_or(rest))
}
