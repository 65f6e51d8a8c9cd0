//! `filter`: what of a result reaches the next prompt, as one jq program.
//!
//! `{top, minRelevance, jq}` works on a list, or on the `findings` of an object. What has no relevance
//! cannot be judged by it: it stays, and `top` then means the first ones.

use super::fields::{Fields, expected};
use super::place::Place;
use crate::diagnostic::Diagnostics;
use crate::source::{Data, Node};
use crate::template::Source;

pub const FILTER_FIELDS: &[&str] = &["top", "minRelevance", "maxTokens", "jq"];

/// The program, and how many tokens what it lets through may have.
pub fn read(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> (Option<Source>, Option<u32>) {
    let Some(node) = fields.get("filter") else { return (None, None) };
    let place = fields.place.field("filter");
    if let Data::Str(text) = &node.data {
        return (Some(Source { text: text.clone().into_owned(), span: node.span }), None);
    }
    let Some(filter) = Fields::new(node, &place, FILTER_FIELDS, problems) else { return (None, None) };
    let top = filter.count("top", 1, u32::MAX, problems);
    let least = relevance(&filter, &place, problems);
    let jq = filter.text("jq", problems);
    let program = program(top, least, jq).map(|text| Source { text, span: node.span });
    (program, filter.count("maxTokens", 1, u32::MAX, problems))
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
