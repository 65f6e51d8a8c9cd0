//! What is wrong with a template, where, and what to do about it.
//!
//! A `Diagnostic` is what the checks produce: a byte span, nothing rendered. `Shown` is what people and
//! programs get: file, line, column, the line itself with a caret, and the same as JSON. Colours are the
//! binary's affair, so `Shown` keeps its parts apart; its `Display` is plain text.

use std::fmt;

use serde::Serialize;

pub use crate::slug::is_invisible;
use crate::template::Span;

/// More than this helps nobody, and rendering it must stay quick.
pub const MAX_DIAGNOSTICS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Path of the field in the document: `phases[2].operations[0].needs[1]`; empty for the whole.
    pub field: String,
    pub message: String,
    pub span: Span,
    pub hint: Option<String>,
    /// A second place that belongs to it, such as the first of two equal ids.
    pub also: Option<(Span, String)>,
}

impl Diagnostic {
    pub fn error(field: impl fmt::Display, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            field: field.to_string(),
            message: message.into(),
            span,
            hint: None,
            also: None,
        }
    }

    pub fn warning(field: impl fmt::Display, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(field, span, message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn hint_if(mut self, hint: Option<String>) -> Diagnostic {
        self.hint = hint.or(self.hint);
        self
    }

    #[must_use]
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.also = Some((span, label.into()));
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A list of diagnostics that stops growing at `MAX_DIAGNOSTICS`.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    left_out: usize,
    new: bool,
}

impl Diagnostics {
    /// Of a text that is read for the first time. What a journal has frozen, and what code calls, was good before.
    pub fn of_new_text() -> Diagnostics {
        Diagnostics { new: true, ..Diagnostics::default() }
    }

    /// A rule for texts that are read for the first time.
    pub fn push_new(&mut self, diagnostic: Diagnostic) {
        if self.new {
            self.push(diagnostic);
        }
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_DIAGNOSTICS {
            self.list.push(diagnostic);
        } else {
            self.left_out += 1;
        }
    }

    /// Looking for the nearest of many names is slow; the first errors get it, a flood does without.
    pub fn wants_hints(&self) -> bool {
        const WITH_HINTS: usize = 50;
        self.list.len() < WITH_HINTS
    }

    pub fn has_errors(&self) -> bool {
        self.left_out > 0 || self.list.iter().any(Diagnostic::is_error)
    }

    /// In the order of the text, so that people can work from top to bottom.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| (d.span.start, d.span.end));
        if self.left_out > 0 {
            let message = format!("and {} more", self.left_out);
            self.list.push(Diagnostic::error("", Span::default(), message));
        }
        self.list
    }
}

/// A diagnostic as people and programs see it. Made by `SourceText::show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub severity: Severity,
    pub field: String,
    pub message: String,
    pub file: String,
    /// 1-based; a column counts characters.
    pub line: usize,
    pub column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also: Option<Also>,
    #[serde(skip)]
    pub excerpt: Option<Excerpt>,
}

/// A second place of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Also {
    pub label: String,
    pub line: usize,
    pub column: usize,
}

/// The line that is meant, already free of characters that a terminal would obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// Where the carets go, in characters of `text`.
    pub caret: usize,
    pub width: usize,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margin = " ".repeat(self.line.to_string().len());
        writeln!(f, "{}: {}", self.severity, self.message)?;
        writeln!(f, "{margin}--> {}:{}:{}", self.file, self.line, self.column)?;
        if let Some(excerpt) = &self.excerpt {
            writeln!(f, "{margin} |")?;
            writeln!(f, "{} | {}", self.line, excerpt.text)?;
            let (gap, carets) = (" ".repeat(excerpt.caret), "^".repeat(excerpt.width));
            writeln!(f, "{margin} | {gap}{carets}")?;
        }
        if let Some(also) = &self.also {
            writeln!(f, "{margin} = {}: {}:{}:{}", also.label, self.file, also.line, also.column)?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "{margin} = hint: {hint}")?;
        }
        Ok(())
    }
}

/// Text from a template, safe to print: what a terminal would obey or hide is replaced.
pub fn printable(text: &str) -> String {
    let seen = text.chars().filter(|c| !matches!(c, '\u{FE0E}' | '\u{FE0F}'));
    seen.map(|c| if c == '\t' { ' ' } else { c }).map(replace_invisible).collect()
}

fn replace_invisible(c: char) -> char {
    if is_invisible(c) { '\u{FFFD}' } else { c }
}

/// Names that are compared for "did you mean"; more would be slow and no better.
pub const LOOKED_AT: usize = 2_000;

/// The name nearest to `wrong`, if one is near enough to be what was meant.
///
/// At most `LOOKED_AT` names are compared, so that errors in a huge template stay quick.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    for name in names.into_iter().take(LOOKED_AT) {
        // Names of very different length are never near; skipping them is most of the speed.
        if name.len().abs_diff(wrong.len()) > 1 + wrong.len() / 2 {
            continue;
        }
        let score = strsim::normalized_damerau_levenshtein(wrong, name);
        if score > best.map_or(0.6, |(best, _)| best) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The usual hint of an unknown name.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["research", "specification", "planning"];
        assert_eq!(nearest("reserch", names), Some("research"));
        assert_eq!(nearest("plan", names), None);
        assert_eq!(nearest("planing", names), Some("planning"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn diagnostics_are_sorted_and_bounded() {
        let mut list = Diagnostics::default();
        for start in (0..1_500u32).rev() {
            list.push(Diagnostic::error("", Span { start, end: start }, "x"));
        }
        assert!(list.has_errors());
        let sorted = list.into_sorted();
        assert_eq!(sorted.len(), MAX_DIAGNOSTICS + 1);
        assert!(sorted[0].span.start < sorted[1].span.start);
        assert_eq!(sorted[MAX_DIAGNOSTICS].message, "and 500 more");
    }

    // covers: R17
    #[test]
    fn nothing_a_terminal_would_obey_is_printed() {
        assert_eq!(printable("a\tb\u{1b}[31m\u{202E}c"), "a b\u{FFFD}[31m\u{FFFD}c");
    }
}
