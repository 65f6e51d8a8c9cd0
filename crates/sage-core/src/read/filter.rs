//! `filter`: what of a result reaches the next prompt, as one jq program.
//!
//! `{top, minRelevance, jq}` works on a list, or on the `findings` of an object. What has no relevance
//! cannot be judged by it: it stays, and `top` then means the first ones.

use serde_json::Value;

use super::fields::{Fields, expected};
use super::place::Place;
use crate::diagnostic::Diagnostics;
use crate::source::{Data, Node};
use crate::template::{Source, Span};

pub const FILTER_FIELDS: &[&str] = &["top", "minRelevance", "jq"];

pub fn read(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Source> {
    let node = fields.get("filter")?;
    let place = fields.place.field("filter");
    if let Data::Str(text) = &node.data {
        return Some(Source { text: text.clone().into_owned(), span: node.span });
    }
    let filter = Fields::new(node, &place, FILTER_FIELDS, problems)?;
    let top = filter.count("top", 1, u32::MAX, problems);
    let least = relevance(&filter, &place, problems);
    let jq = filter.text("jq", problems);
    program(top, least, jq).map(|text| Source { text, span: node.span })
}

fn relevance(filter: &Fields<'_, '_>, place: &Place<'_>, problems: &mut Diagnostics) -> Option<f64> {
    let node = filter.get("minRelevance")?;
    let value = number(node).filter(|value| (0.0..=1.0).contains(value));
    if value.is_none() {
        problems.push(expected("a number from 0 to 1", node, &place.field("minRelevance")));
    }
    value
}

fn number(node: &Node<'_>) -> Option<f64> {
    match &node.data {
        Data::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// The filter of a named operation; it was written by us or checked when it was read.
pub fn of_base(filter: &Value, span: Span) -> Option<Source> {
    let text = match filter {
        Value::String(text) => Some(text.clone()),
        Value::Object(map) => program(
            map.get("top").and_then(Value::as_u64).and_then(|top| u32::try_from(top).ok()),
            map.get("minRelevance").and_then(Value::as_f64),
            map.get("jq").and_then(Value::as_str),
        ),
        _ => None,
    };
    text.map(|text| Source { text, span })
}

fn program(top: Option<u32>, least: Option<f64>, jq: Option<&str>) -> Option<String> {
    let mut stages = Vec::new();
    if let Some(least) = least {
        stages.push(format!("map(select(((.relevance? | numbers) // 1) >= {least}))"));
    }
    if let Some(top) = top {
        let ranked = "all(.[]; type == \"object\" and (.relevance | type) == \"number\")";
        stages.push(format!("(if {ranked} then sort_by(-.relevance) else . end) | .[:{top}]"));
    }
    let mut parts = Vec::new();
    if !stages.is_empty() {
        let list = stages.join(" | ");
        parts.push(format!(
            "if type == \"array\" then {list} \
             elif type == \"object\" and (.findings | type) == \"array\" then .findings |= ({list}) else . end"
        ));
    }
    // The line break ends a comment that the author's text may end with.
    parts.extend(jq.map(|jq| if stages.is_empty() { jq.to_owned() } else { format!("({jq}\n)") }));
    (!parts.is_empty()).then(|| parts.join(" | "))
}
