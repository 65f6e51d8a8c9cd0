//! `fallback`: one alternative, a list of them, or {to, on}.
//!
//! A text is `cache` or another agent; an object names an agent, a model or both, or gives a value.

use super::fields::{Fields, expected};
use super::place::Place;
use super::policies::words;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::policy::{Alternative, Fallback, FallbackOn};
use crate::source::{Data, Node};
use crate::template::Kind;

pub const FALLBACK_FIELDS: &[&str] = &["to", "on"];
pub const ALTERNATIVE_FIELDS: &[&str] = &["agent", "model", "value"];

const EXAMPLES: &str = "such as cache, another agent's name, {model: ...} or {value: ...}";

/// `kind` is `None` if it is not known; then nothing is said about what fits it.
pub fn read(fields: &Fields<'_, '_>, kind: Option<Kind>, problems: &mut Diagnostics) -> Option<Fallback> {
    let node = fields.get("fallback")?;
    let place = fields.place.field("fallback");
    if !FALLBACK_FIELDS.iter().any(|name| node.get(name).is_some()) {
        let to = alternatives(node, &place, kind, problems);
        return (!to.is_empty()).then(|| Fallback { to, on: Fallback::DEFAULT_ON.to_vec() });
    }
    let fallback = Fields::new(node, &place, FALLBACK_FIELDS, problems)?;
    let on = occasions(&fallback, problems);
    let Some(to) = fallback.get("to") else {
        fallback.missing("to", problems);
        return None;
    };
    let to = alternatives(to, &place.field("to"), kind, problems);
    (!to.is_empty()).then_some(Fallback { to, on })
}

fn occasions(fallback: &Fields<'_, '_>, problems: &mut Diagnostics) -> Vec<FallbackOn> {
    let Some(node) = fallback.get("on") else {
        return Fallback::DEFAULT_ON.to_vec();
    };
    if matches!(&node.data, Data::Seq(items) if items.is_empty()) {
        let message = "the list is empty: the fallback would never be used";
        let problem = Diagnostic::error(fallback.place.field("on"), node.span, message);
        problems.push(problem.hint("on: [failure, breaker, quota], or leave `on` out"));
    }
    words(fallback, "on", "an occasion of a fallback", &FallbackOn::ALL.map(|on| (on.name(), on)), problems)
}

fn alternatives(
    node: &Node<'_>,
    place: &Place<'_>,
    kind: Option<Kind>,
    problems: &mut Diagnostics,
) -> Vec<Alternative> {
    let Data::Seq(items) = &node.data else {
        return alternative(node, place, kind, problems).into_iter().collect();
    };
    if items.is_empty() {
        problems.push(Diagnostic::error(place, node.span, "the list has no alternative").hint(EXAMPLES));
    }
    let mut found: Vec<Alternative> = Vec::with_capacity(items.len());
    let mut ended = false;
    for (index, item) in items.iter().enumerate() {
        let place = place.index(index);
        if ended {
            let message = "this alternative is never reached: the value before it always helps";
            problems.push(Diagnostic::warning(place, item.span, message).hint("put the value last"));
        }
        let read = alternative(item, &place, kind, problems);
        ended |= matches!(read, Some(Alternative::Value(_)));
        found.extend(read);
    }
    found
}

fn alternative(
    node: &Node<'_>,
    place: &Place<'_>,
    kind: Option<Kind>,
    problems: &mut Diagnostics,
) -> Option<Alternative> {
    let alternative = match &node.data {
        Data::Str(text) if text == "cache" => Alternative::Cache,
        Data::Str(text) if !text.trim().is_empty() => {
            Alternative::Agent { agent: Some(text.clone().into_owned()), model: None }
        }
        Data::Map(_) => object(node, place, problems)?,
        _ => {
            problems.push(expected("`cache`, an agent or an object", node, place).hint(EXAMPLES));
            return None;
        }
    };
    let other = kind.filter(|kind| *kind != Kind::Agent);
    if let (Alternative::Agent { .. }, Some(kind)) = (&alternative, other) {
        let message = format!("another agent or model is only for agents, this is a `{}` step", kind.name());
        let hint = "fallback: cache, or fallback: {value: ...}";
        problems.push(Diagnostic::error(place, node.span, message).hint(hint));
        return None;
    }
    Some(alternative)
}

fn object(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Option<Alternative> {
    let fields = Fields::new(node, place, ALTERNATIVE_FIELDS, problems)?;
    let agent = name(&fields, "agent", problems);
    let model = name(&fields, "model", problems);
    let named = fields.get("agent").is_some() || fields.get("model").is_some();
    // Not `fields.get`: here `null` is a value like any other.
    match node.get("value") {
        Some(value) if !named => Some(Alternative::Value(value.to_json())),
        Some(_) => {
            let message = "an alternative is either a `value`, or an `agent` and a `model`";
            problems.push(
                Diagnostic::error(place, node.span, message)
                    .hint("make it two: [{agent: ...}, {value: ...}]"),
            );
            None
        }
        None if !named => {
            let message = "this alternative names no `agent`, no `model` and no `value`";
            problems.push(Diagnostic::error(place, node.span, message).hint(EXAMPLES));
            None
        }
        None => (agent.is_some() || model.is_some()).then_some(Alternative::Agent { agent, model }),
    }
}

fn name(fields: &Fields<'_, '_>, field: &str, problems: &mut Diagnostics) -> Option<String> {
    let text = fields.text(field, problems)?;
    if text.trim().is_empty() {
        let span = fields.get(field).map_or(fields.span, |node| node.span);
        let problem = Diagnostic::error(fields.place.field(field), span, format!("`{field}` is empty"));
        problems.push(problem.hint(format!("write its name, or leave `{field}` out")));
        return None;
    }
    Some(text.to_owned())
}
