//! One input at a time.

use sage_core::event::{End, PauseReason, PhaseRepeated, StepFinished, StepSession, StepSpawned};
use sage_core::policy::FailureClass;
use sage_core::port::{Progress, Stop, Usage};
use sage_core::run::{State, StepId};
use serde_json::Value;

use super::timers::Timer;
use super::{Input, LoopError, RunLoop};
use crate::results::pack_small;
use crate::trouble::Refused;

impl RunLoop {
    pub(super) async fn handle(&mut self, input: Input) -> Result<(), LoopError> {
        match input {
            Input::Prepared(id, prepared) => self.prepared_off_loop(id, prepared),
            Input::LookedUp(id, prepared, known) => self.looked_up(id, prepared, known),
            Input::StoodIn(id, found) => self.stood_in(id, *found),
            Input::Restored(id, restored) => self.restored(id, *restored),
            Input::Progress(id, attempt, progress) => {
                self.take_reports(id, attempt)?;
                self.progress(id, attempt, progress)
            }
            Input::Ended(id, attempt, ended) => {
                self.take_reports(id, attempt)?;
                self.ended(id, attempt, ended)
            }
            Input::Unkept(id, attempt, trouble) => {
                self.unkept(id, attempt, trouble);
                Ok(())
            }
            Input::Asked(id, attempt, asked) => {
                self.take_reports(id, attempt)?;
                self.asked(id, attempt, *asked)
            }
            Input::CaughtUp(id, attempt, reply) => {
                self.take_reports(id, attempt)?;
                // An attempt that is gone does not wait any more.
                let _ = reply.send(());
                Ok(())
            }
            Input::Withdrawn(id, attempt, ask) => self.withdrawn(id, attempt, &ask),
            Input::Repeated(phase, verdict) => {
                self.repeating.remove(&phase);
                let again = match verdict {
                    Err(Refused::Hindered(obstacle)) => return self.hindered_condition(obstacle),
                    // A condition without a value ends the loop of phases rather than the run.
                    verdict => verdict.unwrap_or(false),
                };
                let phase = self.run.phase_path(phase).into();
                self.emit(PhaseRepeated { phase, again }).map(drop)
            }
            Input::Looked(look) => self.looked_once_more(look),
            Input::Script(id, start, said) => self.script_said(id, start, *said),
            Input::Committed(result) => self.committed(result?),
            Input::Interrupt => {
                self.stop_all(PauseReason::Interrupted);
                self.stop_waiting(PauseReason::Interrupted, None).map(drop)
            }
            Input::Poll => {
                self.take_all_reports()?;
                self.look_for_journal()?;
                self.follow_limits()?;
                self.make_way_for_others()?;
                self.take_signals()
            }
            Input::Timer => self.fire_timers(),
        }
    }

    pub(super) fn spawned(
        &mut self,
        id: StepId,
        attempt: u32,
        pid: u32,
        start_time: u64,
    ) -> Result<(), LoopError> {
        if !self.live.contains_key(&(id, attempt)) || self.run.step(id).gone {
            return Ok(());
        }
        let step = self.run.step(id).path.clone();
        self.emit(StepSpawned { step, attempt, pid, start_time }).map(drop)
    }

    pub(super) fn progress(&mut self, id: StepId, attempt: u32, progress: Progress) -> Result<(), LoopError> {
        self.progressed(id, attempt);
        match progress {
            Progress::Usage(usage, stage) => self.used(id, attempt, usage, stage),
            Progress::Lost { attempt, usage } => self.recovered(id, attempt, usage),
            Progress::Quota(signal) => {
                if let Some(live) = self.live.get_mut(&(id, attempt)) {
                    live.signal = Some(signal);
                }
                Ok(())
            }
            Progress::Allowance(allowance) => self.allowance_told(id, attempt, allowance),
            Progress::Session { id: session, continuity } => {
                if !self.live.contains_key(&(id, attempt)) || self.run.step(id).gone {
                    return Ok(());
                }
                let step = self.run.step(id).path.clone();
                self.emit(StepSession { step, attempt, session, continuity }).map(drop)
            }
            Progress::Alive | Progress::Spawned { .. } => Ok(()),
        }
    }

    /// Stops every attempt: at first gently, at the second call at once.
    pub(super) fn stop_all(&mut self, reason: PauseReason) {
        self.stopping = if self.stopping == Stop::No { Stop::Graceful } else { Stop::Now };
        self.pausing.get_or_insert(reason);
        for live in self.live.values() {
            live.stop.set(self.stopping);
        }
    }

    fn fire_timers(&mut self) -> Result<(), LoopError> {
        while let Some(timer) = self.timers.due() {
            match timer {
                Timer::Wake(id, attempt) => self.wake(id, attempt)?,
                Timer::Retry(id, attempt) => self.retry_due(id, attempt)?,
                Timer::Deadline(id, attempt) => self.deadline(id, attempt)?,
                Timer::RunLimit => self.run_limit(),
                Timer::PhaseLimit(phase) => self.phase_limit(phase)?,
                Timer::StepLimit(id) => self.step_limit(id)?,
                Timer::Again => {}
                Timer::Gate => self.gate_due(),
                Timer::Continue => self.continue_due()?,
                Timer::Trouble => self.trouble_due(),
                Timer::Hedge(id, attempt) => self.hedge_due(id, attempt)?,
                Timer::Stall(id, attempt) => self.stall_due(id, attempt)?,
                Timer::OverBudget(id, attempt) => self.over_budget_due(id, attempt),
                Timer::Used(id, attempt) => self.usage_due(id, attempt)?,
                Timer::Asks => self.asks_due()?,
                Timer::Queue(id, since, stops) => self.queue_due(id, since, stops)?,
            }
        }
        Ok(())
    }

    fn wake(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let step = self.run.step(id);
        let State::Running(running) = &step.state else { return Ok(()) };
        if step.attempts != attempt {
            return Ok(());
        }
        // As long as it was meant to be: what the loop was late by is not the step's.
        let ms = running.until.map_or(0, |until| until.saturating_sub(running.since_ms));
        let step = step.path.clone();
        let end = match pack_small(&Value::Null) {
            Ok(result) => End::succeeded(result),
            Err(error) => {
                End::Failed { class: FailureClass::Invalid, message: error.to_string(), partial: None }
            }
        };
        self.emit(StepFinished::new(step, attempt, end, ms, Usage::default())).map(drop)
    }

    /// The pause before a retry is over.
    fn retry_due(&mut self, id: StepId, attempts: u32) -> Result<(), LoopError> {
        let step = self.run.step(id);
        if !matches!(step.state, State::Backoff { .. }) || step.attempts != attempts || !self.running() {
            return Ok(());
        }
        self.run.backoff_over(id);
        Ok(())
    }
}
