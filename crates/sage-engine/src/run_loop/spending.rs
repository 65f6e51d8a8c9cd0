//! Budgets while a run is under way: reservations before a start, more while it works, the bill at its end.

use std::time::Duration;

use sage_core::budget::{Amount, History, Short, reservation};
use sage_core::event::{StepRecovered, StepReserved, StepUsed};
use sage_core::port::{CutAttempt, Stage, Stop, Usage};
use sage_core::price::{Bill, Of};
use sage_core::run::StepId;
use tokio::time::Instant;

use super::timers::Timer;
use super::{Ends, LoopError, RunLoop};

/// The response that goes over a budget may be the last one: its result, paid for already, follows at once. On a busy
/// machine that takes a moment.
const LAST_WORD: Duration = Duration::from_secs(1);
/// How long what a running attempt has used is only in memory, where it may be all: an attempt that ends meanwhile tells
/// it with its end.
const JOURNAL_USAGE: Duration = Duration::from_millis(250);

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

    /// A usage with its cost: what the agent told, else what the price table says. A model without a price costs what
    /// the dearest of its provider costs; where nobody knows the provider either, it has a cost only if a budget in
    /// money must hold.
    pub(super) fn billed(&self, id: StepId, usage: Usage) -> Usage {
        if !self.run.demand(id).spends || usage.total() == 0 || usage.cost_usd.is_some() {
            return usage;
        }
        let prices = &self.around.prices;
        let model = usage.model.clone().or_else(|| self.run.model_of(id).map(str::to_string));
        let provider = self.run.agent_of(id).and_then(|agent| self.run.settings.providers.get(agent));
        let mut bill = Bill::default();
        bill.add(prices, model.as_deref(), provider.map(String::as_str), &usage, Of::Several);
        if bill.usd().is_none() && self.run.left_for(id).1.micro_usd.is_some() {
            bill = Bill::default();
            bill.add_dearest(prices, model.as_deref(), &usage);
        }
        bill.onto(usage)
    }

    /// What an attempt is charged with: what its usage, which is billed, costs. Where that is not known, what it had
    /// reserved.
    pub(super) fn spent(&self, id: StepId, attempt: u32, usage: &Usage) -> Option<Amount> {
        if !self.run.demand(id).spends || usage.is_empty() {
            return None;
        }
        let cost = usage.cost_micro_usd();
        let reserved = self.reserved(id, attempt);
        Some(Amount { micro_usd: cost.unwrap_or(reserved.micro_usd), tokens: usage.total() })
    }

    fn reserved(&self, id: StepId, attempt: u32) -> Amount {
        let beside = &self.run.step(id).beside;
        beside.iter().find(|b| b.attempt == attempt).map(|b| b.reserved).unwrap_or_default()
    }

    /// An attempt reports what it has used so far: what it had not reserved it reserves now, or it is stopped.
    pub(super) fn used(
        &mut self,
        id: StepId,
        attempt: u32,
        usage: Usage,
        stage: Stage,
    ) -> Result<(), LoopError> {
        let usage = self.billed(id, usage);
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return Ok(()) };
        live.usage = usage.clone();
        // With another request to come, this is the moment to remember what there was so far.
        if stage == Stage::GoesOn {
            self.usage_due(id, attempt)?;
        } else if !std::mem::replace(&mut live.journals_usage, true) {
            self.timers.arm(Instant::now() + JOURNAL_USAGE, Timer::Used(id, attempt));
        }
        let Some(live) = self.live.get(&(id, attempt)) else { return Ok(()) };
        // The next request is one too many.
        if matches!(live.ends, Some(Ends::Budget(_))) && stage == Stage::GoesOn {
            live.stop.set(Stop::Graceful);
        }
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
            self.overdrawn(id, attempt, stage, &short);
            return Ok(());
        }
        let step = self.run.step(id).path.clone();
        let reserve = self.reserved(id, attempt).saturating_add(more);
        self.emit(StepReserved { step, attempt, reserve }).map(drop)
    }

    /// An attempt has used more than it may: this response is its last one.
    fn overdrawn(&mut self, id: StepId, attempt: u32, stage: Stage, short: &Short) {
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return };
        match stage {
            // It is paid for: what it says may be the result.
            Stage::Answering => return,
            Stage::Answered => {
                self.timers.arm(Instant::now() + LAST_WORD, Timer::OverBudget(id, attempt));
            }
            Stage::GoesOn => live.stop.set(Stop::Graceful),
        }
        live.ends = Some(Ends::Budget(short.to_string()));
    }

    /// What the attempts had used that the last owner left behind, as far as their agents' own records tell: before
    /// anything starts, so that it starts with what is really left.
    pub(super) fn recover_usage(&mut self) -> Result<(), LoopError> {
        let mut found = Vec::new();
        for cut in self.run.cut_now() {
            let (Some(agent), Some(session)) = (&cut.agent, &cut.session) else { continue };
            let (run, step, prices) = (self.run.id.as_str(), &*cut.step, &*self.around.prices);
            let attempt = CutAttempt { run, step, attempt: cut.attempt, agent, session, prices };
            let usage = self.around.executor.used_by(&attempt);
            found.extend(usage.and_then(|usage| Some((self.run.find(step)?, cut.attempt, usage))));
        }
        found.into_iter().try_for_each(|(id, attempt, usage)| self.recovered(id, attempt, usage))
    }

    /// What a running attempt has used is made durable now and then: it counts even if its owner is killed.
    pub(super) fn usage_due(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return Ok(()) };
        live.journals_usage = false;
        let usage = live.usage.clone();
        let step = self.run.step(id);
        let known = step.beside.iter().find(|beside| beside.attempt == attempt);
        if step.gone || known.is_none_or(|beside| beside.used == usage) {
            return Ok(());
        }
        let step = step.path.clone();
        self.emit(StepUsed { step, attempt, usage }).map(drop)
    }

    /// The agent's own records tell what an attempt had used that was cut off with its owner.
    pub(super) fn recovered(&mut self, id: StepId, attempt: u32, usage: Usage) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        let Some(cut) = self.run.cut_attempt(&step, attempt) else { return Ok(()) };
        // Whoever knows more is right.
        if usage.total() <= cut.usage.total() {
            return Ok(());
        }
        let usage = self.billed(id, usage);
        self.emit(StepRecovered { step, attempt, usage }).map(drop)
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
            if usage.cost_usd.is_none() || !usage.unpriced.is_empty() {
                spent.micro_usd = 0;
            }
            let key = self.history_key(id);
            self.history.learn(&key, spent);
        }
    }
}
