//! Parameters that only agents have: what they read, what they may use, how they work.

use serde_json::Value;

use super::fields::{Fields, expected};
use super::place::Place;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::expr;
use crate::source::{Data, Node};

/// How much an agent thinks; each adapter takes the nearest that its agent knows.
pub const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];
/// How it works.
pub const MODES: [&str; 1] = ["plan"];
/// What of a project's own configuration of an agent counts.
pub const PROJECT_PARTS: [&str; 3] = ["settings", "skills", "agents"];
/// May stand beside `params`, as `prompt` may.
pub const BESIDE: [&str; 2] = ["files", "mcp"];

/// The value of a parameter as the executor gets it; `None` if it is none of these.
pub fn value(name: &str, node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Option<Value> {
    match name {
        "effort" => one_of(&EFFORTS, node, place, problems),
        "mode" => one_of(&MODES, node, place, problems),
        "questions" if !matches!(node.data, Data::Bool(_)) => {
            problems.push(expected("true or false", node, place))
        }
        "questions" => {}
        "project" if matches!(node.data, Data::Bool(_)) => {}
        "project" => names(
            node,
            place,
            "`true`, `false`, or a list of its parts",
            problems,
            |item, place, problems| {
                one_of(&PROJECT_PARTS, item, place, problems);
            },
        ),
        "files" => names(node, place, "a list of paths", problems, |item, place, problems| {
            let leaves =
                |path: &str| path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
            if item.as_str().is_some_and(leaves) {
                problems.push(Diagnostic::error(place, item.span, "the file must be inside of the project"));
            }
        }),
        "mcp" => names(node, place, "a list of MCP servers", problems, |item, place, problems| {
            if item.as_str().is_some_and(expr::is_dynamic) {
                let message = "the MCP servers of a step must be plain names: they are part of the plan";
                problems.push(Diagnostic::error(place, item.span, message));
            }
        }),
        _ => return None,
    }
    Some(node.to_json())
}

/// A list of texts; one may stand without brackets.
fn names(
    node: &Node<'_>,
    place: &Place<'_>,
    what: &str,
    problems: &mut Diagnostics,
    check: impl Fn(&Node<'_>, &Place<'_>, &mut Diagnostics),
) {
    match &node.data {
        Data::Str(_) => check(node, place, problems),
        Data::Seq(items) => {
            for (index, item) in items.iter().enumerate() {
                let place = place.index(index);
                match item.as_str() {
                    Some(text) if !text.trim().is_empty() => check(item, &place, problems),
                    _ => problems.push(expected("text", item, &place)),
                }
            }
        }
        _ => problems.push(expected(what, node, place)),
    }
}

fn one_of(known: &[&str], node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) {
    let Some(text) = node.as_str() else {
        problems.push(expected(&format!("one of {}", known.join(", ")), node, place));
        return;
    };
    if !known.contains(&text) && !expr::is_dynamic(text) {
        let message = format!("`{}` is not one of {}", printable(text), known.join(", "));
        let hint = did_you_mean(text, known.iter().copied());
        problems.push(Diagnostic::error(place, node.span, message).hint_if(hint));
    }
}

/// A field that stands beside `params`.
pub fn beside(
    fields: &Fields<'_, '_>,
    params: Option<&Fields<'_, '_>>,
    name: &str,
    problems: &mut Diagnostics,
) -> Option<Value> {
    let node = fields.get(name).filter(|node| node.data != Data::Null)?;
    if let Some((params, inner)) = params.and_then(|params| Some((params, params.get(name)?))) {
        let message = format!("`{name}` is given twice");
        let problem = Diagnostic::error(params.place.field(name), inner.span, message);
        problems.push(problem.also(node.span, "first"));
    }
    value(name, node, &fields.place.field(name), problems)
}
