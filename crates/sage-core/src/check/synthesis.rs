//! `synthesize` steps: does each one have something to put together, and may it see it?

use serde_json::Value;

use super::Document;
use super::ancestry::Ancestry;
use super::names::Names;
use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::source::{Data, Node};
use crate::template::Kind;

pub fn check(
    names: &Names<'_>,
    ancestry: Option<&Ancestry<'_, '_>>,
    document: &Document<'_, '_>,
    problems: &mut Diagnostics,
) {
    for step in 0..names.places.len() as u32 {
        let operation = names.operation(step);
        if operation.kind != Kind::Synthesize {
            continue;
        }
        let (p, position) = names.places[step as usize];
        let field = format!("phases[{p}].operations[{position}].params.from");
        let params = document.operation_field(p as usize, position as usize, "params");
        let written = params.and_then(|params| params.get("from"));
        match operation.params.get("from").and_then(Value::as_array) {
            Some(from) => {
                for (index, name) in from.iter().filter_map(Value::as_str).enumerate() {
                    let node = written.and_then(|node| member(node, index));
                    let span = node.map_or(operation.span, |node| node.span);
                    let field = format!("{field}[{index}]");
                    let found = names.find_from(p, name);
                    let Some((message, hint)) = wrong(names, ancestry, step, name, found, problems) else {
                        continue;
                    };
                    problems.push(Diagnostic::error(field, span, message).hint_if(hint));
                }
            }
            None if names.needs[step as usize].is_empty() && names.dependencies[p as usize].is_empty() => {
                let message = "there is nothing to synthesize: this operation depends on no step";
                let hint = "dependencies: [the phase whose results are put together]";
                problems.push(Diagnostic::error(field, operation.span, message).hint(hint));
            }
            None => {}
        }
    }
}

fn member<'n, 'a>(node: &'n Node<'a>, index: usize) -> Option<&'n Node<'a>> {
    match &node.data {
        Data::Seq(items) => items.get(index),
        _ => Some(node),
    }
}

/// What is wrong with a name, and what to write instead.
pub(super) fn wrong(
    names: &Names<'_>,
    ancestry: Option<&Ancestry<'_, '_>>,
    own: u32,
    name: &str,
    found: Option<u32>,
    problems: &Diagnostics,
) -> Option<(String, Option<String>)> {
    let shown = printable(name);
    let Some(step) = found else {
        let (p, _) = names.places[own as usize];
        let hint = problems.wants_hints().then(|| names.step_hint(p, name)).flatten();
        return Some((format!("unknown step `{shown}`"), hint));
    };
    // With a cycle nothing is before anything; the cycle has been reported.
    if ancestry.is_none_or(|ancestry| step != own && ancestry.has(own, step)) {
        return None;
    }
    let (of, own_phase) = (names.places[step as usize].0, names.places[own as usize].0);
    let hint = match of == own_phase {
        true => (step != own).then(|| format!("needs: [{shown}]")),
        false => Some(format!(
            "dependencies: [{}] on this phase, which may also go on when some of them failed; or needs: [{shown}]",
            names.phase(of).id
        )),
    };
    Some((format!("`{}` is used here, but this operation does not depend on it", names.path(step)), hint))
}
