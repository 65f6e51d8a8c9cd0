//! Budgets while a run is under way: reservations before a start, more while it works, the bill at its end.

use std::time::Duration;

use sage_core::budget::{Amount, History, Short, reservation};
use sage_core::event::StepReserved;
use sage_core::port::{Stop, Usage};
use sage_core::run::StepId;
use tokio::time::Instant;

use super::timers::Timer;
use super::{Ends, LoopError, RunLoop};

/// The response that goes over a budget may be the last one: its result, paid for already, follows at once.
const LAST_WORD: Duration = Duration::from_millis(100);

impl RunLoop {
    /// What the step must reserve; nothing where nothing is capped.
    pub(super) fn reservation(&self, id: StepId, history: Option<Amount>) -> Result<Option<Amount>, Short> {
        if !self.run.demand(id).spends || !self.run.ledger.has_caps() {
            return Ok(None);
        }
        let (left, capped) = self.run.left_for(id);
        let own = self.run.left_of_own(id);
        let want = reservation(own, history, left, self.run.spenders_left().max(1), capped);
        self.run.affords(id, want).map(|()| Some(want))
    }

    /// What steps of this name used before.
    pub(super) fn experience(&self, id: StepId) -> Option<Amount> {
        if !self.run.demand(id).spends || self.history.is_empty() {
            return None;
        }
        self.history.mean(&self.history_key(id))
    }

    fn history_key(&self, id: StepId) -> String {
        History::key(&self.run.plan().template.name, &self.run.step(id).path)
    }

    /// What an attempt is charged with: what its usage costs. Where that is not known, what it had reserved.
    pub(super) fn spent(&mut self, id: StepId, attempt: u32, usage: &Usage) -> Option<Amount> {
        if !self.run.demand(id).spends || usage.is_empty() {
            return None;
        }
        let cost = usage.cost_usd.map(|usd| (usd.max(0.0) * 1e6).round() as u64);
        let cost = cost.or_else(|| self.priced(id, usage));
        let reserved = self.reserved(id, attempt);
        Some(Amount { micro_usd: cost.unwrap_or(reserved.micro_usd), tokens: usage.total() })
    }

    /// A run has few models: each is looked up in the table once.
    fn priced(&mut self, id: StepId, usage: &Usage) -> Option<u64> {
        let model = self.run.model_of(id)?;
        if !self.rates.contains_key(model) {
            self.rates.insert(model.to_string(), self.around.prices.price(model).cloned());
        }
        self.rates.get(model)?.as_ref()?.cost_micro_usd(usage)
    }

    fn reserved(&self, id: StepId, attempt: u32) -> Amount {
        let beside = &self.run.step(id).beside;
        beside.iter().find(|b| b.attempt == attempt).map(|b| b.reserved).unwrap_or_default()
    }

    /// An attempt reports what it has used so far: what it had not reserved it reserves now, or it is stopped.
    pub(super) fn used(&mut self, id: StepId, attempt: u32, usage: Usage) -> Result<(), LoopError> {
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return Ok(()) };
        live.usage = usage.clone();
        if !self.run.ledger.has_caps() || live.ends.is_some() {
            return Ok(());
        }
        // Its step was taken back, or has been settled with it.
        if !self.run.step(id).beside.iter().any(|beside| beside.attempt == attempt) {
            return Ok(());
        }
        let Some(spent) = self.spent(id, attempt, &usage) else { return Ok(()) };
        let more = spent.saturating_sub(self.reserved(id, attempt));
        if more.is_zero() {
            return Ok(());
        }
        if let Err(short) = self.run.affords(id, more) {
            if let Some(live) = self.live.get_mut(&(id, attempt)) {
                live.ends = Some(Ends::Budget(short.to_string()));
            }
            self.timers.arm(Instant::now() + LAST_WORD, Timer::OverBudget(id, attempt));
            return Ok(());
        }
        let step = self.run.step(id).path.clone();
        let reserve = self.reserved(id, attempt).saturating_add(more);
        self.emit(StepReserved { step, attempt, reserve }).map(drop)
    }

    /// It had its chance to say its last word.
    pub(super) fn over_budget_due(&mut self, id: StepId, attempt: u32) {
        if let Some(live) = self.live.get(&(id, attempt)) {
            live.stop.set(Stop::Graceful);
        }
    }

    /// Remembers what a step of this name used, for the next one.
    pub(super) fn learn(&mut self, id: StepId, attempt: u32, usage: &Usage) {
        if let Some(mut spent) = self.spent(id, attempt, usage) {
            // Money that was only charged because no price is known is no experience.
            if usage.cost_usd.is_none() && self.priced(id, usage).is_none() {
                spent.micro_usd = 0;
            }
            let key = self.history_key(id);
            self.history.learn(&key, spent);
        }
    }
}
