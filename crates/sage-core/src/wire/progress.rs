//! How far a run is, and where: the one definition behind the tree, `list`, `status`, MCP and the checkpoint.
//!
//! - `total`: steps that do work. A fan-out, a sub-workflow or a script counts as one step until it is expanded;
//!   then its items, steps or calls count in its place. Every round of a `repeat` counts. A script or a workflow
//!   that failed although nothing in it failed counts as itself.
//! - `completed`: those that succeeded (also reused, cached or replaced by a fallback) or were skipped. Failed,
//!   blocked, cancelled, running and waiting steps are not completed, whatever the status of the run.
//! - Steps that the run succeeded without count in neither: losers of a race, calls that a script handled, and what
//!   failed in a round of a `repeat` whose last round lacks nothing.
//! - `percentage`: `completed` of `total`, rounded down. 100 only once the run has finished with every step
//!   completed; so a succeeded run has 100, and a paused, failed or cancelled one never has.
//! - `phase`: where work goes on, else the first phase that failed, else the last one that was reached.

use serde::{Deserialize, Serialize};

use crate::run::{Judgement, PhaseId, Run, State, Status, StepId};
use crate::verdict::Verdict;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub completed: u32,
    pub total: u32,
    pub percentage: u32,
}

impl Progress {
    pub fn of(run: &Run) -> Progress {
        let (mut completed, mut total) = (0, 0);
        for id in run.step_ids().filter(|&id| counts(run, id)) {
            total += 1;
            completed += u32::from(run.step(id).state.ok());
        }
        let reached = matches!(run.status, Status::Finished(Verdict::Succeeded | Verdict::Degraded));
        let percentage = match total {
            0 if reached => 100,
            0 => 0,
            total => (u64::from(completed) * 100 / u64::from(total)) as u32,
        };
        Progress { completed, total, percentage: percentage.min(if reached { 100 } else { 99 }) }
    }

    /// `3 of 4 steps done`
    pub fn text(&self) -> String {
        let steps = if self.total == 1 { "step" } else { "steps" };
        format!("{} of {} {steps} done", self.completed, self.total)
    }
}

/// Whether a step is part of the total.
pub fn counts(run: &Run, id: StepId) -> bool {
    let step = run.step(id);
    match step.children {
        None => step.state.ok() || !run.succeeded_without(id),
        Some(_) => failed_alone(run, id) && !run.succeeded_without(id),
    }
}

/// It failed by itself: a script threw, a workflow took too long, and what was in it did well.
fn failed_alone(run: &Run, id: StepId) -> bool {
    let failed = |id: StepId| matches!(run.step(id).state, State::Failed);
    failed(id) && run.children(id).into_iter().all(|child| run.step(child).state.ok())
}

/// The phase of the run's own template that a reader is shown.
pub fn current_phase(run: &Run) -> Option<String> {
    let phases = &run.scopes[0].phases;
    let judged = |id: PhaseId| run.phase(id).judged;
    let open = phases.iter().find(|&&id| run.phase(id).open && judged(id).is_none());
    let missed = || phases.iter().find(|&&id| judged(id) == Some(Judgement::Missed));
    let reached = || phases.iter().rev().find(|&&id| judged(id).is_some_and(Judgement::reached));
    let shown = open.or_else(missed).or_else(reached).or(phases.first())?;
    Some(run.phase_path(*shown))
}
