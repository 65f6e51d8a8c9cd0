//! Stack traces as five languages print them, and error lines of logs.
//!
//! Each reader looks at a line, and takes as many as belong to it: `(lines, at) -> (trace, next)`.

mod go;
mod java;
mod javascript;
mod plain;
mod python;
mod rust;

/// One error that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// `Rust panic`, `Python exception`
    pub sort: &'static str,
    pub message: String,
    /// The innermost first.
    pub frames: Vec<Frame>,
    /// Of the text, from 0.
    pub line: usize,
}

/// A place in code, as the trace names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub path: String,
    pub line: usize,
    pub function: String,
}

impl Frame {
    pub fn new(path: &str, line: usize, function: &str) -> Frame {
        Frame { path: path.to_string(), line, function: function.to_string() }
    }
}

/// Of one text.
const MAX_TRACES: usize = 2_000;
/// Deeper frames are of frameworks or of a recursion.
const MAX_FRAMES: usize = 60;

pub(crate) fn traces(text: &str) -> Vec<Trace> {
    let lines: Vec<&str> = text.lines().collect();
    let readers = [rust::read, python::read, javascript::read, java::read, go::read, plain::read];
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() && found.len() < MAX_TRACES {
        match readers.iter().find_map(|read| read(&lines, at)) {
            Some((mut trace, next)) => {
                trace.frames.truncate(MAX_FRAMES);
                trace.message = trace.message.trim().to_string();
                found.push(Trace { line: at, ..trace });
                at = next.max(at + 1);
            }
            None => at += 1,
        }
    }
    found
}

/// `src/main.rs:10:5` or `main.go:10` as path and line.
fn place(text: &str) -> Option<(&str, usize)> {
    let text = text.trim().trim_end_matches([':', ')', ',']);
    let (start, last) = text.rsplit_once(':')?;
    let last: usize = last.parse().ok()?;
    match start.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?))) {
        Some((path, line)) => Some((path, line)),
        None => Some((start, last)),
    }
}

#[cfg(test)]
mod tests;
