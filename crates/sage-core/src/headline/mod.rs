//! The line of a failed program's output that says what went wrong.
//!
//! Tools bury it: in the middle (compilers), before a backtrace (panics, Node, Java), after one (Python), or in the
//! other stream than their summary (`cargo test`). Each family of tools has a reader; the most particular ones come
//! first. Without any of them it is the line that says `error`, else the last one.

mod compiler;
mod go;
mod javascript;
mod plain;
mod python;
mod rust;
#[cfg(test)]
mod tests;

use crate::text::{cut, last_state, without_escapes};

/// A headline is one line of a tree; what it leaves out is in the lines that follow it.
const HEADLINE_CHARS: usize = 240;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    pub text: String,
    /// Where it was found.
    pub stream: Stream,
}

type Reader = fn(&[&str]) -> Option<String>;

/// Reports of test runners quote panics and exceptions, so they are read first.
const READERS: [Reader; 12] = [
    rust::panic,
    python::pytest,
    python::unittest,
    javascript::jest,
    javascript::vitest,
    javascript::tap,
    go::test,
    python::traceback,
    javascript::exception,
    go::panic,
    rust::compiler,
    compiler::error,
];

/// `None` if nothing was printed.
pub fn headline(stdout: &str, stderr: &str) -> Option<Headline> {
    let plain = [without_escapes(stderr), without_escapes(stdout)];
    let pages = [(Stream::Stderr, page(&plain[0])), (Stream::Stdout, page(&plain[1]))];
    let found = READERS.iter().find_map(|read| {
        pages.iter().find_map(|(stream, lines)| Some(Headline { text: read(lines)?, stream: *stream }))
    });
    let last = || {
        let telling = |(stream, lines): &(Stream, Vec<&str>)| {
            Some(Headline { text: plain::said(lines).or_else(|| plain::last(lines))?, stream: *stream })
        };
        let any = |(stream, lines): &(Stream, Vec<&str>)| {
            Some(Headline { text: plain::any(lines)?, stream: *stream })
        };
        pages.iter().find_map(telling).or_else(|| pages.iter().find_map(any))
    };
    found.or_else(last).map(|found| Headline { text: cut(found.text.trim(), HEADLINE_CHARS), ..found })
}

fn page(text: &str) -> Vec<&str> {
    text.split('\n').map(|line| last_state(line).trim_end()).collect()
}

/// The first line after `at` that is not empty, without its indentation.
fn next<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    lines.get(at + 1..)?.iter().map(|line| line.trim()).find(|line| !line.is_empty())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// `name: message`, or the one that there is.
fn named(name: &str, message: &str) -> String {
    match (name.trim(), message.trim()) {
        (name, "") => name.to_string(),
        ("", message) => message.to_string(),
        (name, message) => format!("{name}: {message}"),
    }
}
