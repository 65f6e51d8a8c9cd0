//! The front matter of a `SKILL.md`: YAML, and where other tools were careless, plain lines `key: text`.

use std::borrow::Cow;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{self, Data, Entry, Format, Key, Node};
use crate::template::Span;

/// The front matter and what follows it; `None` if the text does not begin with one.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let rest = text
        .strip_prefix("---")
        .and_then(|rest| rest.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// `front` is a part of `text`: places are told as those of the whole file.
pub(super) fn read<'a>(front: &'a str, text: &str, problems: &mut Diagnostics) -> Option<Node<'a>> {
    let base = (front.as_ptr() as usize).saturating_sub(text.as_ptr() as usize) as u32;
    let whole = Span { start: base, end: base + front.trim_end().len() as u32 };
    if front.trim().is_empty() {
        problems.push(Diagnostic::error("", whole, "the front matter is empty"));
        return None;
    }
    let (node, found) = source::parse(front, Format::Yaml);
    let broken = found.iter().any(Diagnostic::is_error);
    match node.filter(|node| !broken && node.as_map().is_some()) {
        Some(node) => Some(moved(node, base)),
        None => {
            let lines = plain_lines(front, base);
            let what = found.first().map_or("it is no object", |problem| problem.message.as_str());
            let message = format!("the front matter is not plain YAML: {what}");
            let problem = match lines {
                Some(_) => {
                    Diagnostic::warning("", whole, message).hint("put texts with `: ` or `#` between quotes")
                }
                None => Diagnostic::error("", whole, message),
            };
            problems.push(problem);
            lines
        }
    }
}

/// `key: everything up to the end of the line`, for front matter such as `description: Use when: asked`.
fn plain_lines(front: &str, base: u32) -> Option<Node<'_>> {
    let mut entries = Vec::new();
    let mut at = base;
    for line in front.split_inclusive('\n') {
        let start = at;
        at += line.len() as u32;
        let Some((key, value)) = line.trim_end().split_once(':') else { continue };
        let is_key =
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !is_key || value.trim().is_empty() {
            continue;
        }
        let span = Span { start, end: start + line.trim_end().len() as u32 };
        let text = value.trim().trim_matches(['"', '\'']);
        let key = Key { name: Cow::Borrowed(key), span };
        entries.push((key, Node { span, data: Data::Str(Cow::Borrowed(text)) }));
    }
    let whole = Span { start: base, end: at };
    (!entries.is_empty()).then_some(Node { span: whole, data: Data::Map(entries) })
}

/// Depth is bounded by the parser.
fn moved<'a>(mut node: Node<'a>, base: u32) -> Node<'a> {
    node.span = shifted(node.span, base);
    node.data = match node.data {
        Data::Seq(items) => Data::Seq(items.into_iter().map(|item| moved(item, base)).collect()),
        Data::Map(entries) => {
            let entries = entries.into_iter();
            let shift =
                |(key, value): Entry<'a>| (Key { span: shifted(key.span, base), ..key }, moved(value, base));
            Data::Map(entries.map(shift).collect())
        }
        other => other,
    };
    node
}

fn shifted(span: Span, base: u32) -> Span {
    Span { start: span.start + base, end: span.end + base }
}
