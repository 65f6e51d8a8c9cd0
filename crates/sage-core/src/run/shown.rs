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

    /// The name of its state (DESIGN §6). What holds others runs while something in it does, and else waits as they do.
    pub fn state_name(&self, id: StepId) -> &'static str {
        match self.shown_state(id) {
            State::Open { .. } if !self.is_at_work(id) => "waiting",
            state => state.name(),
        }
    }

    /// Whether the step, or something inside it, works: an attempt runs or a script computes. Waiting for a slot, a time
    /// or a person is no work, and a run that stands still or has ended does none.
    pub fn is_at_work(&self, id: StepId) -> bool {
        let computes = |id: &StepId| {
            let open = self.calls(*id).filter(|_| matches!(self.step(*id).state, State::Open { .. }));
            open.is_some_and(|calls| calls.steps.iter().all(|&call| self.step(call).state.settled()))
        };
        let mut scripts = self.scripts.iter().filter(|&&script| script == id || self.is_inside(script, id));
        match self.status {
            Status::Running => self.is_active(id) || scripts.any(computes),
            Status::Paused { .. } => self.is_active(id),
            Status::Cancelled { .. } | Status::Finished(_) => false,
        }
    }

    /// Whether a resume or a fork took the step's result over instead of running it.
    pub fn is_reused(&self, id: StepId) -> bool {
        let step = self.step(id);
        let before = self.tally.resumed_ms.is_some_and(|resumed| step.ended_ms < resumed);
        step.state.ok() && (step.reused || before)
    }

    /// The time up to which clocks count. Those of a run that no process drives, or that stands still for no known time
    /// with nothing under way, stop at its last record.
    pub fn clock_ms(&self, now_ms: u64, owned: bool) -> u64 {
        let works = self.active.slots + self.active.sleeping > 0;
        let moves = match self.status {
            Status::Running | Status::Paused { until: Some(_), .. } => true,
            Status::Paused { until: None, .. } => works,
            Status::Cancelled { .. } | Status::Finished(_) => false,
        };
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
