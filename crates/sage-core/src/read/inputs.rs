//! `inputs`: a plain value is a default; an object with `type`, `default`, `required` or `enum` is a declaration.

use super::fields::{Fields, expected};
use super::place::Place;
use super::policies::word;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::inputs::{Input, InputKind, Inputs};
use crate::source::{Data, Node};

pub const INPUT_FIELDS: &[&str] = &["type", "default", "required", "description", "enum"];

/// How a literal object is written that looks like a declaration.
const LITERAL: &str = "an object as the default is written `default: {...}`";

pub fn read(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Inputs {
    let mut inputs = Inputs::default();
    let Some(node) = fields.object("inputs", problems) else { return inputs };
    let place = fields.place.field("inputs");
    for (key, value) in node.as_map().into_iter().flatten() {
        let input = if declares(value) {
            declared(&key.name, value, &place.field(&key.name), problems)
        } else {
            Input::plain(key.name.clone(), value.to_json())
        };
        inputs.push(input);
    }
    inputs
}

/// An object that is no declaration is a default, as every other value is.
fn declares(node: &Node<'_>) -> bool {
    let Some(entries) = node.as_map().filter(|entries| !entries.is_empty()) else { return false };
    let kind = node.get("type").and_then(Node::as_str);
    let is_kind = |text: &str| InputKind::WORDS.iter().any(|(word, _)| *word == text);
    let has = |name: &str| entries.iter().any(|(key, _)| key.name == name);
    kind.is_some_and(is_kind)
        || ["default", "required", "enum"].into_iter().any(has)
        || entries.iter().all(|(key, _)| INPUT_FIELDS.contains(&&*key.name))
}

fn declared(name: &str, node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Input {
    let mut own = Diagnostics::default();
    let mut input = Input { name: name.into(), ..Input::default() };
    if let Some(fields) = Fields::new(node, place, INPUT_FIELDS, &mut own) {
        input.kind = word(&fields, "type", &InputKind::WORDS, &mut own);
        input.required = fields.flag("required", &mut own).unwrap_or(false);
        input.description = fields.text("description", &mut own).map(str::to_owned);
        input.choices = choices(&fields, &input, &mut own);
        input.default = fields.get("default").map(Node::to_json);
        if let (Some(value), Some(node)) = (&input.default, fields.get("default"))
            && let Err(error) = input.check(value)
        {
            own.push(Diagnostic::error(place.field("default"), node.span, error.to_string()));
        }
    }
    for problem in own.into_sorted() {
        let hint = problem.hint.clone().map_or_else(|| LITERAL.into(), |hint| format!("{hint}; {LITERAL}"));
        problems.push_new(problem.hint(hint));
    }
    input
}

fn choices(fields: &Fields<'_, '_>, input: &Input, problems: &mut Diagnostics) -> Vec<serde_json::Value> {
    let Some(node) = fields.get("enum") else { return Vec::new() };
    let place = fields.place.field("enum");
    let items = match &node.data {
        Data::Seq(items) if !items.is_empty() => items,
        _ => {
            problems.push(expected("a list of values", node, &place));
            return Vec::new();
        }
    };
    for (index, item) in items.iter().enumerate() {
        if let Err(error) = input.check(&item.to_json()) {
            problems.push(Diagnostic::error(place.index(index), item.span, error.to_string()));
        }
    }
    items.iter().map(Node::to_json).collect()
}
