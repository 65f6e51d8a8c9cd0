//! What the fold wants besides starts, and when the loop is over.

use sage_core::event::{PauseReason, RunFinished, RunPaused};
use sage_core::port::Stop;
use sage_core::run::{Action, PhaseId, Status};

use super::{Input, LoopError, RunLoop};
use crate::evaluate;
use crate::prepare::{self, Facts, Wanted};
use crate::trouble::Refused;

impl RunLoop {
    pub(super) fn follow_decisions(&mut self) -> Result<(), LoopError> {
        for action in self.run.decide() {
            match action {
                Action::Stop(id) => {
                    self.stop_step(id, Stop::Graceful);
                }
                Action::Repeat(phase) => self.ask_repeat(phase),
                Action::Retry(id) => self.try_again(id)?,
                Action::Finish(_) if self.idle() && self.stopping == Stop::No && self.looks_once_more() => {}
                Action::Finish(verdict) if self.idle() && self.stopping == Stop::No => {
                    self.emit(RunFinished::new(verdict))?;
                }
                Action::Pause(reason) if self.idle() && self.stopping == Stop::No => {
                    self.emit(RunPaused::new(reason))?;
                }
                Action::Finish(_) | Action::Pause(_) => {}
            }
        }
        self.pause_if_stopped()?;
        self.pause_if_hindered()?;
        self.pause_if_only_waiting()?;
        self.pause_if_parked()
    }

    /// No attempt and no preparation is under way.
    pub(super) fn idle(&self) -> bool {
        let effects = self.effects.iter().any(|(_, effect)| effect.is_of_the_run());
        let quiet = self.live.is_empty() && self.held.is_empty() && self.repeating.is_empty();
        quiet && !effects && self.scripts.rest()
    }

    /// Everything was stopped: say so in the journal, once.
    fn pause_if_stopped(&mut self) -> Result<(), LoopError> {
        if self.run.status != Status::Running || !self.idle() {
            return Ok(());
        }
        let Some(reason) = self.pausing.take() else { return Ok(()) };
        self.emit(RunPaused::new(reason)).map(drop)
    }

    fn pause_if_only_waiting(&mut self) -> Result<(), LoopError> {
        if !self.options.no_wait || self.run.status != Status::Running || !self.idle() {
            return Ok(());
        }
        let Some(until) = self.run.only_waits_until() else { return Ok(()) };
        self.emit(RunPaused { until: Some(until), ..RunPaused::new(PauseReason::Sleep) }).map(drop)
    }

    /// Called when nothing is left to write: the run stands still and all of it is durable.
    pub(super) fn end_if_quiet(&mut self) {
        let still = self.run.status != Status::Running || self.options.deliver_only;
        if still && self.waiting.is_none() && self.idle() && self.journal.head() == self.durable {
            self.done = true;
        }
    }

    fn ask_repeat(&mut self, phase: PhaseId) {
        if !self.running() || !self.may_start() || !self.repeating.insert(phase) {
            return;
        }
        let state = self.run.phase(phase);
        let scope = self.run.scope(state.scope);
        let Some(repeat) = scope.plan.phase(state.plan_phase).repeat.clone() else { return };
        // The condition sees what the phase itself gave, and all before it.
        let numbers = 0..scope.plan.phases[state.plan_phase as usize].steps.end;
        let paths = numbers.map(|n| scope.plan.steps[n as usize].path.to_string()).collect();
        let Some(&member) = state.members.first() else { return };
        let facts = Facts::of(&self.run, member, &Wanted { paths, direct: false });
        let (sender, blobs) = (self.sender.clone(), self.around.blobs.clone());
        let evaluator = self.around.evaluator.clone();
        tokio::spawn(async move {
            let condition =
                move || prepare::condition(&repeat.while_.text, &facts, &blobs, evaluator.as_ref());
            let work = move || Ok(condition());
            let verdict = evaluate::off_loop("`while`", work).await;
            let verdict = verdict.unwrap_or_else(|why| Err(Refused::Invalid(why)));
            let _ = sender.send(Input::Repeated(phase, verdict)).await;
        });
    }
}
