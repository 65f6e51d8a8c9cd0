//! Named operations (`research.market`): Markdown files with an operation's fields as front matter and its text as
//! body.
//!
//! ```text
//! ---
//! description: Who wants this, and why
//! filter: { top: 5 }
//! ---
//! Research the market for {{ title }} ...
//! ```
//! A template's operation of that `type` is read as if these fields stood in it; what it says itself wins, in `params`
//! and `expect` field by field. `kind` is `agent` if nothing else is said, and the body is its prompt (of `shell` its script, of
//! `approval` its message). Parameters of the author's own are known to the body as `params`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::operation;
use super::params;
use super::place::Place;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::source::{Data, Entry, Format, Key, Node, parse_part};
use crate::template::{Kind, Operation, Span};

/// Fields that only front matter has.
const OWN_FIELDS: &[&str] = &["kind", "description"];
/// Fields that belong to one use of an operation.
const FIELDS_OF_USE: &[&str] = &["id", "type", "needs", "when", "foreach", "maxParallel", "tolerate"];

/// Operations that are checks by their name: without an `expect` of their own, their result must say `passed: true`.
pub(crate) const CHECKS: &[&str] = &["build.verify", "test.run", "test.regression"];

/// Named operations, given by the caller: built in ones and the project's.
#[derive(Clone, Debug, Default)]
pub struct Library(BTreeMap<String, Slot>);

/// Most operations of a library are not used by a run: one that was checked before is read when it is asked for.
#[derive(Clone, Debug)]
struct Slot {
    text: String,
    operation: OnceLock<Option<NamedOperation>>,
}

#[derive(Clone, Debug)]
pub struct NamedOperation {
    pub kind: Kind,
    pub description: Option<String>,
    /// The file as it was written: what a run freezes.
    pub text: String,
    fields: Vec<Entry<'static>>,
}

impl Library {
    /// Adds an operation, in place of one with the same name. One with errors is not added.
    pub fn add(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Diagnostics::of_new_text();
        if let Some(operation) = read_named(name, text, &mut problems) {
            self.insert(name, text, Some(operation).into());
        }
        problems.into_sorted()
    }

    /// Adds an operation that was checked before.
    pub fn add_checked(&mut self, name: &str, text: &str) {
        self.insert(name, text, OnceLock::new());
    }

    fn insert(&mut self, name: &str, text: &str, operation: OnceLock<Option<NamedOperation>>) {
        self.0.insert(name.to_owned(), Slot { text: text.to_owned(), operation });
    }

    /// Operations that were checked when they were frozen.
    pub fn frozen(operations: &BTreeMap<String, String>) -> Library {
        let mut library = Library::default();
        operations.iter().for_each(|(name, text)| library.add_checked(name, text));
        library
    }

