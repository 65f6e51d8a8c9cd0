//! What readers of a run are shown where the fold keeps more than that, because a resume needs it.

use crate::event::PauseReason;
use crate::run::step::State;
use crate::run::{Run, Status, StepId};

/// Of what had not ended when the run did.
static ENDED: State = State::Cancelled;

impl Run {
    /// The state of a step. In a closed run nothing waits, asks or runs: what had not ended is cancelled.
    pub fn shown_state(&self, id: StepId) -> &State {
        let state = &self.step(id).state;
        if self.status.open() || state.settled() { state } else { &ENDED }
    }

    /// Whether a resume or a fork took the step's result over instead of running it.
    pub fn is_reused(&self, id: StepId) -> bool {
        let step = self.step(id);
        let before = self.tally.resumed_ms.is_some_and(|resumed| step.ended_ms < resumed);
        step.state.ok() && (step.reused || before)
    }

    /// The time up to which clocks count. Those of a run that no process drives, or that stands still for no known time,
    /// stop at its last record.
    pub fn clock_ms(&self, now_ms: u64, owned: bool) -> u64 {
        let moves = matches!(self.status, Status::Running | Status::Paused { until: Some(_), .. });
        if moves && owned { now_ms } else { now_ms.min(self.updated_ms) }
    }

    /// Why it is paused; `None` once all questions that it was paused for are answered.
    pub fn pause_reason(&self) -> Option<PauseReason> {
        let Status::Paused { reason, .. } = self.status else { return None };
        let asks = matches!(reason, PauseReason::Approval | PauseReason::Unknown);
        let answered = || !self.step_ids().any(|id| self.waits_for_person(id));
        (!asks || !answered()).then_some(reason)
    }
}
