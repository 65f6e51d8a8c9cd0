//! The end of an attempt: what it means for its step, its targets and its budget.
//!
//! ```text
//! succeeded -> finished (those beside it are stopped)
//! failed    -> others beside it? charged : refused? parked : retried : falls back : finished
//! ```

use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::event::{
    Aside, Crowded, End, Estimate, Filtered, PhaseRestarted, RetryLevel, StepCharged, StepFinished,
    StepParked, StepRetried,
};
use sage_core::policy::{Cause, FailureClass, FallbackOn, OnBudget};
use sage_core::port::{Refusal, Stop, Usage};
use sage_core::run::{Failure, State, StepId};
use sage_core::target::CallReport;
use sage_core::template::Kind;
use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Ends, Live, LoopError, RunLoop};
use crate::perform::Ended;

/// An attempt that its target refuses sooner than this has not worked.
const REFUSED_AT_ONCE_MS: u64 = 10_000;

/// An attempt that has ended, as its bill and its record need it.
pub(super) struct Over {
    pub id: StepId,
    pub attempt: u32,
    pub ms: u64,
    pub usage: Usage,
    refusal: Option<Refusal>,
    filtered: Option<Filtered>,
    estimate: Option<Estimate>,
    pub crowded: Option<Crowded>,
    aside: Option<Aside>,
    cause: Option<Cause>,
    looked: Option<Digest>,
}

impl Over {
    /// An agent that tells no usage has done its work all the same.
    pub fn worked(&self) -> bool {
        !self.usage.is_empty() || self.estimate.is_some()
    }
}

impl RunLoop {
    pub(super) fn ended(&mut self, id: StepId, attempt: u32, ended: Ended) -> Result<(), LoopError> {
        let Some(live) = self.live.remove(&(id, attempt)) else { return Ok(()) };
        let Ended { end, usage, refusal, filtered, estimate, obstacle, aside, cause, looked } = ended;
        if obstacle.is_none() && !matches!(end, End::Stopped) {
            self.relieve();
        }
        // Of what it reported while it worked and what it tells at its end, whichever is more.
        let less = usage.is_empty() || usage.total() < live.usage.total();
        let usage = self.billed(id, if less { live.usage.clone() } else { usage });
        let thought = live.thought + live.asking_since.map_or(Duration::ZERO, |since| since.elapsed());
        let ms = live.since.elapsed().saturating_sub(thought).as_millis() as u64;
        let crowded = Crowded::of(live.crowd.total());
        let over =
            Over { id, attempt, ms, usage, refusal, filtered, estimate, crowded, aside, cause, looked };
        self.report(&live, &end, &over);
        let (ends, given_up) = (live.ends.clone(), live.given_up);
        drop(live);
        self.gate.reopen();
        let State::Running(running) = &self.run.step(id).state else {
            return self.charge(over, &end);
        };
        let stopping = running.stopping;
        if given_up {
            return self.charge(over, &end);
        }
        if matches!(end, End::Succeeded { .. }) {
            self.learn(id, attempt, &over.usage);
            self.stop_step(id, Stop::Graceful);
            // They have lost: whatever comes of them, it is not the step's.
            self.live.iter_mut().filter(|((step, _), _)| *step == id).for_each(|(_, l)| l.given_up = true);
            return self.finish(over, end);
        }
        if self.live.keys().any(|(step, _)| *step == id) {
            return self.charge(over, &end);
        }
        if stopping || self.stopping != Stop::No {
            // What we or the target ended has not failed: it goes on with the next owner.
            let refused = matches!(&end, End::Failed { class, .. } if class.refused());
            let stopped = refused || ends.is_some() || obstacle.is_some();
            return self.finish(over, if stopped { End::Stopped } else { end });
        }
        if let Some(obstacle) = obstacle {
            return self.hindered(over, obstacle);
        }
        match (ends, end) {
            (Some(Ends::Restart(message)), _) => {
                self.retry(over, RetryLevel::Attempt, FailureClass::Timeout, message, Some(0))
            }
            (Some(Ends::Ask | Ends::Yield), _) => self.finish(over, End::Stopped),
            (Some(Ends::Fail(message)), _) => self.fail(over, Failure::new(FailureClass::Timeout, message)),
            (Some(Ends::Budget(message)), _) => self.over_budget(over, message),
            (None, End::Failed { class, message, partial }) => {
                let cause = over.cause;
                self.failed(over, Failure { class, cause, message, partial })
            }
            (None, end) => self.finish(over, end),
        }
    }

    /// Tells every attempt of a step to stop.
    pub(super) fn stop_step(&mut self, id: StepId, stop: Stop) {
        for ((step, _), live) in &self.live {
            if *step == id {
                live.stop.set(stop);
            }
        }
    }

