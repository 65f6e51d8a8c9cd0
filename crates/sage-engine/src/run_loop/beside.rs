//! Attempts beside each other (hedges), and attempts that make no progress.

use std::time::Duration;

use sage_core::event::{StepHedged, StepStalled};
use sage_core::policy::{Rung, Stall, StallPolicy};
use sage_core::port::Stop;
use sage_core::run::{State, StepId};
use sage_core::template::Kind;
use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Ends, LoopError, RunLoop};

/// A hedge that got no slot asks again after this time.
const HEDGE_AGAIN: Duration = Duration::from_secs(1);

impl RunLoop {
    /// Called when an attempt has been spawned.
    pub(super) fn arm_watches(&mut self, id: StepId, attempt: u32) {
        let now = Instant::now();
        if let Some(hedge) = self.run.operation(id).hedge {
            self.timers.arm(now + Duration::from_millis(hedge.after_ms), Timer::Hedge(id, attempt));
        }
        if let Some(stall) = self.stall_of(id) {
            self.timers.arm(now + Duration::from_millis(stall.after_ms), Timer::Stall(id, attempt));
        }
    }

    /// Agents that show their progress are watched unless the template says otherwise.
    fn stall_of(&self, id: StepId) -> Option<Stall> {
        match self.run.operation(id).stall {
            StallPolicy::Off => None,
            StallPolicy::Custom(stall) => Some(stall),
            StallPolicy::Default => {
                let agent = self.run.agent_of(id).filter(|_| self.run.kind(id) == Kind::Agent)?;
                self.around.executor.shows_progress(agent).then(Stall::default)
            }
        }
    }

    /// The attempt is slow: another one starts beside it, if everything allows it.
    pub(super) fn hedge_due(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let step = self.run.step(id);
        let (State::Running(running), Some(hedge)) = (&step.state, self.run.operation(id).hedge) else {
            return Ok(());
        };
        let newest = step.attempts == attempt && self.live.get(&(id, attempt)).is_some_and(|live| !live.done);
        let asks = self.run.asks_of(id).next().is_some();
        if asks {
            self.timers.arm(Instant::now() + HEDGE_AGAIN, Timer::Hedge(id, attempt));
            return Ok(());
        }
        if !newest || running.stopping || running.hedges >= hedge.max || !self.running() {
            return Ok(());
        }
        let full = self.run.limiting_pool(id).is_some();
        let granted = if full { None } else { self.ask(id).ok() };
        // What is only nice to have keeps no place in the queue.
        self.gate.leaves_tickets();
        let (Some(granted), Some(live)) = (granted, self.live.get(&(id, attempt))) else {
            self.timers.arm(Instant::now() + HEDGE_AGAIN, Timer::Hedge(id, attempt));
            return Ok(());
        };
        let Some((mut call, checks)) = live.again.clone() else { return Ok(()) };
        call.attempt = attempt + 1;
        call.timeout_ms = self.attempt_timeout_ms(id, live.since.elapsed().as_millis() as u64);
        let step = self.run.step(id).path.clone();
        let seq = self.emit(StepHedged { step, attempt: attempt + 1, reserve: granted.reserve })?;
        self.after(seq, Effect::Spawn { id, call, checks, permit: Some(granted.permit) });
        Ok(())
    }

    pub(super) fn progressed(&mut self, id: StepId, attempt: u32) {
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.last_progress = Instant::now();
        }
    }

    /// The attempt has shown nothing for as long as its policy allows: one rung up the ladder.
    pub(super) fn stall_due(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let (Some(stall), Some(live)) = (self.stall_of(id), self.live.get(&(id, attempt))) else {
            return Ok(());
        };
        let after = Duration::from_millis(stall.after_ms);
        // It waits for a person, not for itself.
        if self.run.asks_of(id).any(|open| open.attempt == attempt) {
            self.timers.arm(Instant::now() + after, Timer::Stall(id, attempt));
            return Ok(());
        }
        let idle = live.last_progress.elapsed();
        if live.ends.is_some() || live.done || live.stop.get() != Stop::No {
            return Ok(());
        }
        if idle < after {
            self.timers.arm(live.last_progress + after, Timer::Stall(id, attempt));
            return Ok(());
        }
        let rung = stall.rung(live.nudges, self.run.step(id).stall_restarts);
        let idle_ms = idle.as_millis() as u64;
        let step = self.run.step(id).path.clone();
        self.emit(StepStalled { step, attempt, rung, idle_ms })?;
        let message =
            format!("no progress for {}", humantime::format_duration(Duration::from_millis(stall.after_ms)));
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return Ok(()) };
        live.last_progress = Instant::now();
        match rung {
            Rung::Nudge => {
                live.nudges += 1;
                live.nudge.give();
                self.timers.arm(Instant::now() + after, Timer::Stall(id, attempt));
            }
            Rung::Restart => live.end_by(Ends::Restart(message)),
            Rung::Ask => live.end_by(Ends::Ask),
            Rung::Fail => live.end_by(Ends::Fail(message)),
        }
        Ok(())
    }
}
