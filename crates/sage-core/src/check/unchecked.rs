//! Steps that may change files after the last check: what they leave is never tested.

use super::ancestry::Ancestry;
use super::names::Names;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::template::{Isolation, Operation};

/// Pairs of a step and a check that are looked at: a template with more is written by a program.
const MAX_PAIRS: usize = 10_000;

/// Templates without checks are somebody's choice.
pub fn check(names: &Names<'_>, ancestry: Option<&Ancestry<'_, '_>>, problems: &mut Diagnostics) {
    let Some(ancestry) = ancestry else { return };
    let steps = || 0..names.places.len() as u32;
    let checks: Vec<u32> = steps().filter(|&step| names.operation(step).is_check()).collect();
    let writers: Vec<u32> = steps().filter(|&step| writes(names.operation(step))).collect();
    if checks.is_empty() || checks.len() * writers.len() > MAX_PAIRS {
        return;
    }
    for step in writers {
        if checks.iter().any(|&check| ancestry.has(check, step)) {
            continue;
        }
        let (p, position) = names.places[step as usize];
        let field = format!("phases[{p}].operations[{position}]");
        let message = format!("`{}` may change files, and no check runs after it", names.path(step));
        let problem = Diagnostic::warning(field, names.operation(step).span, message);
        let hint =
            format!("add a step that comes after it: {{ type: test.run, needs: [{}] }}", names.path(step));
        problems.push_new(problem.hint(hint));
    }
}

/// It changes the project itself, and nothing that it expects is a check.
fn writes(operation: &Operation) -> bool {
    let expected = operation.expect.as_ref().is_some_and(|expect| expect.get("command").is_some());
    operation.may_change()
        && operation.expects("changes") != Some(false)
        && operation.isolation == Isolation::None
        && !expected
}
