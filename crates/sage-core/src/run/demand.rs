//! What a step asks of the world before it may start: pools, targets, its agent, the budgets it counts in.
//!
//! Steps that ask for the same share one demand (a number), so that either all of them may start or none, and
//! the engine asks once for all of them.

use crate::policy::Alternative;
use crate::run::{HashMap, Run, StepId};
use crate::template::{Kind, Operation};

/// Pools of this name have one unit each: a session.
pub const SESSION_POOL: &str = "session:";
/// The built-in agent that calls no model.
pub(super) const OFFLINE: &str = "offline";

/// Number of a demand. The first one asks for nothing but a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DemandId(pub u32);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Demand {
    pub pools: Vec<(String, u32)>,
    pub targets: Vec<String>,
    /// It is an agent's work: it has an agent (the run's, if it names none) and spends.
    pub spends: bool,
    pub agent: Option<String>,
    /// The agent's budget.
    pub agent_node: Option<String>,
    pub model: Option<String>,
    /// Its other ways when this one is closed: those without any must not hold it back.
    pub apart: Option<String>,
    /// It has fallen back to something that calls nobody.
    pub stand_in: bool,
    /// Nodes of the budget tree that it counts in, innermost first, without `run` and the agent's.
    pub way: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Demands {
    all: Vec<Demand>,
    index: HashMap<Demand, DemandId>,
}

impl Default for Demands {
    fn default() -> Demands {
        let nothing = Demand::default();
        Demands { index: HashMap::from_iter([(nothing.clone(), DemandId(0))]), all: vec![nothing] }
    }
}

impl Demands {
    fn intern(&mut self, demand: Demand) -> DemandId {
        if let Some(&id) = self.index.get(&demand) {
            return id;
        }
        let id = DemandId(self.all.len() as u32);
        self.all.push(demand.clone());
        self.index.insert(demand, id);
        id
    }

    pub(super) fn get(&self, id: DemandId) -> &Demand {
        &self.all[id.0 as usize]
    }
}

impl Run {
    pub fn demand(&self, id: StepId) -> &Demand {
        self.demands.get(self.step(id).demand)
    }

    /// The agent that does a step: its fallback's, its own, or the run's.
    pub fn agent_of(&self, id: StepId) -> Option<&str> {
        let demand = self.demand(id);
        demand.agent.as_deref().or(self.settings.agent.as_deref()).filter(|_| demand.spends)
    }

    pub fn model_of(&self, id: StepId) -> Option<&str> {
        self.demand(id).model.as_deref()
    }

    /// Every target that an attempt of the step calls.
    pub fn targets_of(&self, id: StepId) -> Vec<String> {
        let demand = self.demand(id);
        if demand.stand_in {
            return Vec::new();
        }
        let mut targets = demand.targets.clone();
        if let Some(agent) = self.agent_of(id) {
            let provider = self.settings.providers.get(agent).map_or(agent, String::as_str);
            // Sage's own code has no outage and no quota.
            if provider != OFFLINE {
                targets.push(format!("provider:{provider}"));
                targets.push(format!("agent:{agent}"));
            }
            targets.extend(demand.model.iter().map(|model| format!("model:{model}")));
        }
        targets
    }

    /// The alternative that a step has fallen back to.
    pub fn alternative(&self, id: StepId) -> Option<&Alternative> {
        let index = self.step(id).alternative?;
        self.operation(id).fallback.as_ref()?.to.get(index as usize)
    }

    /// It has fallen back to something that needs no attempt.
    pub fn stands_in(&self, id: StepId) -> bool {
        matches!(self.alternative(id), Some(Alternative::Cache | Alternative::Value(_)))
    }

    /// Works out what a step asks for; called when it is laid out and when it falls back.
    pub(super) fn demand_of(&mut self, id: StepId) -> DemandId {
        if self.is_fan(id) || !self.operation(id).kind.holds_slot() {
            return DemandId(0);
        }
        let operation = self.operation(id);
        let plain =
            operation.pools.is_empty() && operation.targets.is_empty() && operation.fallback.is_none();
        if plain && operation.kind != Kind::Agent {
            return DemandId(0);
        }
        let (agent, model) = self.chosen(id, operation);
        let spends = operation.kind == Kind::Agent;
        let mut pools = operation.pools.clone();
        // One turn at a time: who shares a session waits for it here, without a slot.
        let session = operation.session.as_ref().filter(|name| !crate::expr::is_dynamic(&name.text));
        pools.extend(session.map(|name| (format!("{SESSION_POOL}{}", self.session_called(&name.text)), 1)));
        let demand = Demand {
            pools,
            targets: operation.targets.clone(),
            spends,
            agent_node: agent.as_ref().map(|agent| format!("agent:{agent}")),
            agent,
            model,
            // Those with the same ways fall back together.
            apart: operation
                .fallback
                .as_ref()
                .map(|fallback| format!("{fallback:?} {:?}", self.step(id).alternative)),
            stand_in: self.stands_in(id),
            way: if spends { self.way_up(id) } else { Vec::new() },
        };
        self.demands.intern(demand)
    }

    fn chosen(&self, id: StepId, operation: &Operation) -> (Option<String>, Option<String>) {
        let own = (operation.agent.clone(), operation.model.clone());
        match self.alternative(id) {
            // Another agent does not know the first one's models.
            Some(Alternative::Agent { agent: Some(agent), model }) => (Some(agent.clone()), model.clone()),
            Some(Alternative::Agent { agent: None, model }) => (own.0, model.clone()),
            _ => own,
        }
    }

    /// Steps with a budget of their own around the step and itself, and all phases around it.
    fn way_up(&self, id: StepId) -> Vec<String> {
        let mut way = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let step = self.step(id);
            // An item's budget is its fan-out's: one cap for all of them.
            if step.item.is_none() && self.operation(id).budget.is_some() {
                way.push(format!("step:{}", step.path));
            }
            if step.item.is_none() {
                way.push(format!("phase:{}", self.phase_path(step.phase)));
            }
            at = self.holder(id);
        }
        way
    }
}
