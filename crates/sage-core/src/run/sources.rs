//! What a `synthesize` step puts together: the steps of `from`, each with who did it and what it had seen.
//!
//! Every item of a fan-out is a source of its own. Steps that failed are in it as well: what is missing is
//! part of the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::digest::Digest;
use crate::expr;
use crate::plan::Plan;
use crate::run::{Output, Run, StepId};
use crate::synthesis::Source;
use crate::template::Kind;

/// A source whose result is still where the run keeps it.
#[derive(Clone, Debug)]
pub struct StepSource {
    /// All but the result.
    pub source: Source,
    pub output: Option<Arc<Output>>,
}

impl Run {
    /// In the order of `from`.
    pub fn sources(&self, id: StepId) -> Vec<StepSource> {
        let scope = self.scope(self.step(id).scope);
        let numbers = self.wanted_sources(id);
        let mut steps: Vec<(u32, String, StepId)> = Vec::new();
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for number in numbers {
            let (path, step) = (&scope.plan.steps[number as usize].path, scope.steps[number as usize]);
            let items = self.item_steps(step);
            if items.is_empty() {
                steps.push((number, path.to_string(), step));
            }
            let item = |(index, &item)| (number, format!("{path}[{index}]"), item);
            steps.extend(items.iter().enumerate().map(item));
        }
        for (number, name, _) in &steps {
            names.entry(*number).or_default().push(name.clone());
        }
        let mut saw: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for number in names.keys() {
            let before = ancestors(&scope.plan, *number);
            let seen = before.iter().filter_map(|before| names.get(before)).flatten().cloned().collect();
            saw.insert(*number, seen);
        }
        let source = |(number, name, step): (u32, String, StepId)| {
            self.source(name, step, saw.get(&number).cloned().unwrap_or_default())
        };
        steps.into_iter().map(source).collect()
    }

    fn source(&self, name: String, id: StepId, saw: Vec<String>) -> StepSource {
        let (step, operation) = (self.step(id), self.operation(id));
        // A conversation without a name belongs to one step.
        let session = operation.session.as_ref().map(|named| match expr::is_dynamic(&named.text) {
            true => step.session.as_deref().unwrap_or_default().to_owned(),
            false => named.text.clone(),
        });
        let source = Source {
            name,
            state: step.state.name().to_owned(),
            why: step.failure.as_ref().filter(|_| !step.state.ok()).map(|failure| failure.message.clone()),
            result: None,
            agent: self.agent_of(id).map(str::to_owned),
            model: self.model_of(id).map(str::to_owned),
            session: session.filter(|session| !session.is_empty()),
            saw,
        };
        StepSource { source, output: step.output.clone() }
    }

    /// Numbers of the steps in `from`; without it, of all that it depends on directly and that can have claims.
    fn wanted_sources(&self, id: StepId) -> Vec<u32> {
        let step = self.step(id);
        let plan = &self.scope(step.scope).plan;
        let phase = &plan.phase(plan.steps[step.plan_step as usize].phase).id;
        let mut numbers: Vec<u32> = match self.operation(id).params.get("from").and_then(Value::as_array) {
            Some(from) => {
                let names = from.iter().filter_map(Value::as_str);
                let find = |name: &str| plan.find(name).or_else(|| plan.find(&format!("{phase}/{name}")));
                names.filter_map(find).collect()
            }
            None => {
                let speaks = |n: &u32| !matches!(plan.operation(*n).kind, Kind::Sleep | Kind::Approval);
                self.direct(id).into_iter().filter(speaks).collect()
            }
        };
        let mut seen = BTreeSet::new();
        numbers.retain(|number| seen.insert(*number));
        numbers
    }

    /// Members of the phases that the step's phase depends on, and its own needs.
    pub fn direct(&self, id: StepId) -> Vec<u32> {
        let step = self.step(id);
        let plan = &self.scope(step.scope).plan;
        let spec = &plan.steps[step.plan_step as usize];
        let before = &plan.phases[spec.phase as usize].dependencies;
        let members = before.iter().flat_map(|&p| plan.phases[p as usize].steps.clone());
        members.chain(spec.needs.iter().copied()).collect()
    }

    /// Of everything that a synthesis reads: part of its key.
    pub(crate) fn sources_digest(&self, id: StepId) -> Digest {
        let digest = |source: &StepSource| {
            let facts = serde_json::to_value(&source.source).unwrap_or_default();
            [
                Digest::of_json(&facts),
                source.output.as_ref().map_or_else(Output::none, |output| output.whole()),
            ]
        };
        Digest::of_all(&self.sources(id).iter().flat_map(digest).collect::<Vec<_>>())
    }
}

impl Output {
    /// The digest of the whole result, whatever a filter lets through.
    fn whole(&self) -> Digest {
        match self {
            Output::Leaf { full: Some(full), .. } => full.sha,
            other => other.sha(),
        }
    }
}

/// All steps that are done before this one starts. Phases are entered once: they may have many members.
fn ancestors(plan: &Plan, step: u32) -> BTreeSet<u32> {
    let (mut found, mut entered) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![step];
    while let Some(step) = open.pop() {
        let spec = &plan.steps[step as usize];
        let mut before: Vec<u32> = spec.needs.clone();
        if entered.insert(spec.phase) {
            let phases = &plan.phases[spec.phase as usize].dependencies;
            before.extend(phases.iter().flat_map(|&phase| plan.phases[phase as usize].steps.clone()));
        }
        open.extend(before.into_iter().filter(|step| found.insert(*step)));
    }
    found
}