    pub fn get(&self, name: &str) -> Option<&NamedOperation> {
        let slot = self.0.get(name)?;
        let read = || read_named(name, &slot.text, &mut Diagnostics::default());
        slot.operation.get_or_init(read).as_ref()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

pub fn primitive(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

impl NamedOperation {
    /// An operation of a template with everything that it does not say itself. What comes from here stands, for
    /// messages, where the template names the type.
    pub fn under<'a>(&self, node: &Node<'a>) -> Node<'a> {
        let (Some(own), Some(named)) = (node.as_map(), node.get("type")) else { return node.clone() };
        let span = named.span;
        let mut entries: Vec<Entry<'a>> = Vec::with_capacity(own.len() + self.fields.len());
        for (key, value) in own {
            let value = match &*key.name {
                "type" => text(self.kind.name(), span),
                "params" => self.params_under(value, span),
                "expect" => self.expect_under(value, span),
                _ => value.clone(),
            };
            entries.push((key.clone(), value));
        }
        let said = |name: &str| given(own, name) || (name == "prompt" && given_in(own, "params", name));
        for (key, value) in self.fields.iter().filter(|(key, _)| !said(&key.name)) {
            entries.retain(|(other, _)| other.name != key.name);
            entries.push((Key { name: key.name.clone(), span }, value.moved_to(span)));
        }
        Node { span: node.span, data: Data::Map(entries) }
    }

    fn params_under<'a>(&self, own: &Node<'a>, span: Span) -> Node<'a> {
        let (Some(entries), Some(ours)) = (own.as_map(), self.field("params").and_then(Node::as_map)) else {
            return own.clone();
        };
        let mut merged = entries.to_vec();
        let replaced = |name: &str| {
            let others = params::alternatives(self.kind, name);
            given(entries, name) || others.iter().any(|other| given(entries, other))
        };
        for (key, value) in ours.iter().filter(|(key, _)| !replaced(&key.name)) {
            merged.push((Key { name: key.name.clone(), span }, value.moved_to(span)));
        }
        Node { span: own.span, data: Data::Map(merged) }
    }

    /// A step that expects more still expects what its operation does.
    fn expect_under<'a>(&self, own: &Node<'a>, span: Span) -> Node<'a> {
        let (Some(entries), Some(ours)) = (own.as_map(), self.field("expect").and_then(Node::as_map)) else {
            return own.clone();
        };
        let mut merged = entries.to_vec();
        for (key, value) in ours.iter().filter(|(key, _)| !given(entries, &key.name)) {
            merged.retain(|(other, _)| other.name != key.name);
            merged.push((Key { name: key.name.clone(), span }, value.moved_to(span)));
        }
        Node { span: own.span, data: Data::Map(merged) }
    }

    /// Whoever makes a check must say that it passed, also one that stands in for ours. A command says it by its end.
    fn expect_of_name(&mut self, name: &str) {
        if !CHECKS.contains(&name) || self.kind == Kind::Shell {
            return;
        }
        let key = |name: &'static str| Key { name: Cow::Borrowed(name), span: Span::default() };
        let passed = (key("passed"), Node { span: Span::default(), data: Data::Bool(true) });
        match self.fields.iter_mut().find(|(key, _)| key.name == "expect") {
            Some((_, Node { data: Data::Map(own), .. })) if !given(own, "passed") => own.push(passed),
            Some(_) => {}
            None => {
                let expect = Node { span: Span::default(), data: Data::Map(vec![passed]) };
                self.fields.push((key("expect"), expect));
            }
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Node<'static>> {
        self.fields.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Parameters that only this operation has.
    pub fn param_names(&self) -> impl Iterator<Item = &str> {
        self.field("params").and_then(Node::as_map).unwrap_or_default().iter().map(|(key, _)| &*key.name)
    }
}

fn given(entries: &[Entry<'_>], name: &str) -> bool {
    entries.iter().any(|(key, node)| key.name == name && node.data != Data::Null)
}

fn given_in(entries: &[Entry<'_>], outer: &str, name: &str) -> bool {
    let inner = entries.iter().find(|(key, _)| key.name == outer).and_then(|(_, node)| node.as_map());
    inner.is_some_and(|inner| given(inner, name))
}

fn text(text: &str, span: Span) -> Node<'static> {
    Node { span, data: Data::Str(Cow::Owned(text.to_owned())) }
}

/// `None` if it has errors.
fn read_named(name: &str, text: &str, problems: &mut Diagnostics) -> Option<NamedOperation> {
    if primitive(name).is_some() {
        let message = format!("`{name}` is a kind: an operation needs a name of its own");
        problems.push(Diagnostic::error("", Span::default(), message));
    }
    let mut operation = read(text, problems).filter(|_| !problems.has_errors())?;
    if CHECKS.contains(&name) && !operation.kind.holds_slot() {
        let message = format!("`{name}` is a check: it cannot be of the kind `{}`", operation.kind.name());
        let problem = Diagnostic::error("kind", Span::default(), message);
        problems.push(problem.hint("use kind: agent, shell or tool"));
        return None;
    }
    operation.expect_of_name(name);
    Some(operation)
}

fn read(file: &str, problems: &mut Diagnostics) -> Option<NamedOperation> {
    let (front, body_at) = split(file);
    let body = file[body_at..].trim();
    let front = match front {
        Some(range) => parse_part(file, range, Format::Yaml, problems)?,
        None => Node { span: Span::default(), data: Data::Map(Vec::new()) },
    };
    let Some(entries) = front.as_map() else {
        let message = "the front matter must be an object of fields";
        problems.push(Diagnostic::error("", front.span, message));
        return None;
    };
    refuse_fields(entries, problems);
    let kind = kind(&front, problems)?;
    let description = front.get("description").and_then(Node::as_str).map(str::to_owned);
    let mut fields: Vec<Entry<'static>> = entries
        .iter()
        .filter(|(key, node)| !OWN_FIELDS.contains(&&*key.name) && node.data != Data::Null)
        .map(|(key, node)| {
            (Key { name: key.name.clone().into_owned().into(), span: key.span }, node.detached())
        })
        .collect();
    let span = Span { start: body_at as u32, end: file.len() as u32 };
    add_body(kind, body, span, &mut fields, problems);
    let operation = NamedOperation { kind, description, text: file.to_owned(), fields };
    operation.check(problems);
    Some(operation)
}

impl NamedOperation {
    /// The operation as a step that adds nothing to it; `None` if it cannot be read.
    pub fn alone(&self) -> Option<Operation> {
        self.check(&mut Diagnostics::default())
    }

    /// Reads it as a step of its own, so that its mistakes are told where they are.
    fn check(&self, problems: &mut Diagnostics) -> Option<Operation> {
        let span = Span::default();
        let mut entries = self.fields.clone();
        entries.push((Key { name: Cow::Borrowed("type"), span }, text(self.kind.name(), span)));
        let node = Node { span, data: Data::Map(entries) };
        let own: Vec<&str> = self.param_names().collect();
        operation::read_with(&node, &Place::Root, self.kind.name(), Some(&own), &Library::default(), problems)
    }
}

fn refuse_fields(entries: &[Entry<'_>], problems: &mut Diagnostics) {
    for (key, _) in entries.iter().filter(|(key, _)| !OWN_FIELDS.contains(&&*key.name)) {
        let name = &*key.name;
        if FIELDS_OF_USE.contains(&name) {
            let message =
                format!("`{name}` belongs to the step that uses the operation, not to the operation");
            problems.push(Diagnostic::error(name, key.span, message));
        }
    }
}

fn kind(front: &Node<'_>, problems: &mut Diagnostics) -> Option<Kind> {
    let Some(node) = front.get("kind").filter(|node| node.data != Data::Null) else {
        return Some(Kind::Agent);
    };
    let name = node.as_str().unwrap_or_default();
    let kind = primitive(name);
    if kind.is_none() {
        let kinds = Kind::ALL.map(Kind::name);
        let hint = did_you_mean(name, kinds).unwrap_or_else(|| format!("kinds: {}", kinds.join(", ")));
        let message = format!("unknown kind `{}`", printable(name));
        problems.push(Diagnostic::error("kind", node.span, message).hint(hint));
    }
    kind
}

/// The body in the place where its kind has its text.
fn add_body(
    kind: Kind,
    body: &str,
    span: Span,
    fields: &mut Vec<Entry<'static>>,
    problems: &mut Diagnostics,
) {
    if body.is_empty() {
        return;
    }
    let key = |name: &'static str| Key { name: Cow::Borrowed(name), span };
    let param = match kind {
        Kind::Agent => return fields.push((key("prompt"), text(body, span))),
        Kind::Shell => "run",
        Kind::Approval => "message",
        _ => {
            let message = format!("an operation of the kind `{}` has no text", kind.name());
            return problems.push(Diagnostic::error("", span, message));
        }
    };
    let entry = (key(param), text(body, span));
    match fields.iter_mut().find(|(key, _)| key.name == "params") {
        Some((_, Node { data: Data::Map(params), .. })) => params.push(entry),
        _ => fields.push((key("params"), Node { span, data: Data::Map(vec![entry]) })),
    }
}

/// Where the front matter is, if there is any, and where the body begins.
fn split(file: &str) -> (Option<std::ops::Range<usize>>, usize) {
    let start = file.len() - file.strip_prefix('\u{FEFF}').unwrap_or(file).len();
    let mut at = start;
    let mut front = None;
    for line in file[start..].split_inclusive('\n') {
        let rule = line.trim_end() == "---";
        match front {
            None if rule => front = Some(at + line.len()),
            None => return (None, start),
            Some(from) if rule => return (Some(from..at), at + line.len()),
            Some(_) => {}
        }
        at += line.len();
    }
    (None, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        Library::default().add("x.y", text).iter().map(|p| format!("{}: {}", p.field, p.message)).collect()
    }

    // covers: R6
    #[test]
    fn a_file_is_front_matter_and_a_prompt() {
        let mut library = Library::default();
        let text = "---\ndescription: d\nfilter: { top: 2 }\nparams: { part: all }\n---\n\nLook at {{ params.part }}.\n";
        assert_eq!(library.add("look", text), vec![]);
        let look = library.get("look").unwrap();
        assert_eq!((look.kind, look.description.as_deref()), (Kind::Agent, Some("d")));
        assert_eq!(look.field("prompt").unwrap().as_str(), Some("Look at {{ params.part }}."));
        assert_eq!(look.param_names().collect::<Vec<_>>(), ["part"]);
        assert_eq!(library.add("plain", "Only a prompt"), vec![]);
        assert_eq!(library.add("list", "---\nkind: shell\n---\nls -l"), vec![]);
        assert_eq!(library.get("list").unwrap().param_names().collect::<Vec<_>>(), ["run"]);
    }

    // covers: R6
    #[test]
    fn mistakes_are_told_with_their_place() {
        assert_eq!(messages("---\nkind: agnet\n---\np"), ["kind: unknown kind `agnet`"]);
        assert_eq!(messages("---\nid: a\n---\np").len(), 1);
        assert_eq!(messages("---\nfiltre: {}\n---\np"), ["filtre: unknown field `filtre`"]);
        assert_eq!(
            messages("---\nkind: sleep\nparams: {ms: 5}\n---\nwhy"),
            [": an operation of the kind `sleep` has no text"]
        );
        let problems = Library::default().add("x", "---\nfilter: { top: 0 }\n---\np");
        assert_eq!(problems[0].span.start, 19);
        assert_eq!(Library::default().add("shell", "p").len(), 1);
    }
}
