//! What a run spends: reservations and settlements, folded into the tree of budgets.
//!
//! An attempt without a known usage is charged with what it had reserved: unknown is never taken for nothing.

use crate::budget::{Amount, Cap, RUN, Short};
use crate::port::Usage;
use crate::run::step::{Beside, State};
use crate::run::{Run, StepId};
use crate::template::Kind;

impl Run {
    /// Caps that the settings and the templates state. Raised ones win.
    pub(super) fn set_caps(&mut self) {
        self.agent_node = self.settings.agent.as_ref().map(|agent| format!("agent:{agent}"));
        let template = self.plan().template.budget;
        self.cap_unless_raised(RUN.into(), self.settings.budget.or(template));
        for (agent, cap) in self.settings.agent_budgets.clone() {
            self.cap_unless_raised(format!("agent:{agent}"), Some(cap));
        }
    }

    /// Caps of a phase and its members, when they are laid out.
    pub(super) fn set_phase_caps(&mut self, phase: crate::run::PhaseId) {
        let spec = self.phase(phase);
        let plan = self.scope(spec.scope).plan.clone();
        if let Some(cap) = plan.phase(spec.plan_phase).budget {
            self.cap_unless_raised(format!("phase:{}", self.phase_path(phase)), Some(cap));
        }
        for member in self.phase(phase).members.clone() {
            if let Some(cap) = self.operation(member).budget {
                self.cap_unless_raised(format!("step:{}", self.step(member).path), Some(cap));
            }
        }
    }

    fn cap_unless_raised(&mut self, node: String, cap: Option<Cap>) {
        let cap = self.raised.get(&node).copied().or(cap);
        self.ledger.set_cap(&node, cap);
    }

    pub(super) fn raise(&mut self, node: &str, cap: Cap) {
        self.raised.insert(node.to_string(), cap);
        self.ledger.set_cap(node, Some(cap));
    }

    /// All nodes that a step counts in, innermost first.
    pub fn way(&self, id: StepId) -> Vec<&str> {
        let demand = self.demand(id);
        let mut way = Vec::with_capacity(demand.way.len() + 2);
        way.extend(demand.way.iter().map(String::as_str));
        way.extend(demand.agent_node.as_deref().or(self.agent_node.as_deref().filter(|_| demand.spends)));
        way.push(RUN);
        way
    }

    /// Whether one more attempt of the step may reserve this much.
    pub fn affords(&self, id: StepId, want: Amount) -> Result<(), Short> {
        if !self.ledger.has_caps() {
            return Ok(());
        }
        self.ledger.fits(&self.way(id), want)
    }

    pub(super) fn reserve(&mut self, id: StepId, amount: Amount) {
        let mut ledger = std::mem::take(&mut self.ledger);
        ledger.reserve(&self.way(id), amount);
        self.ledger = ledger;
    }

    /// An attempt has ended: what it had reserved becomes what it spent.
    pub(super) fn settle_spending(&mut self, id: StepId, attempt: u32, spent: Option<Amount>, usage: &Usage) {
        self.close_asks(id, attempt);
        let reserved = self.take_reservation(id, attempt);
        if !self.demand(id).spends {
            return;
        }
        let known = || {
            let cost = usage.cost_usd.map(|usd| (usd * 1e6).round() as u64);
            if usage.is_empty() { reserved } else { Amount::of(usage, cost) }
        };
        let mut ledger = std::mem::take(&mut self.ledger);
        ledger.settle(&self.way(id), reserved, spent.unwrap_or_else(known));
        self.ledger = ledger;
    }

    /// Whatever was under way when the last owner died is charged with all that it might have spent.
    pub(super) fn settle_lost(&mut self, id: StepId) {
        let attempts: Vec<u32> = self.step(id).beside.iter().map(|beside| beside.attempt).collect();
        for attempt in attempts {
            self.settle_spending(id, attempt, None, &Usage::default());
        }
    }

    /// An attempt begins: its reservation is remembered until it ends.
    pub(super) fn attempt_begins(&mut self, id: StepId, attempt: u32, reserve: Option<Amount>) {
        if let Some(amount) = reserve {
            self.reserve(id, amount);
        }
        let reserved = reserve.unwrap_or_default();
        self.step_mut(id).beside.push(Beside { attempt, reserved });
    }

    pub(super) fn more_reserved(&mut self, id: StepId, attempt: u32, reserve: Amount) {
        let Some(beside) = self.step_mut(id).beside.iter_mut().find(|b| b.attempt == attempt) else { return };
        let more = reserve.saturating_sub(beside.reserved);
        beside.reserved = reserve;
        self.reserve(id, more);
    }

    fn take_reservation(&mut self, id: StepId, attempt: u32) -> Amount {
        let beside = &mut self.step_mut(id).beside;
        let at = beside.iter().position(|b| b.attempt == attempt);
        at.map(|at| beside.remove(at).reserved).unwrap_or_default()
    }

    /// Agent steps that have neither begun nor ended, with their hedges: what is left is shared between them.
    pub fn spenders_left(&self) -> u32 {
        self.spenders
    }

    /// How many shares of what is left a waiting step stands for: one for each attempt that it may have at once.
    pub(super) fn shares(&self, id: StepId) -> u32 {
        // Nobody knows how many items there will be; too few and the first ones would reserve everything.
        const FAN_OUT: u32 = 8;
        let operation = self.operation(id);
        match operation.kind {
            Kind::Agent if self.is_fan(id) => FAN_OUT,
            Kind::Agent => 1 + operation.hedge.map_or(0, |hedge| hedge.max),
            _ => 0,
        }
    }

    /// Counts an agent step that begins or ceases to wait.
    pub(super) fn count_spender(&mut self, id: StepId, old: &State) {
        let waits = |state: &State| matches!(state, State::Pending | State::Ready | State::Backoff { .. });
        match (waits(old), waits(&self.step(id).state)) {
            (false, true) => self.spenders = self.spenders.saturating_add(self.shares(id)),
            (true, false) => self.spenders = self.spenders.saturating_sub(self.shares(id)),
            _ => {}
        }
    }

    /// What is left of the step's own budget. A fan-out's is for all of its items, so no item has one.
    pub fn left_of_own(&self, id: StepId) -> Option<Cap> {
        let step = self.step(id);
        let own = self.operation(id).budget.filter(|_| step.item.is_none());
        let node = own.and_then(|_| self.ledger.node(&format!("step:{}", step.path)));
        node.and_then(|node| node.cap.map(|cap| cap.left(node.settled, node.reserved)))
    }

    /// What is left on the step's way, and which units are capped on it at all.
    pub fn left_for(&self, id: StepId) -> (Cap, Cap) {
        let way = self.way(id);
        let mut capped = Cap::default();
        for cap in way.iter().filter_map(|node| self.ledger.cap(node)) {
            capped.tokens = capped.tokens.or(cap.tokens);
            capped.micro_usd = capped.micro_usd.or(cap.micro_usd);
        }
        (self.ledger.left(&way), capped)
    }
}
