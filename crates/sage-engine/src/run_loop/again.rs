//! Limits of scripts and workflows, which hold steps and have no attempt of their own: `timeout` and `retry`.
//!
//! ```text
//! too long -> step.returned (timeout) -> what it holds is stopped -> failed -> tries left? -> step.retried
//! ```
//! Their time is active time, as that of phases: waiting for people, slots or times is free.

use std::time::Duration;

use sage_core::event::{End, RetryLevel, StepRetried, StepReturned};
use sage_core::policy::FailureClass;
use sage_core::run::{Children, Failure, State, StepId};
use tokio::time::Instant;

use super::ended::random;
use super::timers::Timer;
use super::{LoopError, RunLoop};

impl RunLoop {
    /// It may have become one whose time is limited.
    pub(super) fn watch_step(&mut self, id: StepId) {
        if self.is_open_holder(id) && self.attempt_timeout_ms(id, 0).is_some() {
            self.watches.steps.insert(id, Default::default());
        }
    }

    fn is_open_holder(&self, id: StepId) -> bool {
        let step = self.run.step(id);
        let holds = matches!(step.children.as_deref(), Some(Children::Calls(_) | Children::Scope(_)));
        holds && !step.gone && matches!(step.state, State::Open { .. })
    }

    pub(super) fn watch_steps(&mut self) {
        let ids: Vec<StepId> = self.watches.steps.keys().copied().collect();
        for id in ids {
            let (open, active) = (self.is_open_holder(id), self.is_at_work(id));
            let limit = self.attempt_timeout_ms(id, 0).filter(|_| open);
            let (Some(limit), Some(watch)) = (limit, self.watches.steps.get_mut(&id)) else {
                self.watches.steps.remove(&id);
                continue;
            };
            if watch.set(active) {
                self.timers.arm(Instant::now() + watch.left(limit), Timer::StepLimit(id));
            }
        }
    }

    /// Something in it works, or its script computes.
    fn is_at_work(&self, id: StepId) -> bool {
        if !self.running() {
            return false;
        }
        let mut live = self.live.iter().filter(|(_, live)| live.asking_since.is_none());
        self.scripts.computes(id)
            || live.any(|((step, _), _)| self.run.is_inside(*step, id))
            || (self.run.active.sleeping > 0 && self.run.is_active(id))
    }

    pub(super) fn step_limit(&mut self, id: StepId) -> Result<(), LoopError> {
        let limit = self.attempt_timeout_ms(id, 0).filter(|_| self.running() && self.is_open_holder(id));
        let (Some(limit), Some(watch)) = (limit, self.watches.steps.get(&id)) else { return Ok(()) };
        let left = watch.left(limit);
        if !left.is_zero() {
            if watch.runs() {
                self.timers.arm(Instant::now() + left, Timer::StepLimit(id));
            }
            return Ok(());
        }
        // It is on its way to its end already.
        let ending = matches!(self.run.step(id).state, State::Open { cancelling: true, .. })
            || self.run.calls(id).is_some_and(|calls| calls.has_returned());
        if ending || self.run.wants_retry(id) {
            return Ok(());
        }
        self.scripts.running.remove(&id);
        let message = format!("took longer than {limit} ms");
        self.give_up(id, FailureClass::Timeout, message)
    }

    fn give_up(&mut self, id: StepId, class: FailureClass, message: String) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        self.emit(StepReturned { step, end: End::Failed { class, message, partial: None } }).map(drop)
    }

    /// It failed and all in it has ended: it tries again after a pause, or not at all.
    pub(super) fn try_again(&mut self, id: StepId) -> Result<(), LoopError> {
        let now = Instant::now();
        match self.scripts.delayed.get(&id) {
            _ if !self.running() => return Ok(()),
            Some(at) if *at > now => return Ok(()),
            Some(_) => return self.tries_again(id),
            None => {}
        }
        let (operation, step) = (self.run.operation(id), self.run.step(id));
        let spent = step.life_ms + self.step_ms(id);
        let out_of_time = operation.step_timeout_ms.is_some_and(|limit| spent >= limit);
        if out_of_time || !self.within_retry_budget() {
            let why = if out_of_time { "" } else { "; no retry: the run's retry budget is used up" };
            let Failure { class, message, .. } = self.failure_of(id);
            return self.give_up(id, class, message + why);
        }
        let delay = operation.retry.delay_before_ms(step.tries + 2, step.delay_ms, random());
        if delay == 0 {
            return self.tries_again(id);
        }
        let at = now + Duration::from_millis(delay);
        self.scripts.delayed.insert(id, at);
        self.timers.arm(at, Timer::Again);
        Ok(())
    }

    /// It failed under an earlier owner, which has waited or has died: long enough.
    pub(super) fn retry_at_once(&mut self, id: StepId) {
        if self.run.wants_retry(id) {
            self.scripts.delayed.insert(id, Instant::now());
        }
    }

    fn tries_again(&mut self, id: StepId) -> Result<(), LoopError> {
        self.scripts.delayed.remove(&id);
        let Failure { class, message, .. } = self.failure_of(id);
        let (step, attempt) = (self.run.step(id).path.clone(), self.run.step(id).tries + 1);
        let (ms, at, level) = (self.step_ms(id), self.around.clock.now_ms(), RetryLevel::Step);
        let (usage, spent, crowded) = (Default::default(), None, None);
        self.gate.forget_prepared();
        self.emit(StepRetried { step, attempt, class, message, ms, usage, spent, at, level, crowded })?;
        self.watches.steps.remove(&id);
        self.watch_step(id);
        Ok(())
    }

    fn failure_of(&self, id: StepId) -> Failure {
        let unknown = || Failure::new(FailureClass::Failed, "failed");
        self.run.step(id).failure.as_deref().cloned().unwrap_or_else(unknown)
    }

    /// What this try has taken, where somebody counts.
    fn step_ms(&self, id: StepId) -> u64 {
        self.watches.steps.get(&id).map_or(0, |watch| watch.active().as_millis() as u64)
    }
}
