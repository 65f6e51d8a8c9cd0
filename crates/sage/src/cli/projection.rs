//! What a run will probably use, before it starts: agent steps x tokens x price.
//!
//! A guess from budgets and earlier runs. What nobody knows is told as unknown, never as nothing.

use std::collections::HashMap;

use sage_core::budget::{Amount, Cap, History};
use sage_core::event::Settings;
use sage_core::port::Usage;
use sage_core::price::PriceTable;
use sage_core::template::{Kind, Operation, Template};

use super::agent_choice::OFFLINE;

/// Of tokens that nobody has told apart, so many in a hundred are priced as output.
pub const OUTPUT_PERCENT: u64 = 20;
/// Sub-workflows in sub-workflows; templates that call themselves are refused before.
const MAX_DEPTH: u32 = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct StepEstimate {
    pub path: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
    pub from: Basis,
    /// It runs once for each item of a list that is not known yet; counted once.
    pub per_item: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The step's own budget: it cannot be more.
    Budget,
    /// The mean of earlier runs.
    History,
    Unknown,
    /// Without a model nothing is used.
    Free,
}

impl Basis {
    pub fn name(self) -> &'static str {
        match self {
            Basis::Budget => "budget",
            Basis::History => "history",
            Basis::Unknown => "unknown",
            Basis::Free => "free",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Projection {
    pub steps: Vec<StepEstimate>,
}

/// What estimates are made from.
#[derive(Debug)]
pub struct Knowledge<'a> {
    pub settings: &'a Settings,
    pub history: &'a History,
    pub prices: &'a PriceTable,
    /// Templates of sub-workflows, by name.
    pub others: &'a HashMap<String, Template>,
}

impl Projection {
    pub fn of(template: &Template, knowledge: &Knowledge<'_>) -> Projection {
        let mut projection = Projection::default();
        projection.walk(template, &template.name, "", false, 0, knowledge);
        projection
    }

    fn walk(
        &mut self,
        template: &Template,
        root: &str,
        prefix: &str,
        per_item: bool,
        depth: u32,
        knowledge: &Knowledge<'_>,
    ) {
        for phase in &template.phases {
            for operation in &phase.operations {
                let path = format!("{prefix}{}/{}", phase.id, operation.id);
                let per_item = per_item || operation.foreach.is_some();
                if operation.kind == Kind::Agent {
                    let key = History::key(root, &path);
                    self.steps.push(estimate(path, operation, &key, per_item, knowledge));
                } else if operation.kind == Kind::Workflow && depth < MAX_DEPTH {
                    let name = operation.params.get("template").and_then(|name| name.as_str());
                    if let Some(inner) = name.and_then(|name| knowledge.others.get(name)) {
                        let prefix = format!("{path}/");
                        self.walk(inner, root, &prefix, per_item, depth + 1, knowledge);
                    }
                }
            }
        }
    }

    /// Of all that is known.
    pub fn total(&self) -> Amount {
        let known = |step: &StepEstimate| Amount {
            tokens: step.tokens.unwrap_or(0),
            micro_usd: step.micro_usd.unwrap_or(0),
        };
        self.steps.iter().map(known).fold(Amount::default(), Amount::saturating_add)
    }

    pub fn unknown(&self) -> usize {
        self.steps.iter().filter(|step| step.from == Basis::Unknown).count()
    }

    /// Steps whose tokens are known and whose price is not.
    pub fn unpriced(&self) -> usize {
        self.steps.iter().filter(|step| step.from != Basis::Unknown && step.micro_usd.is_none()).count()
    }

    pub fn free(&self) -> usize {
        self.steps.iter().filter(|step| step.from == Basis::Free).count()
    }

    pub fn fan_outs(&self) -> usize {
        self.steps.iter().filter(|step| step.per_item && step.from != Basis::Free).count()
    }

    /// Whether what is known fits; `None` if something that is not known could change that.
    pub fn fits(&self, cap: Cap) -> Option<bool> {
        let fits = cap.allows(Amount::default(), Amount::default(), self.total());
        let open = self.unknown() > 0 || self.fan_outs() > 0;
        let unpriced = cap.micro_usd.is_some() && self.unpriced() > 0;
        if fits && (open || unpriced) { None } else { Some(fits) }
    }
}

fn estimate(
    path: String,
    operation: &Operation,
    key: &str,
    per_item: bool,
    knowledge: &Knowledge<'_>,
) -> StepEstimate {
    let some = |n: u64| Some(n).filter(|n| *n > 0);
    let mean = knowledge.history.mean(key);
    let agent = operation.agent.clone().or_else(|| knowledge.settings.agent.clone());
    let (tokens, micro_usd, from) = match (operation.budget, mean) {
        _ if agent.as_deref() == Some(OFFLINE) => (Some(0), Some(0), Basis::Free),
        (Some(own), _) => (own.tokens, own.micro_usd, Basis::Budget),
        (None, Some(mean)) => (some(mean.tokens), some(mean.micro_usd), Basis::History),
        (None, None) => (None, None, Basis::Unknown),
    };
    let model = operation.model.clone();
    let priced = || {
        let (tokens, price) = (tokens?, knowledge.prices.price(model.as_deref()?)?);
        let output = tokens * OUTPUT_PERCENT / 100;
        let usage = Usage { input: Some(tokens - output), output: Some(output), ..Usage::default() };
        price.cost_micro_usd(&usage)
    };
    let micro_usd = micro_usd.or_else(priced);
    // A fan-out's own budget is for all of its items together.
    let per_item = per_item && !(operation.foreach.is_some() && from == Basis::Budget);
    StepEstimate { path, agent, model, tokens, micro_usd, from, per_item }
}
