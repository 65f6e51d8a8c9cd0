//! The text that is blanked: bytes go away, positions stay.
//!
//! A blanked character becomes white space of as many bytes and as many UTF-16 units, so that every position
//! that an engine tells is one of the TypeScript. Line breaks stay.

use oxc::span::Span;

/// White space of two and of three bytes, one UTF-16 unit each.
const TWO_BYTES: &str = "\u{A0}";
const THREE_BYTES: &str = "\u{3000}";

#[derive(Debug)]
pub(super) struct Canvas<'a> {
    text: &'a str,
    erased: Vec<Span>,
    /// Single bytes that stand where something was erased.
    put: Vec<(u32, u8)>,
}

impl<'a> Canvas<'a> {
    pub fn new(text: &'a str) -> Canvas<'a> {
        Canvas { text, erased: Vec::new(), put: Vec::new() }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn erase(&mut self, start: u32, end: u32) {
        if start < end {
            self.erased.push(Span::new(start, end));
        }
    }

    /// `;` in the place of a whole statement keeps its neighbours apart.
    pub fn erase_statement(&mut self, span: Span) {
        self.erase(span.start, span.end);
        self.put(span.start, b';');
    }

    /// `byte` at a place that is erased.
    pub fn put(&mut self, at: u32, byte: u8) {
        self.put.push((at, byte));
    }

    /// How often something was erased so far.
    pub fn erasures(&self) -> usize {
        self.erased.len()
    }

    /// Where something begins that was erased up to exactly `end`, among the erasures since `since`.
    pub fn erased_until(&self, end: u32, since: usize) -> Option<u32> {
        let found = self.erased[since..].iter().rev().find(|span| span.end == end);
        found.map(|span| span.start)
    }

    pub fn has_line_break(&self, start: u32, end: u32) -> bool {
        self.text[start as usize..end as usize].contains(['\n', '\r', '\u{2028}', '\u{2029}'])
    }

    /// The first position from `at` on that is neither white space nor in a comment.
    pub fn token_from(&self, at: u32) -> u32 {
        let mut rest = &self.text[at as usize..];
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
            if let Some(comment) = rest.strip_prefix("//") {
                let end = comment.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(comment.len());
                rest = &comment[end..];
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/").map_or("", |(_, after)| after);
            } else {
                return (self.text.len() - rest.len()) as u32;
            }
        }
    }

    pub fn byte(&self, at: u32) -> Option<u8> {
        self.text.as_bytes().get(at as usize).copied()
    }

    /// Erases `mark` if it is the next token from `at` on.
    pub fn erase_mark(&mut self, at: u32, mark: u8) {
        let token = self.token_from(at);
        if self.byte(token) == Some(mark) {
            self.erase(token, token + 1);
        }
    }

    /// The word at `at`, if there is one.
    pub fn word(&self, at: u32) -> &'a str {
        let rest = &self.text[at as usize..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The text with everything applied.
    pub fn finish(mut self) -> String {
        self.erased.sort_unstable_by_key(|span| span.start);
        self.put.sort_unstable();
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for span in &self.erased {
            let (start, end) = (span.start.max(at), span.end);
            if start >= end {
                continue;
            }
            out.push_str(&self.text[at as usize..start as usize]);
            blank(&self.text[start as usize..end as usize], start, &self.put, &mut out);
            at = end;
        }
        out.push_str(&self.text[at as usize..]);
        out
    }
}

fn blank(text: &str, start: u32, put: &[(u32, u8)], out: &mut String) {
    for (offset, c) in text.char_indices() {
        let at = start + offset as u32;
        match put.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => {
                out.push(char::from(put[found].1));
                (1..c.len_utf8()).for_each(|_| out.push(' '));
            }
            Err(_) => blank_char(c, out),
        }
    }
}

fn blank_char(c: char, out: &mut String) {
    match c {
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(c),
        _ => out.push_str(match c.len_utf8() {
            1 => " ",
            2 => TWO_BYTES,
            3 => THREE_BYTES,
            _ => "\u{A0}\u{A0}",
        }),
    }
}
