//! Template text, JSON or YAML, as one tree with positions.
//!
//! Both parsers are strict: what two parsers could read differently (duplicate keys, tags, aliases, comments
//! in JSON, numbers that do not fit) is refused, with its place. Depth and size are bounded, nothing in here is
//! slower than linear, and lines and columns are only counted when something is shown.

mod excerpt;
mod json;
mod node;
mod yaml;

#[cfg(test)]
mod tests;

pub use excerpt::SourceText;
pub use node::{Data, Entry, Key, Node};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::template::Span;

/// Larger templates are refused before they are parsed.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Deeper nesting is refused; it is also what bounds recursion over a tree.
pub const MAX_DEPTH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    /// By the file's extension; YAML for anything else, since JSON is nearly YAML.
    pub fn of_file(name: &str) -> Format {
        if name.to_ascii_lowercase().ends_with(".json") { Format::Json } else { Format::Yaml }
    }
}

/// Parses `text`. A tree may come with errors (duplicate keys), so that the rest can be checked too.
pub fn parse(text: &str, format: Format) -> (Option<Node<'_>>, Vec<Diagnostic>) {
    let mut problems = Diagnostics::default();
    let node = parse_into(text, format, &mut problems);
    (node, problems.into_sorted())
}

/// Parses a part of a larger text; positions are those of the whole.
pub(crate) fn parse_part<'a>(
    text: &'a str,
    part: std::ops::Range<usize>,
    format: Format,
    problems: &mut Diagnostics,
) -> Option<Node<'a>> {
    let base = part.start;
    match format {
        Format::Json => json::parse(&text[part], base, problems),
        Format::Yaml => yaml::parse(&text[part], base, problems),
    }
}

pub(crate) fn parse_into<'a>(text: &'a str, format: Format, problems: &mut Diagnostics) -> Option<Node<'a>> {
    if text.len() > MAX_BYTES {
        let message = format!("the template has {} bytes, more than {} MiB", text.len(), MAX_BYTES >> 20);
        problems.push(Diagnostic::error("", Span::default(), message));
        return None;
    }
    // Editors on Windows write a byte order mark; it means nothing here.
    let body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let base = text.len() - body.len();
    match format {
        Format::Json => json::parse(body, base, problems),
        Format::Yaml => yaml::parse(body, base, problems),
    }
}
