//! `params.of` of a check: does it name a step that leaves a worktree, and is that step done by then?

use serde_json::Value;

use super::Document;
use super::ancestry::Ancestry;
use super::names::Names;
use super::synthesis::wrong;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::read::CHECKS;
use crate::template::{Isolation, Kind};

pub fn check(
    names: &Names<'_>,
    ancestry: Option<&Ancestry<'_, '_>>,
    document: &Document<'_, '_>,
    problems: &mut Diagnostics,
) {
    for step in 0..names.places.len() as u32 {
        let operation = names.operation(step);
        let of = operation.params.get("of").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        // The number of an item may be an expression; another one is not known before the run.
        let name = of.split('[').next().unwrap_or(of);
        if !CHECKS.contains(&operation.type_name.as_str()) || name.is_empty() || name.contains("{{") {
            continue;
        }
        let (p, position) = names.places[step as usize];
        let field = format!("phases[{p}].operations[{position}].params.of");
        let params = document.operation_field(p as usize, position as usize, "params");
        let span = params.and_then(|params| params.get("of")).map_or(operation.span, |node| node.span);
        let found = names.find_path(name);
        if let Some((message, hint)) = wrong(names, ancestry, step, name, found, problems) {
            problems.push(Diagnostic::error(field, span, message).hint_if(hint));
            continue;
        }
        // What is inside of these has its own isolation.
        let leaves = |step: u32| {
            let operation = names.operation(step);
            operation.isolation == Isolation::Worktree
                || matches!(operation.kind, Kind::Workflow | Kind::Script)
        };
        if let Some(step) = found.filter(|&step| !leaves(step)) {
            let message =
                format!("`{}` works in the project and leaves no worktree to check", names.path(step));
            let hint = "leave out `of` to check the project, or set `isolation: worktree` on that step";
            problems.push(Diagnostic::error(field, span, message).hint(hint));
        }
    }
}
