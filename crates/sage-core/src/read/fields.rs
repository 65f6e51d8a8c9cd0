//! Reading one object: each accessor takes a field by name, says what is wrong with it and goes on.
//!
//! `null` means "not given". Nothing here stops at an error; a field that cannot be read is absent.

use super::place::Place;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::duration;
use crate::source::{Data, Entry, Node};
use crate::template::{Named, Source, Span};

/// The fields of one object and where it stands.
#[derive(Debug)]
pub struct Fields<'n, 'a> {
    entries: &'n [Entry<'a>],
    pub span: Span,
    pub place: &'n Place<'n>,
}

impl<'n, 'a> Fields<'n, 'a> {
    /// Reports fields that are not in `known`.
    pub fn new(
        node: &'n Node<'a>,
        place: &'n Place<'n>,
        known: &[&str],
        problems: &mut Diagnostics,
    ) -> Option<Fields<'n, 'a>> {
        let fields = Fields::any(node, place, problems)?;
        for (key, _) in fields.entries {
            if !known.contains(&&*key.name) {
                let message = format!("unknown field `{}`", printable(&key.name));
                let hint = did_you_mean(&key.name, known.iter().copied())
                    .or_else(|| Some(format!("fields here: {}", known.join(", "))));
                let place = place.field(&key.name);
                problems.push(Diagnostic::error(place, key.span, message).hint_if(hint));
            }
        }
        Some(fields)
    }

    /// An object whose keys are the author's own.
    pub fn any(
        node: &'n Node<'a>,
        place: &'n Place<'n>,
        problems: &mut Diagnostics,
    ) -> Option<Fields<'n, 'a>> {
        let Some(entries) = node.as_map() else {
            problems.push(expected("an object", node, place));
            return None;
        };
        Some(Fields { entries, span: node.span, place })
    }

    pub fn entries(&self) -> &'n [Entry<'a>] {
        self.entries
    }

    pub fn get(&self, name: &str) -> Option<&'n Node<'a>> {
        let node = &self.entries.iter().find(|(key, _)| key.name == name)?.1;
        (node.data != Data::Null).then_some(node)
    }

    pub fn key_span(&self, name: &str) -> Option<Span> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(key, _)| key.span)
    }

    fn read<T>(
        &self,
        name: &str,
        what: &str,
        problems: &mut Diagnostics,
        read: impl FnOnce(&'n Node<'a>) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(name)?;
        let value = read(node);
        if value.is_none() {
            problems.push(expected(what, node, &self.place.field(name)));
        }
        value
    }

    pub fn text(&self, name: &str, problems: &mut Diagnostics) -> Option<&'n str> {
        self.read(name, "text", problems, Node::as_str)
    }

    pub fn source(&self, name: &str, problems: &mut Diagnostics) -> Option<Source> {
        self.read(name, "text", problems, source_of)
    }

    /// An expression; `true` and `false` are jq too, and YAML reads them as such.
    pub fn condition(&self, name: &str, problems: &mut Diagnostics) -> Option<Source> {
        self.read(name, "a jq expression", problems, |node| match node.data {
            Data::Bool(value) => Some(Source { text: value.to_string(), span: node.span }),
            _ => source_of(node),
        })
    }

    pub fn flag(&self, name: &str, problems: &mut Diagnostics) -> Option<bool> {
        self.read(name, "true or false", problems, |node| match node.data {
            Data::Bool(value) => Some(value),
            _ => None,
        })
    }

    /// A whole number in `from..=to`.
    pub fn count(&self, name: &str, from: u32, to: u32, problems: &mut Diagnostics) -> Option<u32> {
        let what = format!("a whole number from {from} to {to}");
        self.read(name, &what, problems, |node| whole(node).filter(|n| (from..=to).contains(n)))
    }

    pub fn duration_ms(&self, name: &str, problems: &mut Diagnostics) -> Option<u64> {
        let node = self.get(name)?;
        match duration_of(node) {
            Ok(ms) => {
                check_unit(node, ms, &self.place.field(name), problems);
                Some(ms)
            }
            Err(error) => {
                problems.push(Diagnostic::error(self.place.field(name), node.span, error.to_string()));
                None
            }
        }
    }

    /// A duration that must be longer than nothing, such as a timeout.
    pub fn timeout_ms(&self, name: &str, problems: &mut Diagnostics) -> Option<u64> {
        let ms = self.duration_ms(name, problems)?;
        if ms == 0 {
            let span = self.get(name).map_or(self.span, |node| node.span);
            let message = format!("`{name}` must be longer than 0");
            problems.push(Diagnostic::error(self.place.field(name), span, message));
            return None;
        }
        Some(ms)
    }

    pub fn object(&self, name: &str, problems: &mut Diagnostics) -> Option<&'n Node<'a>> {
        self.read(name, "an object", problems, |node| node.as_map().map(|_| node))
    }

    /// A list of names; a single one may stand without brackets.
    pub fn names(&self, name: &str, problems: &mut Diagnostics) -> Vec<Named> {
        let mut names = Vec::new();
        self.each_text(name, "name", problems, |text, span, _, _| {
            names.push(Named { name: text.to_owned(), span });
        });
        names
    }

    /// Each text of a list with its place; a single one may stand without brackets. `what` it is: "name".
    pub fn each_text(
        &self,
        name: &str,
        what: &str,
        problems: &mut Diagnostics,
        mut take: impl FnMut(&'n str, Span, &Place<'_>, &mut Diagnostics),
    ) {
        let Some(node) = self.get(name) else {
            return;
        };
        let place = self.place.field(name);
        match &node.data {
            Data::Str(text) => take(text, node.span, &place, problems),
            Data::Seq(items) => {
                for (index, item) in items.iter().enumerate() {
                    let place = place.index(index);
                    match item.as_str() {
                        Some(text) => take(text, item.span, &place, problems),
                        None => problems.push(expected(&format!("a {what}"), item, &place)),
                    }
                }
            }
            _ => problems.push(expected(&format!("a list of {what}s"), node, &place)),
        }
    }

    pub fn missing(&self, name: &str, problems: &mut Diagnostics) {
        let start = self.span.start;
        // The whole object would underline everything; its first character says where.
        let span = Span { start, end: start + 1 };
        problems.push(Diagnostic::error(self.place.field(name), span, format!("missing field `{name}`")));
    }
}

pub fn source_of(node: &Node<'_>) -> Option<Source> {
    node.as_str().map(|text| Source { text: text.to_owned(), span: node.span })
}

pub fn whole(node: &Node<'_>) -> Option<u32> {
    match &node.data {
        Data::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
        _ => None,
    }
}

pub fn duration_of(node: &Node<'_>) -> Result<u64, duration::DurationError> {
    match &node.data {
        Data::Number(number) => duration::from_number(number),
        Data::Str(text) => duration::from_text(text),
        _ => Err(duration::DurationError::WrongType),
    }
}

/// Who writes `timeout: 5` means seconds.
pub fn check_unit(node: &Node<'_>, ms: u64, place: &Place<'_>, problems: &mut Diagnostics) {
    if let (Data::Number(_), Some((message, hint))) = (&node.data, duration::without_unit(ms)) {
        problems.push_new(Diagnostic::error(place, node.span, message).hint(hint));
    }
}

pub fn expected(what: &str, node: &Node<'_>, place: &Place<'_>) -> Diagnostic {
    let found = match &node.data {
        Data::Number(number) => format!("the number {number}"),
        _ => node.kind().to_owned(),
    };
    Diagnostic::error(place, node.span, format!("expected {what}, found {found}"))
}
