//! What a run spends: reservations and settlements, folded into the tree of budgets and into the run's figures.
//!
//! There is one cost of an attempt, for the budgets and for every view: what its agent told, else what the price
//! table says. An attempt without a known usage is charged with what it had reserved: unknown is never taken for
//! nothing.

use crate::budget::{Amount, Cap, Node, RUN, Short};
use crate::port::Usage;
use crate::run::demand::OFFLINE;
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

    /// An attempt has ended: its time and its tokens count, and what it had reserved becomes what it spent. Gives
    /// what it is charged with.
    pub(super) fn charge(
        &mut self,
        id: StepId,
        attempt: u32,
        ms: u64,
        usage: &Usage,
        spent: Option<Amount>,
    ) -> (Usage, Amount) {
        self.step_mut(id).active_ms += ms;
        self.close_asks(id, attempt);
        let begun = self.take_reservation(id, attempt);
        let demand = self.demand(id);
        let silent = (usage.is_empty() || usage.partial) && begun.is_some() && demand.spends;
        if silent && self.agent_of(id) != Some(OFFLINE) {
            self.tally.unattributed += 1;
        }
        let mut settled = Amount::default();
        if self.demand(id).spends {
            let reserved = begun.unwrap_or_default();
            let known =
                || if usage.is_empty() { reserved } else { Amount::of(usage, usage.cost_micro_usd()) };
            settled = spent.unwrap_or_else(known);
            let mut ledger = std::mem::take(&mut self.ledger);
            ledger.settle(&self.way(id), reserved, settled);
            self.ledger = ledger;
        }
        let usage = with_cost(usage, settled);
        if !usage.is_empty() {
            self.tally.usage.add(&usage);
            self.step_mut(id).usage.get_or_insert_default().add(&usage);
        }
        (usage, settled)
    }

    /// What a running attempt has used so far.
    pub(super) fn used(&mut self, id: StepId, attempt: u32, usage: &Usage) {
        let running = self.step_mut(id).beside.iter_mut().find(|beside| beside.attempt == attempt);
        if let Some(beside) = running {
            beside.used = usage.clone();
        }
    }

    /// What the run has used so far, with what is under way.
    pub fn usage(&self) -> Usage {
        let mut sum = self.tally.usage.clone();
        let under_way = self.live_steps().flat_map(|step| &step.beside);
        under_way.for_each(|beside| sum.add(&beside.used));
        sum
    }

    /// A node of the budget tree with what is under way: what running attempts have used is spent already.
    pub fn node_so_far(&self, name: &str) -> Option<Node> {
        let mut node = self.ledger.node(name)?.clone();
        for id in self.step_ids().filter(|&id| !self.step(id).beside.is_empty()) {
            if self.way(id).contains(&name) {
                node = self.step(id).beside.iter().fold(node, Beside::so_far);
            }
        }
        Some(node)
    }

    /// What a step has used so far, with what is under way.
    pub fn usage_of(&self, id: StepId) -> Usage {
        let step = self.step(id);
        let mut sum = step.usage.as_deref().cloned().unwrap_or_default();
        step.beside.iter().for_each(|beside| sum.add(&beside.used));
        sum
    }

    /// An attempt begins: its reservation is remembered until it ends.
    pub(super) fn attempt_begins(&mut self, id: StepId, attempt: u32, reserve: Option<Amount>) {
        if let Some(amount) = reserve {
            self.reserve(id, amount);
        }
        let reserved = reserve.unwrap_or_default();
        self.step_mut(id).beside.push(Beside { attempt, reserved, used: Usage::default() });
    }

    pub(super) fn more_reserved(&mut self, id: StepId, attempt: u32, reserve: Amount) {
        let Some(beside) = self.step_mut(id).beside.iter_mut().find(|b| b.attempt == attempt) else { return };
        let more = reserve.saturating_sub(beside.reserved);
        beside.reserved = reserve;
        self.reserve(id, more);
    }

    /// `None` if no such attempt has begun, or it has ended already.
    fn take_reservation(&mut self, id: StepId, attempt: u32) -> Option<Amount> {
        let beside = &mut self.step_mut(id).beside;
        let at = beside.iter().position(|b| b.attempt == attempt)?;
        Some(beside.remove(at).reserved)
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

/// A usage with what it is charged with as its cost, where there is any.
pub(super) fn with_cost(usage: &Usage, settled: Amount) -> Usage {
    let mut usage = usage.clone();
    if usage.cost_usd.is_some() || settled.micro_usd > 0 {
        usage.cost_estimated |= usage.cost_usd.is_none();
        usage.cost_usd = Some(settled.micro_usd as f64 / 1e6);
    }
    usage
}
