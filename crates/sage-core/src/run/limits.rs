//! Events about limits: refused, hedged and stalled attempts, fallbacks, parked targets, budgets.

use crate::event::*;
use crate::policy::{FailureClass, Rung};
use crate::run::demand::SESSION_POOL;
use crate::run::step::{Failure, State};
use crate::run::{FoldError, Run, Status, StepId};
use crate::target::HoldReason;

/// A target that takes no calls for now, as the run knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parked {
    pub reason: HoldReason,
    pub until: Option<u64>,
    pub message: String,
}

impl Run {
    pub(super) fn apply_limits(&mut self, event: &Event, now: u64) -> Result<(), FoldError> {
        match event {
            Event::RunContinued(_) => self.continued(),
            Event::LimitsChanged(changed) => self.changed = changed.clone(),
            Event::RunCleared(cleared) => {
                self.signals.extend(cleared.signal.clone());
                self.acted = true;
                self.cleared(now);
            }
            Event::StepParked(parked) => self.parked(parked, now)?,
            Event::StepHedged(hedged) => self.hedged(hedged)?,
            Event::StepCharged(charged) => self.charged(charged)?,
            Event::StepReserved(reserved) => {
                let id = self.named("step.reserved", &reserved.step)?;
                self.more_reserved(id, reserved.attempt, reserved.reserve);
            }
            Event::StepUsed(used) => {
                let id = self.named("step.used", &used.step)?;
                self.used(id, used.attempt, &used.usage);
            }
            Event::StepRecovered(recovered) => self.recovered(recovered),
            Event::StepFellBack(fallen) => self.fell_back(fallen)?,
            Event::StepStalled(stalled) => self.stalled(stalled)?,
            Event::TargetParked(parked) => self.target_parked(parked),
            Event::TargetReleased(released) => drop(self.parked.remove(&released.target)),
            Event::BudgetRaised(raised) => {
                self.signals.extend(raised.signal.clone());
                self.acted = true;
                self.raise(&raised.node, raised.cap);
            }
            // All others are `apply`'s own.
            _ => {}
        }
        Ok(())
    }

    fn parked(&mut self, event: &StepParked, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.parked", &event.step)?;
        let State::Running(running) = &self.step(id).state else {
            return Err(self.misfit("step.parked", id));
        };
        let stopping = running.stopping;
        let told = self.tally.unattributed;
        self.charge(id, event.attempt, event.ms, &event.usage, event.spent);
        self.measure_time(id, event.ms, event.crowded);
        self.step_mut(id).life_ms += event.ms;
        // Who was refused, or never begun, did no work: that it tells no usage is no gap.
        if event.class.refused() || event.class == FailureClass::System {
            self.tally.unattributed = told;
        }
        self.count_failure(id, event.class);
        let failure =
            Failure { partial: event.partial.clone(), ..Failure::new(event.class, event.message.clone()) };
        self.step_mut(id).failure = Some(Box::new(failure));
        if stopping {
            self.settle(id, State::Cancelled, now);
        } else {
            self.transition(id, State::Ready);
        }
        Ok(())
    }

    fn hedged(&mut self, event: &StepHedged) -> Result<(), FoldError> {
        let id = self.named("step.hedged", &event.step)?;
        if !matches!(self.step(id).state, State::Running(_)) {
            return Err(self.misfit("step.hedged", id));
        }
        self.step_mut(id).attempts = event.attempt;
        self.tally.calls += 1;
        self.tally.hedges += 1;
        self.attempt_begins(id, event.attempt, event.reserve);
        self.count_hedges(id, 1);
        Ok(())
    }

    /// An attempt of a step that goes on, or is settled already, has ended.
    fn charged(&mut self, event: &StepCharged) -> Result<(), FoldError> {
        let id = self.named("step.charged", &event.step)?;
        // One beside another takes no time of its own, and one that has lost would not have been.
        let alone = matches!(&self.step(id).state, State::Running(running) if running.hedges == 0);
        self.charge(id, event.attempt, if alone { event.ms } else { 0 }, &event.usage, event.spent);
        if alone {
            self.measure_time(id, event.ms, event.crowded);
        }
        if let Some(class) = event.class {
            self.count_failure(id, class);
        }
        if matches!(&self.step(id).state, State::Running(running) if running.hedges > 0) {
            self.count_hedges(id, -1);
        }
        if let State::Running(running) = &mut self.step_mut(id).state {
            running.stalled = false;
        }
        Ok(())
    }

    fn fell_back(&mut self, event: &StepFellBack) -> Result<(), FoldError> {
        let id = self.named("step.fellBack", &event.step)?;
        if !matches!(self.step(id).state, State::Running(_) | State::Ready | State::Backoff { .. }) {
            return Err(self.misfit("step.fellBack", id));
        }
        self.tally.fallbacks += 1;
        // Out of its old lane before its demand changes, and into the new one after.
        self.transition(id, State::Pending);
        let step = self.step_mut(id);
        step.alternative = Some(event.to);
        step.accepted = false;
        step.verdict = None;
        (step.tries, step.delay_ms, step.stall_restarts, step.life_ms) = (0, None, 0, 0);
        step.asked_again = false;
        let demand = self.demand_of(id);
        self.step_mut(id).demand = demand;
        self.transition(id, State::Ready);
        Ok(())
    }

    fn stalled(&mut self, event: &StepStalled) -> Result<(), FoldError> {
        let id = self.named("step.stalled", &event.step)?;
        self.tally.stalls += u32::from(event.rung != Rung::Nudge);
        self.step_mut(id).stall_restarts += u32::from(event.rung == Rung::Restart);
        if let State::Running(running) = &mut self.step_mut(id).state {
            running.stalled |= event.rung == Rung::Ask;
        }
        Ok(())
    }

    fn target_parked(&mut self, event: &TargetParked) {
        let parked = Parked { reason: event.reason, until: event.until, message: event.message.clone() };
        self.parked.insert(event.target.clone(), parked);
        // While a probe is out the breaker is half-open: that hold has no end. An opening that is noticed again,
        // by the next owner or after the probe of another run, ends at the same time as before.
        let opening = event.until.filter(|_| event.reason == HoldReason::Breaker);
        if let Some(until) = opening
            && self.tally.measured.openings.insert(event.target.clone(), until) != Some(until)
        {
            self.tally.breaker_openings += 1;
        }
    }

    /// Everything that has not begun is given up; the join of each phase decides what that means.
    fn cleared(&mut self, now: u64) {
        let idle = |id: &StepId| {
            let step = self.step(*id);
            let waits = matches!(step.state, State::Pending | State::Ready | State::Backoff { .. });
            waits && step.children.is_none()
        };
        let waiting: Vec<StepId> = self.step_ids().filter(idle).collect();
        for id in waiting {
            // What came before it may have blocked or cancelled it already.
            if !self.step(id).state.settled() {
                self.settle(id, State::Cancelled, now);
            }
        }
    }

    fn continued(&mut self) {
        if matches!(self.status, Status::Paused { .. }) {
            self.status = Status::Running;
        }
    }

    /// How many may run at once now.
    pub fn parallel(&self) -> u32 {
        self.changed.parallel.unwrap_or(self.settings.parallel)
    }

    /// The size of a pool now, if it has one.
    pub fn pool_size(&self, pool: &str) -> Option<u32> {
        if pool.starts_with(SESSION_POOL) {
            return Some(1);
        }
        self.changed.pools.get(pool).or_else(|| self.settings.pools.get(pool)).copied()
    }
}
