//! Ways through a run that more than one view takes.

use crate::command_line::sage;
use sage_core::run::{Phase, Run, State, Status, StepId};
use sage_core::wire;

/// The step that this one is a part of: its fan-out, or the sub-workflow's step.
pub(crate) fn holder(run: &Run, id: StepId) -> Option<StepId> {
    let step = run.step(id);
    step.item.map(|(fan, _)| fan).or_else(|| run.scope(step.scope).parent)
}

/// Steps inside this one that do the work themselves; itself, if it holds no others. In plan order.
pub(crate) fn leaves(run: &Run, id: StepId) -> Vec<StepId> {
    let mut queue = vec![id];
    let mut leaves = Vec::new();
    while let Some(id) = queue.pop() {
        if run.step(id).children.is_some() {
            queue.extend(run.children(id).into_iter().rev());
        } else {
            leaves.push(id);
        }
    }
    leaves
}

/// The steps of a phase that are part of the run's total, with those inside of them.
pub(crate) fn counted(run: &Run, phase: &Phase) -> Vec<StepId> {
    let mut queue: Vec<StepId> = phase.members.iter().rev().copied().collect();
    let mut counted = Vec::new();
    while let Some(id) = queue.pop() {
        counted.extend(wire::counts(run, id).then_some(id));
        queue.extend(run.children(id).into_iter().rev());
    }
    counted
}

/// Whether the step, or something inside it, is at work: waiting for a slot, a time or a person is not.
pub(crate) fn works(run: &Run, id: StepId) -> bool {
    if !run.status.open() {
        return false;
    }
    // A script without open calls computes.
    let computes = |id: StepId| {
        let open = matches!(run.step(id).state, State::Open { .. }) && run.calls(id).is_some();
        open && run.children(id).into_iter().all(|call| run.step(call).state.settled())
    };
    run.is_active(id) || computes(id)
}

/// Whether anything in a phase is at work, be it the question whether it goes round again.
pub(crate) fn phase_works(run: &Run, phase: &Phase) -> bool {
    phase.repeating || phase.members.iter().any(|&id| works(run, id))
}

/// Time of the attempt that is under way; else all that a step has taken, in attempts or from its first child's
/// start to the last one's end. What is open counts from the present owner's turn on: the time before may have
/// been a pause of days.
pub(crate) fn elapsed_ms(run: &Run, id: StepId, now_ms: u64) -> u64 {
    let step = run.step(id);
    match &step.state {
        State::Running(running) => now_ms.saturating_sub(running.since_ms.max(run.tally.turn_ms)),
        State::Open { .. } => now_ms.saturating_sub(step.started_ms.max(run.tally.turn_ms)),
        _ if step.children.is_some() => step.ended_ms.saturating_sub(step.started_ms),
        _ => step.active_ms,
    }
}

/// Time the run has been owned: goes on while it runs.
pub(crate) fn run_ms(run: &Run, now_ms: u64) -> u64 {
    match run.status {
        Status::Running => run.tally.earlier_ms + now_ms.saturating_sub(run.tally.turn_ms),
        _ => run.elapsed_ms(),
    }
}

/// From a phase's opening to its judgement or until now, in the present owner's turn; of a phase that was
/// finished before, its members tell.
pub(crate) fn phase_ms(run: &Run, phase: &Phase, now_ms: u64) -> u64 {
    let from = phase.opened_ms.max(run.tally.turn_ms);
    if phase.judged.is_none() {
        return if phase.open { now_ms.saturating_sub(from) } else { 0 };
    }
    let own_ms = phase.judged_ms.saturating_sub(from);
    if own_ms > 0 {
        return own_ms;
    }
    let ran = || phase.members.iter().map(|&id| run.step(id)).filter(|step| step.started_ms > 0);
    let first = ran().map(|step| step.started_ms).min().unwrap_or(0);
    let last = ran().map(|step| step.ended_ms).max().unwrap_or(0);
    last.saturating_sub(first)
}

/// What to type to answer a step's question.
pub(crate) fn approve_command(run: &Run, id: StepId) -> String {
    let command = sage("approve").arg(&run.feature).arg(run.step(id).path.as_ref());
    let ask = match &run.step(id).state {
        State::Running(running) => running.ask.as_deref(),
        _ => None,
    };
    let asked = ask.filter(|ask| !ask.choices.iter().any(|choice| choice == "approve"));
    // Quoted as a whole: pasted as it is, it answers nothing.
    command.option_if("-c", asked.map(|ask| format!("<{}>", ask.choices.join("|")))).to_string()
}
