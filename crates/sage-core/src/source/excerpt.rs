//! From byte spans to what people read: line, column, and the line itself with carets.

use std::cell::OnceCell;

use crate::diagnostic::{Also, Diagnostic, Excerpt, Shown, printable};
use crate::template::Span;

/// Longer lines are cut around the place that is meant.
const LINE_WIDTH: usize = 120;
/// How much of a long line is shown before that place.
const LEAD: usize = 40;

/// A template's text and its name. Lines are counted on first use, for nothing else needs them.
#[derive(Debug)]
pub struct SourceText<'a> {
    name: &'a str,
    text: &'a str,
    /// Byte where each line starts.
    lines: OnceCell<Vec<u32>>,
}

impl<'a> SourceText<'a> {
    pub fn new(name: &'a str, text: &'a str) -> SourceText<'a> {
        SourceText { name, text, lines: OnceCell::new() }
    }

    /// Line and column, both from 1; the column counts characters.
    pub fn locate(&self, span: Span) -> (usize, usize) {
        let (line, start) = self.line_of(span);
        (line, self.text[start..self.floor(span.start)].chars().count() + 1)
    }

    pub fn show(&self, diagnostic: &Diagnostic) -> Shown {
        let (line, column) = self.locate(diagnostic.span);
        let also = diagnostic.also.as_ref().map(|(span, label)| {
            let (line, column) = self.locate(*span);
            Also { label: printable(label), line, column }
        });
        Shown {
            severity: diagnostic.severity,
            field: printable(&diagnostic.field),
            message: printable(&diagnostic.message),
            file: printable(self.name),
            line,
            column,
            hint: diagnostic.hint.as_deref().map(printable),
            also,
            excerpt: self.excerpt(diagnostic.span),
        }
    }

    fn excerpt(&self, span: Span) -> Option<Excerpt> {
        let (_, start) = self.line_of(span);
        let rest = &self.text[start..];
        let line = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        if line.trim().is_empty() {
            return None;
        }
        let from = (self.floor(span.start) - start).min(line.len());
        let to = (self.floor(span.end).saturating_sub(start)).clamp(from, line.len());
        let (before, meant, after) = (&line[..from], &line[from..to], &line[to..]);
        let (lead, before) = if line.len() > LINE_WIDTH { tail(before, LEAD) } else { ("", before) };
        let meant = head(meant, LINE_WIDTH);
        let after = head(after, LINE_WIDTH.saturating_sub(before.len() + meant.len()));
        let cut = lead.len() + before.len() + meant.len() + after.len() < line.len();
        let text =
            [if lead.is_empty() { "" } else { "..." }, before, meant, after, if cut { "..." } else { "" }];
        let caret = text[0].len() + before.chars().count();
        Some(Excerpt { text: printable(&text.concat()), caret, width: meant.chars().count().max(1) })
    }

    /// Number (from 1) and first byte of the line of a span.
    fn line_of(&self, span: Span) -> (usize, usize) {
        let lines = self.lines.get_or_init(|| line_starts(self.text));
        let line = lines.partition_point(|start| *start <= span.start);
        (line, lines[line - 1] as usize)
    }

    /// A position inside the text and between characters, whatever the span says.
    fn floor(&self, position: u32) -> usize {
        self.text.floor_char_boundary(position as usize)
    }
}

fn line_starts(text: &str) -> Vec<u32> {
    let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
    std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect()
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// What is cut off, and at most the last `bytes`.
fn tail(text: &str, bytes: usize) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len().saturating_sub(bytes)))
}
