//! From the tree of a file to a typed `Template`. All errors are collected; nothing stops at the first.
//!
//! The lists of field names are what the reader knows, what "did you mean" offers and what the JSON Schema
//! must say: a test compares them. A field that DESIGN names and this version does not carry out is a
//! warning if leaving it out only costs time or money, and an error if the result would be another one.

mod agent_params;
mod bind;
mod cache;
mod fallback;
mod fields;
mod filter;
mod inputs;
mod library;
mod limits;
mod operation;
mod params;
mod phase;
mod place;
mod policies;

#[cfg(test)]
pub(crate) mod tests;

pub use agent_params::EFFORTS;
pub use bind::Binding;
pub(crate) use library::CHECKS;
pub use library::{Library, NamedOperation};
pub use limits::TARGET_KINDS;
pub use operation::OPERATION_FIELDS;
use operation::read as read_operation;
pub use params::param_names;
pub use phase::PHASE_FIELDS;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Data, Node};
use crate::template::{Operation, Template};
use fields::{Fields, expected};
use place::Place;

pub const TEMPLATE_FIELDS: &[&str] = &[
    "$schema",
    "name",
    "description",
    "timeout",
    "inputs",
    "budget",
    "onBudget",
    "retryBudget",
    "priority",
    "phases",
];

/// All lists of field names, with the place in the JSON Schema that must say the same.
pub const FIELD_LISTS: &[(&str, &[&str])] = &[
    ("/properties", TEMPLATE_FIELDS),
    ("/$defs/input/anyOf/1/properties", inputs::INPUT_FIELDS),
    ("/$defs/phase/properties", PHASE_FIELDS),
    ("/$defs/operation/properties", OPERATION_FIELDS),
    ("/$defs/repeat/properties", phase::REPEAT_FIELDS),
    ("/$defs/join/oneOf/1/properties", policies::JOIN_FIELDS),
    ("/$defs/retry/oneOf/2/properties", policies::RETRY_FIELDS),
    ("/$defs/onUnknown/oneOf/1/properties", policies::ON_UNKNOWN_FIELDS),
    ("/$defs/timeouts/oneOf/1/properties", limits::TIMEOUT_FIELDS),
    ("/$defs/budget/oneOf/2/properties", limits::BUDGET_FIELDS),
    ("/$defs/hedge/oneOf/1/properties", limits::HEDGE_FIELDS),
    ("/$defs/stall/oneOf/2/properties", limits::STALL_FIELDS),
    ("/$defs/fallback/oneOf/2/properties", fallback::FALLBACK_FIELDS),
    ("/$defs/alternative/oneOf/1/properties", fallback::ALTERNATIVE_FIELDS),
    ("/$defs/cache/oneOf/1/properties", cache::CACHE_FIELDS),
    ("/$defs/filter/oneOf/1/properties", filter::FILTER_FIELDS),
    ("/$defs/expect/properties", operation::EXPECT_FIELDS),
];

/// Reads one operation that code has called: JSON in which nothing is an expression.
pub fn read_call(text: &str, library: &Library) -> (Option<Operation>, Vec<Diagnostic>) {
    let mut problems = Diagnostics::default();
    let node = crate::source::parse_part(text, 0..text.len(), crate::source::Format::Json, &mut problems);
    let operation = node.and_then(|node| read_operation(&node, &Place::Root, library, &mut problems));
    (operation, problems.into_sorted())
}

/// Reads a template as far as it can be read. `None` only if the document is not an object.
pub fn read_template(node: &Node<'_>, library: &Library) -> (Option<Template>, Vec<Diagnostic>) {
    let mut problems = Diagnostics::default();
    let template = read_into(node, library, &mut problems);
    (template, problems.into_sorted())
}

pub(crate) fn read_into(node: &Node<'_>, library: &Library, problems: &mut Diagnostics) -> Option<Template> {
    let place = Place::Root;
    let fields = Fields::new(node, &place, TEMPLATE_FIELDS, problems)?;
    let mut template = Template {
        name: name(&fields, problems),
        description: fields.text("description", problems).map(str::to_owned),
        timeout_ms: fields.timeout_ms("timeout", problems),
        inputs: inputs::read(&fields, problems),
        budget: limits::budget(&fields, problems),
        on_budget: policies::on_budget(&fields, problems),
        retry_budget: limits::retry_budget(&fields, problems),
        priority: policies::priority(&fields, problems),
        phases: Vec::new(),
    };
    match fields.get("phases") {
        None => fields.missing("phases", problems),
        Some(node) => match &node.data {
            Data::Seq(items) => {
                let list = place.field("phases");
                template.phases.reserve(items.len());
                for (index, item) in items.iter().enumerate() {
                    template.phases.extend(phase::read(item, &list.index(index), library, problems));
                }
            }
            _ => problems.push(expected("a list of phases", node, &place.field("phases"))),
        },
    }
    Some(template)
}

fn name(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> String {
    if fields.get("name").is_none() {
        fields.missing("name", problems);
    }
    bounded(fields, "name", 100, problems).unwrap_or_default()
}

/// A text of 1 to `longest` characters.
fn bounded(
    fields: &Fields<'_, '_>,
    name: &str,
    longest: usize,
    problems: &mut Diagnostics,
) -> Option<String> {
    let text = fields.text(name, problems)?;
    if text.trim().is_empty() || text.chars().nth(longest).is_some() {
        let span = fields.get(name).map_or(fields.span, |node| node.span);
        let message = format!("`{name}` must have 1 to {longest} characters");
        problems.push(Diagnostic::error(fields.place.field(name), span, message));
    }
    Some(text.to_owned())
}

/// An id: small letters, digits and `-`. A wrong one is kept, so that what refers to it is not wrong as well.
fn id(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<String> {
    let text = fields.text("id", problems)?;
    let good = !text.is_empty() && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if !good || text.len() > 100 {
        let span = fields.get("id").map_or(fields.span, |node| node.span);
        let message = "an id has 1 to 100 small letters, digits and `-`";
        let mut problem = Diagnostic::error(fields.place.field("id"), span, message);
        if let Ok(better) = crate::slug::Feature::from_title(text) {
            problem = problem.hint(format!("`{}` would do", better.slug()));
        }
        problems.push(problem);
    }
    Some(text.to_owned())
}