    /// Its targets learn how it went.
    fn report(&self, live: &Live, end: &End, over: &Over) {
        let Some(permit) = &live.permit else { return };
        // What the machine lacks is not its targets' fault.
        let hindered = matches!(end, End::Failed { class: FailureClass::System, .. });
        let (failure, message) = match end {
            // An answer that is not accepted is an answer: its targets work.
            End::Failed { class, message, .. } if !hindered && over.cause != Some(Cause::Answer) => {
                (Some(*class), message.clone())
            }
            _ => (None, String::new()),
        };
        // A stall or a budget that ended it: the first is the target's fault, the second is not.
        let stalled = matches!(live.ends, Some(Ends::Restart(_) | Ends::Ask | Ends::Fail(_)));
        let failure = if stalled { Some(FailureClass::Timeout) } else { failure };
        let report = CallReport {
            probe: false,
            failure,
            stopped: !stalled && (hindered || matches!(end, End::Stopped)),
            own: !stalled && self.run.kind(over.id) == Kind::Agent && is_own(failure, &over.usage),
            ms: over.ms,
            usage: over.usage.clone(),
            refusal: over.refusal,
            signal: live.signal,
            in_flight: 0,
            estimate: Default::default(),
            message,
        };
        permit.report(&report, self.around.clock.now_ms());
    }

    fn failed(&mut self, over: Over, failure: Failure) -> Result<(), LoopError> {
        let id = over.id;
        // The step did well; that its check does not hold any more is for a person.
        if over.cause == Some(Cause::Answer)
            && self.run.step(id).checked.as_ref().is_some_and(|checked| checked.kept.is_some())
        {
            let Failure { class, message, partial, .. } = failure;
            return self.finish(over, End::Failed { class, message, partial });
        }
        let targets = if failure.class.refused() { self.run.targets_of(id) } else { Vec::new() };
        if !targets.is_empty() {
            self.gate.shut(targets.into_iter().filter(|target| target.starts_with("provider:")));
            return self.park(over, failure);
        }
        match self.retry_level(id, &failure, over.ms) {
            Some(level) => {
                let counts = self.run.operation(id).retry.covers(failure.class);
                self.retry(over, level, failure.class, failure.message, (!counts).then_some(0))
            }
            None => {
                let retry = &self.run.operation(id).retry;
                let terminal = failure.cause.is_some_and(Cause::is_terminal);
                let more = self.run.step(id).tries + 1 < retry.attempts && retry.covers(failure.class);
                let spent = more && !terminal && !self.within_retry_budget();
                let why = if spent { "; no retry: the run's retry budget is used up" } else { "" };
                self.fail(over, Failure { message: failure.message + why, ..failure })
            }
        }
    }

    /// The target refused it: the step waits for the target, and keeps its tries.
    fn park(&mut self, over: Over, failure: Failure) -> Result<(), LoopError> {
        // Refused at once, it did nothing; after a while nobody knows, and its reservation is charged.
        let at_once = (over.ms < REFUSED_AT_ONCE_MS).then(Default::default);
        let spent = self.spent(over.id, over.attempt, &over.usage).or(at_once);
        let Over { id, attempt, ms, usage, crowded, .. } = over;
        let Failure { class, message, partial, .. } = failure;
        let step = self.run.step(id).path.clone();
        self.emit(StepParked { step, attempt, class, message, ms, usage, partial, spent, crowded }).map(drop)
    }

    fn over_budget(&mut self, over: Over, message: String) -> Result<(), LoopError> {
        let failure = Failure::new(FailureClass::Budget, message);
        match self.run.plan().template.on_budget {
            OnBudget::Fail => self.fail(over, failure),
            OnBudget::Pause => self.park(over, failure),
        }
    }

    /// No try is left: another way, or the end of the step.
    pub(super) fn fail(&mut self, over: Over, failure: Failure) -> Result<(), LoopError> {
        let Failure { class, message, partial, .. } = failure;
        let id = over.id;
        let next = self.run.step(id).alternative.map_or(0, |at| at + 1) as usize;
        let helps =
            |f: &sage_core::policy::Fallback| f.on.contains(&FallbackOn::Failure) && next < f.to.len();
        let end = End::Failed { class, message: message.clone(), partial };
        if class != FailureClass::Budget && self.run.operation(id).fallback.as_ref().is_some_and(helps) {
            self.charge(over, &end)?;
            return self.fall_back(id, FallbackOn::Failure, &message).map(drop);
        }
        self.finish(over, end)
    }

