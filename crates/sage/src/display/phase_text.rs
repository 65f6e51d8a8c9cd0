//! What became of a phase, in words: the tree and the plain lines say the same.

use sage_core::policy::Join;
use sage_core::run::{Judgement, Phase, Run, State, StepId};

use super::text::plural;
use super::walk;

/// `3 steps`, `2 of 3 succeeded, 1 failure tolerated`, `1 of 4 succeeded, 3 needed`. Steps are those that the run's
/// progress counts, except where a join asks for members.
pub(super) fn outcome_text(run: &Run, phase: &Phase) -> String {
    let counted = walk::counted(run, phase);
    if phase.judged == Some(Judgement::Reached) {
        return plural(counted.len() as u64, "step");
    }
    let join = run.scope(phase.scope).plan.phase(phase.plan_phase).join;
    let members = phase.members.len() as u32 - phase.skipped;
    let (ok, needed) = (phase.ok - phase.skipped, join.needed(members));
    if ok < needed && join != Join::All {
        return format!("{ok} of {members} succeeded, {needed} needed");
    }
    let ran = counted.iter().filter(|&&id| !matches!(run.step(id).state, State::Skipped));
    let (mut all, mut done) = (0, 0);
    for &id in ran {
        all += 1;
        done += u64::from(run.step(id).state.ok());
    }
    let steps = if done < all { format!("{done} of {all} succeeded") } else { plural(all, "step") };
    format!("{steps}{}", shortfall_text(run, phase, ok == members))
}

/// Why a phase is degraded although it was reached: `, 2 failures tolerated, 1 fallback used`. Where members are missing,
/// their number says that failures were tolerated.
fn shortfall_text(run: &Run, phase: &Phase, complete: bool) -> String {
    let inside: Vec<StepId> = phase.members.iter().flat_map(|&id| walk::leaves(run, id)).collect();
    let count = |wanted: &dyn Fn(StepId) -> bool| inside.iter().filter(|&&id| wanted(id)).count() as u64;
    let failed = count(&|id| complete && matches!(run.step(id).state, State::Failed));
    let stood_in = count(&|id| run.stood_in(id));
    let unchecked = count(&|id| run.went_without(id));
    let facts = [
        (failed, format!(", {} tolerated", plural(failed, "failure"))),
        (stood_in, format!(", {} used", plural(stood_in, "fallback"))),
        (unchecked, format!(", {unchecked} not checked")),
    ];
    facts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}
