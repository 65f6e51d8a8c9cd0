//! Ways through a run that more than one view takes.

use crate::command_line::sage;
use sage_core::run::{Phase, Run, State, StepId};
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

/// The same, with what failed although nothing inside of it did: a script that threw, a workflow that took too long.
pub(crate) fn leaves_and_failures(run: &Run, id: StepId) -> Vec<StepId> {
    if run.step(id).children.is_none() {
        return vec![id];
    }
    let inside: Vec<StepId> =
        run.children(id).into_iter().flat_map(|child| leaves_and_failures(run, child)).collect();
    let failed = |id: StepId| matches!(run.step(id).state, State::Failed);
    let alone = failed(id) && !inside.iter().any(|&id| failed(id));
    alone.then_some(id).into_iter().chain(inside).collect()
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

/// Whether anything in a phase is at work, be it the question whether it goes round again.
pub(crate) fn phase_works(run: &Run, phase: &Phase) -> bool {
    phase.repeating || phase.members.iter().any(|&id| run.is_at_work(id))
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
