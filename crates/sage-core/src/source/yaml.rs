//! YAML 1.2 (core schema): events from `saphyr-parser`, a tree built without recursion.
//!
//! Refused: tags, anchors and aliases (so no billion laughs), merge keys, several documents, keys that are
//! not scalars, `.nan` and `.inf`. `no` and `on` are text, as YAML 1.2 says.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

use super::MAX_DEPTH;
use super::node::{Data, Entry, Key, Node, Trail, number, refuse_duplicates};
use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::template::Span;

pub fn parse<'a>(text: &'a str, base: usize, problems: &mut Diagnostics) -> Option<Node<'a>> {
    let mut tree = Tree {
        offsets: Offsets::new(text, base),
        text,
        base,
        open: Vec::new(),
        trail: Trail::default(),
        root: None,
        documents: 0,
        problems,
    };
    let result = tree.read(Parser::new_from_str(text));
    let root = tree.root.take();
    match result {
        Ok(()) if root.is_none() => {
            problems.push(Diagnostic::error("", Span::default(), "the template is empty"));
            None
        }
        Ok(()) => root,
        Err(error) => {
            problems.push(*error);
            None
        }
    }
}

/// What to do about a message that says what the parser saw and not what was meant.
fn advice(message: &str, text: &str, at: usize) -> Option<String> {
    if message.contains("tabs") {
        return Some("indent with spaces".into());
    }
    if !message.contains("mapping values are not allowed") {
        return None;
    }
    let before = text.get(..at)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let key = before[start..].trim_start().trim_start_matches("- ");
    match key.split_once(": ") {
        // `run: echo key: value`
        Some((key, _)) => {
            let (_, value) = line.split_once(": ")?;
            let quoted = value.trim().replace('\'', "''");
            Some(format!("quote the value: `{}: '{}'`", printable(key), printable(&quoted)))
        }
        None => Some(format!("indent `{}` like the fields beside it", printable(key.trim()))),
    }
}

/// A collection whose end has not been seen.
enum Open<'a> {
    Seq { start: Span, items: Vec<Node<'a>> },
    Map { start: Span, entries: Vec<Entry<'a>>, key: Option<Key<'a>> },
}

struct Tree<'a, 'p> {
    offsets: Offsets<'a>,
    text: &'a str,
    base: usize,
    open: Vec<Open<'a>>,
    trail: Trail<'a>,
    root: Option<Node<'a>>,
    documents: usize,
    problems: &'p mut Diagnostics,
}

type Step = Result<(), Box<Diagnostic>>;

impl<'a> Tree<'a, '_> {
    fn read(&mut self, mut parser: Parser<'a, StrInput<'a>>) -> Step {
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| {
                let at = self.offsets.byte(*error.marker());
                let problem = Diagnostic::error(&self.trail, Span { start: at, end: at + 1 }, error.info());
                let inside = (at as usize).saturating_sub(self.base);
                Box::new(problem.hint_if(advice(error.info(), self.text, inside)))
            })?;
            let span = Span { start: self.offsets.byte(span.start), end: self.offsets.byte(span.end) };
            self.event(event, span)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'a>, span: Span) -> Step {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => self.document(span),
            Event::Alias(_) => Err(self.no_anchors(span)),
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some())?;
                self.scalar(text, style, span)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some())?;
                self.push(Open::Seq { start: span, items: Vec::new() }, span)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some())?;
                self.push(Open::Map { start: span, entries: Vec::new(), key: None }, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
        }
    }

    fn document(&mut self, span: Span) -> Step {
        self.documents += 1;
        if self.documents > 1 {
            return Err(self.error(span, "a template is one YAML document, this file has several"));
        }
        Ok(())
    }

    fn refuse_properties(&self, span: Span, anchor: usize, tagged: bool) -> Step {
        if tagged {
            return Err(self.error(span, "YAML tags such as `!!str` are not accepted"));
        }
        if anchor > 0 {
            return Err(self.no_anchors(span));
        }
        Ok(())
    }

    fn no_anchors(&self, span: Span) -> Box<Diagnostic> {
        let mut error = self.error(span, "YAML anchors and aliases (`&name`, `*name`) are not accepted");
        error.hint = Some("write the value out, or quote the text if it starts with `*` or `&`".to_owned());
        error
    }

    fn scalar(&mut self, text: Cow<'a, str>, style: ScalarStyle, span: Span) -> Step {
        let plain = style == ScalarStyle::Plain;
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            if plain && text == "<<" {
                let mut error = self.error(span, "the merge key `<<` is not part of YAML 1.2");
                error.hint = Some("write the fields out".to_owned());
                return Err(error);
            }
            self.trail.push_key(text.clone());
            *key = Some(Key { name: text, span });
            return Ok(());
        }
        let data = match plain {
            true => core_schema(text).map_err(|message| self.error(span, message))?,
            false => Data::Str(text),
        };
        self.add(Node { span, data });
        Ok(())
    }

    fn push(&mut self, open: Open<'a>, span: Span) -> Step {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(span, &format!("nested more than {MAX_DEPTH} levels deep")));
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err(self.error(span, "a key must be text, not a list or an object"));
        }
        if let Open::Seq { .. } = open {
            self.trail.push_index(0);
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, end: Span) -> Step {
        match self.open.pop() {
            Some(Open::Seq { start, items }) => {
                self.trail.pop();
                let span = self.trimmed(start, end);
                self.add(Node { span, data: Data::Seq(items) });
            }
            Some(Open::Map { start, entries, .. }) => {
                refuse_duplicates(&entries, &self.trail, self.problems);
                let span = self.trimmed(start, end);
                self.add(Node { span, data: Data::Map(entries) });
            }
            None => return Err(self.error(end, "unbalanced collection")),
        }
        Ok(())
    }

    fn add(&mut self, node: Node<'a>) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Seq { items, .. }) => {
                items.push(node);
                self.trail.pop();
                self.trail.push_index(items.len());
            }
            Some(Open::Map { entries, key, .. }) => {
                if let Some(key) = key.take() {
                    self.trail.pop();
                    entries.push((key, node));
                }
            }
        }
    }

    /// A block collection ends where the next token starts; the space before that is not part of it.
    fn trimmed(&self, start: Span, end: Span) -> Span {
        let (from, to) = (start.start as usize - self.base, end.end as usize - self.base);
        let inside = self.text.get(from..to).unwrap_or_default().trim_end();
        Span { start: start.start, end: start.start + inside.len() as u32 }
    }

    fn error(&self, span: Span, message: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(&self.trail, span, message))
    }
}

