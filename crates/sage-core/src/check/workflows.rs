//! Templates that other templates use: do they exist, and do they use each other in a circle?

use std::collections::HashSet;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::template::{Kind, Template};

/// The templates of a project, as far as a check must know them.
pub trait Catalogue {
    /// All names, for "did you mean".
    fn names(&self) -> Vec<String>;
    /// The templates that the `workflow` steps of template `name` use (`workflow_calls`); `None` if there is
    /// no such template.
    fn calls(&self, name: &str) -> Option<Vec<String>>;
}

/// A project without templates.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTemplates;

impl Catalogue for NoTemplates {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn calls(&self, _name: &str) -> Option<Vec<String>> {
        None
    }
}

/// The names of the templates that a template's `workflow` steps use, each once, in order.
pub fn workflow_calls(template: &Template) -> Vec<&str> {
    let mut seen = HashSet::new();
    let operations = template.phases.iter().flat_map(|phase| &phase.operations);
    let calls = operations.filter(|operation| operation.kind == Kind::Workflow);
    calls
        .filter_map(|operation| operation.params.get("template").and_then(Value::as_str))
        .filter(|name| seen.insert(*name))
        .collect()
}

pub fn check(template: &Template, catalogue: &dyn Catalogue, problems: &mut Diagnostics) {
    let mut checked: HashSet<&str> = HashSet::new();
    for (p, phase) in template.phases.iter().enumerate() {
        for (position, operation) in phase.operations.iter().enumerate() {
            let name = operation.params.get("template").and_then(Value::as_str);
            let Some(name) = name.filter(|_| operation.kind == Kind::Workflow) else { continue };
            if !checked.insert(name) || crate::expr::is_dynamic(name) {
                continue;
            }
            let field = format!("phases[{p}].operations[{position}].params.template");
            if catalogue.calls(name).is_none() {
                let names = catalogue.names();
                let message = format!("unknown template `{}`", printable(name));
                let hint = did_you_mean(name, names.iter().map(String::as_str));
                problems.push(Diagnostic::error(field, operation.span, message).hint_if(hint));
            } else if let Some(circle) = circle(&template.name, name, catalogue) {
                let message = format!("templates use each other in a circle: {}", circle.join(" -> "));
                problems.push(Diagnostic::error(field, operation.span, message));
            }
        }
    }
}

/// Depth first with the path on a stack of our own; a template seen before leads nowhere new.
fn circle(root: &str, first: &str, catalogue: &dyn Catalogue) -> Option<Vec<String>> {
    let mut path: Vec<(String, Vec<String>)> = vec![(root.to_owned(), vec![first.to_owned()])];
    let mut seen: HashSet<String> = HashSet::new();
    while let Some((_, todo)) = path.last_mut() {
        let Some(next) = todo.pop() else {
            path.pop();
            continue;
        };
        if let Some(at) = path.iter().position(|(name, _)| *name == next) {
            let mut names: Vec<String> = path[at..].iter().map(|(name, _)| name.clone()).collect();
            names.push(next);
            return Some(names.iter().map(|name| printable(name)).collect());
        }
        if seen.insert(next.clone()) {
            let calls = catalogue.calls(&next).unwrap_or_default();
            path.push((next, calls));
        }
    }
    None
}
