//! Limits that contradict each other: each is right by itself, together one of them never matters.

use std::time::Duration;

use super::Document;
use crate::budget::Cap;
use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::policy::Alternative;
use crate::template::{Kind, Operation, Span, Template};

pub fn check(template: &Template, document: &Document<'_, '_>, problems: &mut Diagnostics) {
    let whole = template.budget.map(|cap| (cap, "the template's"));
    for (p, phase) in template.phases.iter().enumerate() {
        if let Some(cap) = phase.budget {
            let span = document.phase_field(p, "budget").map_or(phase.span, |node| node.span);
            warn_larger(cap, &[whole], format!("phases[{p}].budget"), span, problems);
        }
        let above = [phase.budget.map(|cap| (cap, "its phase's")), whole];
        for (position, operation) in phase.operations.iter().enumerate() {
            let place = |field: &str| {
                let span = document.operation_field(p, position, field).map(|node| node.span);
                (format!("phases[{p}].operations[{position}].{field}"), span.unwrap_or(operation.span))
            };
            if let Some(cap) = operation.budget {
                let (field, span) = place("budget");
                warn_larger(cap, &above, field, span, problems);
            }
            warn_late_hedge(operation, &place, problems);
            warn_idle_holder(operation, &place, problems);
            warn_same_agent(operation, &place, problems);
        }
    }
}

/// The first cap above that leaves less room: what is over it can never be spent.
fn warn_larger(
    cap: Cap,
    above: &[Option<(Cap, &str)>],
    field: String,
    span: Span,
    problems: &mut Diagnostics,
) {
    let more = |own: Option<u64>, limit: Option<u64>| matches!((own, limit), (Some(own), Some(limit)) if own > limit);
    let exceeds = |limit: &Cap| more(cap.tokens, limit.tokens) || more(cap.micro_usd, limit.micro_usd);
    if let Some((limit, whose)) = above.iter().flatten().find(|(limit, _)| exceeds(limit)) {
        let message = format!("the budget {cap} is larger than {whose}: {limit}");
        let warning = Diagnostic::warning(field, span, message);
        problems.push(warning.hint(format!("write {limit} or less, or raise {whose}")));
    }
}

/// What holds other steps says nothing by itself.
fn warn_idle_holder(
    operation: &Operation,
    place: &dyn Fn(&str) -> (String, Span),
    problems: &mut Diagnostics,
) {
    let holds = matches!(operation.kind, Kind::Script | Kind::Workflow);
    if holds && operation.idle_timeout_ms.is_some() {
        let (field, span) = place("idleTimeout");
        let message = format!("a {} step is never idle: the steps in it are", operation.kind.name());
        let hint = "write `timeout`, or give the steps in it an `idleTimeout`";
        problems.push(Diagnostic::warning(field, span, message).hint(hint));
    }
}

/// A second attempt that would begin when the first is already stopped.
fn warn_late_hedge(
    operation: &Operation,
    place: &dyn Fn(&str) -> (String, Span),
    problems: &mut Diagnostics,
) {
    let end = operation.timeout_ms.into_iter().chain(operation.step_timeout_ms).min();
    let (Some(hedge), Some(end)) = (operation.hedge, end) else { return };
    if hedge.after_ms >= end {
        let (field, span) = place("hedge");
        let text = |ms| humantime::format_duration(Duration::from_millis(ms)).to_string();
        let (after, end) = (text(hedge.after_ms), text(end));
        let message = format!("the hedge after {after} never starts: the timeout is {end}");
        let hint = format!("write less than {end}, or a longer `timeout`");
        problems.push(Diagnostic::warning(field, span, message).hint(hint));
    }
}

/// An alternative that is what has just failed. Without a model it is the agent's usual one, as in the step.
fn warn_same_agent(
    operation: &Operation,
    place: &dyn Fn(&str) -> (String, Span),
    problems: &mut Diagnostics,
) {
    for alternative in operation.fallback.iter().flat_map(|fallback| &fallback.to) {
        let Alternative::Agent { agent, model } = alternative else { continue };
        let same = (agent.is_none() || *agent == operation.agent) && *model == operation.model;
        if !same {
            continue;
        }
        let (field, span) = place("fallback");
        let message = match (agent, model) {
            (Some(agent), None) => format!("the fallback `{}` is the step's own agent", printable(agent)),
            (_, model) => {
                let model = printable(model.as_deref().unwrap_or_default());
                format!("the fallback `{model}` is the step's own agent and model")
            }
        };
        problems.push(Diagnostic::warning(field, span, message).hint("name another agent or model"));
    }
}