/// What a plain scalar means in YAML 1.2's core schema.
fn core_schema(text: Cow<'_, str>) -> Result<Data<'_>, &'static str> {
    let first = text.as_bytes().first().copied().unwrap_or(b'~');
    // Almost all scalars are words; only these beginnings can be anything else.
    if !matches!(first, b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'+' | b'-' | b'.' | b'0'..=b'9') {
        return Ok(Data::Str(text));
    }
    Ok(match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Err("`.nan` is not a number that a template can use"),
        word if is_infinity(word) => return Err("`.inf` is not a number that a template can use"),
        word => match yaml_number(word) {
            Some(result) => Data::Number(result?),
            None => Data::Str(text),
        },
    })
}

fn is_infinity(word: &str) -> bool {
    matches!(word.strip_prefix(['+', '-']).unwrap_or(word), ".inf" | ".Inf" | ".INF")
}

/// `None` if it is not a number at all.
fn yaml_number(word: &str) -> Option<Result<serde_json::Number, &'static str>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = word.strip_prefix(prefix).filter(|d| !d.is_empty()) {
            if !digits.chars().all(|c| c.is_digit(radix)) {
                return None;
            }
            let value = u64::from_str_radix(digits, radix);
            return Some(value.map(Into::into).map_err(|_| "the number does not fit in 64 bits"));
        }
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let well_formed = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && digits(e));
    well_formed.then(|| number(word.strip_prefix('+').unwrap_or(word)))
}

/// From the parser's character positions to bytes: the same for ASCII, else by an index of every 64th.
struct Offsets<'a> {
    text: &'a str,
    base: usize,
    /// Byte of each 64th character; empty if the text is ASCII.
    marks: Vec<u32>,
}

impl<'a> Offsets<'a> {
    const STRIDE: usize = 64;

    fn new(text: &'a str, base: usize) -> Offsets<'a> {
        let mut marks = Vec::new();
        if !text.is_ascii() {
            marks.extend(text.char_indices().step_by(Self::STRIDE).map(|(byte, _)| byte as u32));
        }
        Offsets { text, base, marks }
    }

    fn byte(&self, marker: Marker) -> u32 {
        let index = marker.index();
        let byte = if self.marks.is_empty() {
            index.min(self.text.len())
        } else {
            let mark = self.marks.get(index / Self::STRIDE).map_or(self.text.len(), |m| *m as usize);
            let rest = &self.text[mark..];
            mark + rest.char_indices().nth(index % Self::STRIDE).map_or(rest.len(), |(byte, _)| byte)
        };
        (self.base + byte) as u32
    }
}