    fn finish(&mut self, over: Over, end: End) -> Result<(), LoopError> {
        let spent = self.spent(over.id, over.attempt, &over.usage);
        let step = self.run.step(over.id).path.clone();
        let (filtered, estimate) = (over.filtered, over.estimate.filter(|_| over.usage.is_empty()));
        let (crowded, aside) = (over.crowded, over.aside.filter(|_| matches!(end, End::Succeeded { .. })));
        let cause = over.cause.filter(|_| matches!(end, End::Failed { .. }));
        let looked = over.looked;
        let finished = StepFinished::new(step, over.attempt, end, over.ms, over.usage);
        let seq =
            self.emit(StepFinished { spent, filtered, estimate, crowded, aside, cause, looked, ..finished })?;
        self.keep_after(seq, over.id);
        Ok(())
    }

    /// The attempt is paid for; its step goes on, or has ended without it.
    fn charge(&mut self, over: Over, end: &End) -> Result<(), LoopError> {
        if !self.run.step(over.id).beside.iter().any(|beside| beside.attempt == over.attempt) {
            return Ok(());
        }
        let class = match end {
            End::Failed { class, .. } => Some(*class),
            _ => None,
        };
        let nothing = class.filter(|class| class.refused()).map(|_| Default::default());
        let spent = self.spent(over.id, over.attempt, &over.usage).or(nothing);
        let Over { id, attempt, ms, usage, crowded, .. } = over;
        let step = self.run.step(id).path.clone();
        self.emit(StepCharged { step, attempt, ms, usage, class, spent, crowded }).map(drop)
    }

    /// How far back the next try goes, or `None` if there is none.
    fn retry_level(&self, id: StepId, failure: &Failure, ms: u64) -> Option<RetryLevel> {
        let (operation, step, class) = (self.run.operation(id), self.run.step(id), failure.class);
        let out_of_time = operation.step_timeout_ms.is_some_and(|limit| step.life_ms + ms >= limit);
        let terminal = failure.cause.is_some_and(Cause::is_terminal);
        if terminal || out_of_time || !self.within_retry_budget() {
            return None;
        }
        if class == FailureClass::Invalid && !operation.retry.covers(class) {
            let unfit = failure.cause == Some(Cause::Answer);
            return (unfit && self.asks_again(id)).then_some(RetryLevel::Attempt);
        }
        // A script's other calls are not paid again because one failed.
        let whole_phase = self.run.phase(step.phase).restarts == 0 && step.call.is_none();
        operation.retry.level(step.tries + 1, class, whole_phase)
    }

    /// An agent whose answer did not pass its checks is asked once more (DESIGN §6). That is no try of its own, but
    /// `retry: 1` means one attempt.
    fn asks_again(&self, id: StepId) -> bool {
        let reconsiders = |agent: &str| self.around.executor.reconsiders(agent);
        self.run.kind(id) == Kind::Agent
            && self.run.operation(id).retry.attempts > 1
            && !self.run.step(id).asked_again
            && self.run.agent_of(id).is_some_and(reconsiders)
    }

    pub(super) fn within_retry_budget(&self) -> bool {
        let budget = self.run.plan().template.retry_budget.unwrap_or_default();
        budget.allows(self.run.tally.calls, self.run.tally.retries)
    }

    fn retry(
        &mut self,
        over: Over,
        level: RetryLevel,
        class: FailureClass,
        message: String,
        delay: Option<u64>,
    ) -> Result<(), LoopError> {
        let spent = self.spent(over.id, over.attempt, &over.usage);
        let Over { id, attempt, ms, usage, refusal, crowded, .. } = over;
        let last = self.run.step(id).delay_ms;
        let retry = &self.run.operation(id).retry;
        let own = delay.unwrap_or_else(|| retry.delay_before_ms(self.run.step(id).tries + 2, last, random()));
        // A target that says when is believed, within reason.
        let asked = refusal.and_then(|refusal| refusal.retry_after_ms).unwrap_or(0).min(3_600_000);
        let delay = own.max(asked);
        let at = self.around.clock.now_ms().saturating_add(delay);
        let step = self.run.step(id).path.clone();
        let seq =
            self.emit(StepRetried { step, attempt, class, message, ms, usage, spent, at, level, crowded })?;
        if level == RetryLevel::Phase {
            let phase = self.run.phase_path(self.run.step(id).phase).into();
            self.gate.forget_prepared();
            self.emit(PhaseRestarted { phase })?;
        }
        let attempts = self.run.step(id).attempts;
        self.after(
            seq,
            Effect::Arm {
                timer: Timer::Retry(id, attempts),
                at: Instant::now() + Duration::from_millis(delay),
            },
        );
        Ok(())
    }
}

/// Whether an agent's failure is its program's or the step's own: it crashed, or it worked and ran out of time.
fn is_own(failure: Option<FailureClass>, usage: &Usage) -> bool {
    match failure {
        Some(FailureClass::Failed | FailureClass::Lost) => true,
        Some(FailureClass::Timeout) => usage.total() > 0,
        _ => false,
    }
}

/// Jitter for pauses between tries: spread, not secrecy, is what is needed.
pub(super) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
