//! The tree: values with the bytes they came from. Text is borrowed from the source where possible.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::template::Span;

#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    pub span: Span,
    pub data: Data<'a>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Str(Cow<'a, str>),
    Seq(Vec<Node<'a>>),
    Map(Vec<Entry<'a>>),
}

pub type Entry<'a> = (Key<'a>, Node<'a>);

#[derive(Clone, Debug, PartialEq)]
pub struct Key<'a> {
    pub name: Cow<'a, str>,
    pub span: Span,
}

impl Key<'_> {
    fn copied(&self, span: Option<Span>) -> Key<'static> {
        Key { name: Cow::Owned(self.name.clone().into_owned()), span: span.unwrap_or(self.span) }
    }
}

impl<'a> Node<'a> {
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Str(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[Entry<'a>]> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.as_map()?.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// A copy that borrows nothing.
    pub fn detached(&self) -> Node<'static> {
        self.copied(None)
    }

    /// A copy that stands, for messages, in another place.
    pub fn moved_to(&self, span: Span) -> Node<'static> {
        self.copied(Some(span))
    }

    fn copied(&self, span: Option<Span>) -> Node<'static> {
        let data = match &self.data {
            Data::Null => Data::Null,
            Data::Bool(value) => Data::Bool(*value),
            Data::Number(number) => Data::Number(number.clone()),
            Data::Str(text) => Data::Str(Cow::Owned(text.clone().into_owned())),
            Data::Seq(items) => Data::Seq(items.iter().map(|item| item.copied(span)).collect()),
            Data::Map(entries) => {
                Data::Map(entries.iter().map(|(key, node)| (key.copied(span), node.copied(span))).collect())
            }
        };
        Node { span: span.unwrap_or(self.span), data }
    }

    /// Recursion is bounded by `MAX_DEPTH`.
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Str(text) => Value::String(text.clone().into_owned()),
            Data::Seq(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Data::Map(entries) => Value::Object(to_json_map(entries)),
        }
    }

    /// For messages: "expected a list, found text".
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "null",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::Str(_) => "text",
            Data::Seq(_) => "a list",
            Data::Map(_) => "an object",
        }
    }
}

pub fn to_json_map(entries: &[Entry<'_>]) -> Map<String, Value> {
    entries.iter().map(|(key, node)| (key.name.clone().into_owned(), node.to_json())).collect()
}

/// Where a parser is, for the `field` of its errors.
#[derive(Debug, Default)]
pub(super) struct Trail<'a>(Vec<Step<'a>>);

#[derive(Debug)]
enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl<'a> Trail<'a> {
    pub fn push_key(&mut self, name: Cow<'a, str>) {
        self.0.push(Step::Key(name));
    }

    pub fn push_index(&mut self, index: usize) {
        self.0.push(Step::Index(index));
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if position == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Reports equal keys of one object. Small objects are compared directly, which is quicker than hashing.
pub(super) fn refuse_duplicates(entries: &[Entry<'_>], trail: &Trail<'_>, problems: &mut Diagnostics) {
    const SMALL: usize = 16;
    if entries.len() <= SMALL {
        for (position, (key, _)) in entries.iter().enumerate() {
            if let Some((first, _)) = entries[..position].iter().find(|(k, _)| k.name == key.name) {
                problems.push(duplicate(key, first.span, trail));
            }
        }
        return;
    }
    let mut seen: HashMap<&str, Span> = HashMap::with_capacity(entries.len());
    for (key, _) in entries {
        if let Some(first) = seen.get(&*key.name) {
            problems.push(duplicate(key, *first, trail));
        } else {
            seen.insert(&key.name, key.span);
        }
    }
}

fn duplicate(key: &Key<'_>, first: Span, trail: &Trail<'_>) -> Diagnostic {
    let message = format!("duplicate key `{}`", printable(&key.name));
    Diagnostic::error(trail, key.span, message).also(first, "first")
}

/// A number as JSON writes it. Integers that need more than 64 bits would lose digits, so they are refused.
pub(super) fn number(text: &str) -> Result<Number, &'static str> {
    let is_integer = !text.contains(['.', 'e', 'E']);
    if is_integer {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(value.into());
        }
        return text.parse::<u64>().map(Number::from).map_err(|_| "the number does not fit in 64 bits");
    }
    let value: f64 = text.parse().map_err(|_| "not a number")?;
    // `from_f64` refuses infinity, which is what 1e999 parses to.
    Number::from_f64(value).ok_or("the number is too large")
}
