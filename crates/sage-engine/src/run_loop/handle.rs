//! One input at a time.

use std::time::Duration;

use sage_core::event::{
    End, PauseReason, PhaseRepeated, PhaseRestarted, RetryLevel, StepFinished, StepRetried, StepSpawned,
};
use sage_core::policy::FailureClass;
use sage_core::port::{Progress, Stop, Usage};
use sage_core::run::{State, StepId};
use sage_core::template::Kind;
use serde_json::Value;
use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Input, LoopError, RunLoop};
use crate::results::pack_small;

impl RunLoop {
    pub(super) async fn handle(&mut self, input: Input) -> Result<(), LoopError> {
        match input {
            Input::Prepared(id, prepared) => self.prepared_off_loop(id, prepared),
            Input::Progress(id, attempt, Progress::Spawned { pid, start_time }) => {
                self.spawned(id, attempt, pid, start_time)
            }
            Input::Progress(..) => Ok(()),
            Input::Ended(id, attempt, end, usage) => self.ended(id, attempt, end, usage),
            Input::Repeated(phase, verdict) => {
                self.repeating.remove(&phase);
                // A condition without a value ends the loop of phases rather than the run.
                let again = verdict.unwrap_or(false);
                let phase = self.run.phase_path(phase).into();
                self.emit(PhaseRepeated { phase, again }).map(drop)
            }
            Input::Committed(result) => self.committed(result?),
            Input::Interrupt => {
                self.stop_all(PauseReason::Interrupted);
                Ok(())
            }
            Input::Poll => self.take_signals(),
            Input::Timer => self.fire_timers(),
        }
    }

    fn spawned(&mut self, id: StepId, attempt: u32, pid: u32, start_time: u64) -> Result<(), LoopError> {
        if self.live.get(&id).is_none_or(|live| live.attempt != attempt) {
            return Ok(());
        }
        let step = self.run.step(id).path.clone();
        self.emit(StepSpawned { step, attempt, pid, start_time }).map(drop)
    }

    /// Stops every attempt: at first gently, at the second call at once.
    pub(super) fn stop_all(&mut self, reason: PauseReason) {
        self.stopping = if self.stopping == Stop::No { Stop::Graceful } else { Stop::Now };
        self.pausing.get_or_insert(reason);
        for live in self.live.values() {
            live.stop.set(self.stopping);
        }
    }

    fn ended(&mut self, id: StepId, attempt: u32, end: End, usage: Usage) -> Result<(), LoopError> {
        // An attempt that was given up (its phase ran out of time) has nothing more to say.
        if self.live.get(&id).is_none_or(|live| live.attempt != attempt) {
            return Ok(());
        }
        let Some(live) = self.live.remove(&id) else { return Ok(()) };
        if !matches!(self.run.step(id).state, State::Running(_)) {
            return Ok(());
        }
        let ms = live.since.elapsed().as_millis() as u64;
        if let (State::Running(running), End::Failed { class, message, .. }) =
            (&self.run.step(id).state, &end)
        {
            // Also while the run is paused: the retry is journaled and waits for the resume.
            let wanted = self.stopping == Stop::No && !running.stopping;
            if let Some(level) = self.retry_level(id, *class).filter(|_| wanted) {
                let failed = (attempt, *class, message.clone(), ms, usage);
                return self.retry(id, level, failed);
            }
        }
        let step = self.run.step(id).path.clone();
        self.emit(StepFinished::new(step, attempt, end, ms, usage)).map(drop)
    }

    /// How far back the next try goes, or `None` if there is none.
    fn retry_level(&self, id: StepId, class: FailureClass) -> Option<RetryLevel> {
        let retry = &self.run.operation(id).retry;
        // An agent whose answer did not pass its checks is asked once more (DESIGN §6).
        let unfit = class == FailureClass::Invalid && self.run.kind(id) == Kind::Agent;
        let tries = self.run.step(id).tries + 1;
        if unfit && tries < retry.attempts.max(2) {
            return Some(RetryLevel::Attempt);
        }
        if !retry.covers(class) {
            return None;
        }
        let restarts = self.run.phase(self.run.step(id).phase).restarts;
        if tries < retry.attempts {
            return Some(if retry.progressive && tries > 1 { RetryLevel::Step } else { RetryLevel::Attempt });
        }
        (retry.progressive && restarts == 0).then_some(RetryLevel::Phase)
    }

    fn retry(
        &mut self,
        id: StepId,
        level: RetryLevel,
        (attempt, class, message, ms, usage): (u32, FailureClass, String, u64, Usage),
    ) -> Result<(), LoopError> {
        let delay = self.run.operation(id).retry.delay_before_ms(attempt + 1, None, random());
        let at = self.around.clock.now_ms().saturating_add(delay);
        let step = self.run.step(id).path.clone();
        let seq =
            self.emit(StepRetried { step, attempt, class, message, ms, usage, spent: None, at, level })?;
        if level == RetryLevel::Phase {
            let phase = self.run.phase_path(self.run.step(id).phase).into();
            return self.emit(PhaseRestarted { phase }).map(drop);
        }
        self.after(
            seq,
            Effect::Arm { timer: Timer::Retry(id), at: Instant::now() + Duration::from_millis(delay) },
        );
        Ok(())
    }

    fn fire_timers(&mut self) -> Result<(), LoopError> {
        while let Some(timer) = self.timers.due() {
            match timer {
                Timer::Wake(id, attempt) => self.wake(id, attempt)?,
                Timer::Retry(id) => self.retry_due(id)?,
                Timer::Deadline(id, attempt) => self.deadline(id, attempt)?,
                Timer::RunLimit => self.run_limit(),
                Timer::PhaseLimit(phase) => self.phase_limit(phase)?,
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
            Ok(result) => End::Succeeded { result, full: None, artifacts: Vec::new() },
            Err(error) => {
                End::Failed { class: FailureClass::Invalid, message: error.to_string(), partial: None }
            }
        };
        self.emit(StepFinished::new(step, attempt, end, ms, Usage::default())).map(drop)
    }

    /// The pause before a retry is over.
    fn retry_due(&mut self, id: StepId) -> Result<(), LoopError> {
        if !matches!(self.run.step(id).state, State::Backoff { .. }) || !self.running() {
            return Ok(());
        }
        self.run.backoff_over(id);
        Ok(())
    }
}

/// Jitter for pauses between tries: spread, not secrecy, is what is needed.
fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
