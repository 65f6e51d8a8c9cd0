//! A run that came from elsewhere, as a person sees it before adopting it: what its steps would still do, and the
//! answers that it brings along, which nobody here gave.

use std::collections::BTreeSet;

use sage_core::run::{Run, State};
use sage_engine::open::Engine;

use super::powers::powers;
use crate::display::text::named;

/// `None` if it cannot be read; then it cannot go on either.
pub fn phrases(engine: &Engine, feature: &str) -> Option<Vec<String>> {
    let run = engine.read(feature).ok()?.run;
    let mut does = answers(&run);
    does.extend(steps(&run));
    does.extend(below(&run));
    Some(does)
}

fn answers(run: &Run) -> Vec<String> {
    let answer =
        |id| Some(format!("brings the answer {} to {}", run.answer_of(id)?, named(&run.step(id).path)));
    run.step_ids().filter_map(answer).collect()
}

/// Failed ones can be tried again.
fn steps(run: &Run) -> Vec<String> {
    let left = run.step_ids().filter(|id| !matches!(run.step(*id).state, State::Succeeded | State::Skipped));
    let told = left.flat_map(|id| {
        let path = named(&run.step(id).path);
        powers(run.operation(id)).into_iter().map(move |power| format!("{path} {power}"))
    });
    told.collect()
}

/// Templates that its steps can start.
fn below(run: &Run) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for (name, plan) in run.named_plans() {
        for operation in plan.template.phases.iter().flat_map(|phase| &phase.operations) {
            told.extend(powers(operation).into_iter().map(|power| format!("{} {power}", named(&name))));
        }
    }
    told
}
