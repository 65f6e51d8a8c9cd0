//! Signals from other processes, and the answers to questions.

use sage_core::event::{BudgetRaised, PauseReason, RunCancelled, RunCleared, RunPaused, StepAnswered};
use sage_core::port::Stop;
use sage_core::run::{State, Status, StepId};
use serde_json::json;

use super::asks::Decision;
use super::effect::Effect;
use super::{LoopError, RunLoop};
use crate::control::{self, Delivery, Signal};
use crate::results::pack_small;

impl RunLoop {
    pub(super) fn take_signals(&mut self) -> Result<(), LoopError> {
        self.timers.polled();
        self.image.catch_up(&self.run, self.durable, self.journal.head());
        for delivery in
            control::receive(self.around.vfs.as_ref(), &self.around.run_dir, self.around.key.as_ref())
        {
            self.take(delivery)?;
        }
        Ok(())
    }

    /// Delivered twice, a signal has one effect: its id is in the event that it caused.
    pub(super) fn take(&mut self, delivery: Delivery) -> Result<(), LoopError> {
        let Delivery { id, signal } = delivery;
        if !self.run.signals.contains(&id) {
            self.obey(signal, &id)?;
        }
        let seq = self.journal.head().seq;
        if seq <= self.durable.seq {
            self.carry_out(Effect::Acknowledge(id));
        } else {
            self.after(seq, Effect::Acknowledge(id));
        }
        Ok(())
    }

    fn obey(&mut self, signal: Signal, id: &str) -> Result<(), LoopError> {
        let signal_id = Some(id.to_string());
        match signal {
            Signal::Pause if self.stop_waiting(PauseReason::User, signal_id.clone())? => Ok(()),
            Signal::Raise { node, cap } => {
                self.gate.reopen();
                self.emit(BudgetRaised { node, cap, signal: signal_id }).map(drop)
            }
            Signal::Clear if self.run.status.open() => self.clear(signal_id),
            Signal::Pause if self.run.status == Status::Running => {
                self.emit(RunPaused { signal: signal_id, ..RunPaused::new(PauseReason::User) }).map(drop)
            }
            Signal::Cancel { resumable } if self.run.status.open() => {
                self.waiting = None;
                self.cancel_scripts();
                self.emit(RunCancelled { resumable, signal: signal_id })?;
                self.stop_everything();
                Ok(())
            }
            Signal::Message { step, text, by } => self.message(&step, text, by, id),
            Signal::Answer { step, choice, by, message, ask, input } => {
                let Some(found) = self.run.find(&step) else { return Ok(()) };
                let open = self.open_ask(found, ask.as_deref());
                // Somebody else was faster: what was meant is gone, and nothing else is meant.
                if open.is_none() && ask.is_some() {
                    return Ok(());
                }
                if let Some((attempt, ask)) = open {
                    let allow = choice == "approve";
                    let decision = Decision { allow, by, message, advice: None, input, signal: signal_id };
                    return self.permit(found, attempt, &ask, None, decision);
                }
                self.answer(found, choice, by, message, signal_id)
            }
            Signal::Pause | Signal::Cancel { .. } | Signal::Clear => Ok(()),
        }
    }

    /// A run that waits for a time is told to wait no longer. False if it did not wait.
    pub(super) fn stop_waiting(
        &mut self,
        reason: PauseReason,
        signal: Option<String>,
    ) -> Result<bool, LoopError> {
        if self.waiting.take().is_none() {
            return Ok(false);
        }
        self.emit(RunPaused { signal, ..RunPaused::new(reason) })?;
        Ok(true)
    }

    /// What has not begun is given up. Nothing may be left to wait for: then the run ends, also one without owner.
    fn clear(&mut self, signal: Option<String>) -> Result<(), LoopError> {
        self.emit(RunCleared { signal })?;
        let stands = matches!(self.run.status, Status::Paused { .. });
        if stands && (self.waiting.is_some() || self.run.scopes[0].open_phases == 0) {
            self.go_on()?;
        }
        Ok(())
    }

    fn stop_everything(&mut self) {
        self.stopping = self.stopping.max(Stop::Graceful);
        self.live.values().for_each(|live| live.stop.set(self.stopping));
    }

    fn answer(
        &mut self,
        id: StepId,
        choice: String,
        by: String,
        message: Option<String>,
        signal: Option<String>,
    ) -> Result<(), LoopError> {
        let waits = match &self.run.step(id).state {
            State::Running(running) => running.ask.is_some(),
            State::Unknown => true,
            _ => false,
        };
        if !waits {
            return Ok(());
        }
        let result = match pack_small(&json!({"choice": choice, "by": by, "message": message})) {
            Ok(result) => result,
            // Strings always make JSON; an answer that does not is not an answer.
            Err(_) => return Ok(()),
        };
        let step = self.run.step(id).path.clone();
        self.emit(StepAnswered { step, choice, by, message, result, signal }).map(drop)
    }

    /// Questions whose deadline has passed take their default.
    pub(super) fn take_deadlines(&mut self) -> Result<(), LoopError> {
        let now = self.around.clock.now_ms();
        let late = |id: &StepId| match &self.run.step(*id).state {
            State::Running(running) => running.ask.is_some() && running.until.is_some_and(|at| at <= now),
            _ => false,
        };
        let late: Vec<StepId> = self.run.step_ids().filter(late).collect();
        late.into_iter().try_for_each(|id| self.deadline(id, self.run.step(id).attempts))
    }

    /// Nobody answered in time: the default speaks, or the question fails.
    pub(super) fn deadline(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let step = self.run.step(id);
        let State::Running(running) = &step.state else { return Ok(()) };
        let Some(ask) = running.ask.clone().filter(|_| step.attempts == attempt) else { return Ok(()) };
        let choice = ask.default.clone().unwrap_or_else(|| "reject".into());
        self.answer(id, choice, "deadline".into(), Some("no answer before the deadline".into()), None)
    }
}
