//! The run: what all events so far amount to.
//!
//! `apply` is the only way to change it, and needs nothing but the event and its time. Steps live in one
//! list that only grows: a fan-out appends its items, a sub-workflow appends a scope (one layout of a plan).
//! The fold keeps the ready queue as it goes, so nothing is ever scanned per event.
//!
//! ```text
//! Pending -> Ready -> Running -> Succeeded | Failed | Cancelled
//!              ^  \-> Open (children) -> ...
//!              \---- Backoff
//! ```

mod active_time;
mod again;
mod agents;
mod apply;
mod cached;
mod calls;
mod check;
mod cut;
mod decide;
mod demand;
mod fork;
mod import;
mod layout;
mod limits;
mod lost;
mod measure;
mod phase;
mod ready;
mod relink;
mod settle;
mod shown;
mod sources;
mod spend;
mod step;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

pub use active_time::ActiveTime;
pub use agents::{OpenAsk, Sent};
pub use apply::FoldError;
pub use calls::{CallEnd, Called, Calls};
pub use decide::{Action, INBOX, Unowned, Wait};
pub use demand::{Demand, DemandId};
pub use limits::Parked;
pub use measure::{Measured, PhaseCounts};
pub use phase::{Judgement, Phase, PhaseId};
pub use ready::{Held, Lane};
pub use sources::StepSource;
pub use step::{
    Beside, CacheUse, Checked, Children, Failure, Output, PhaseOutput, Running, State, Step, StepId, Taken,
};
pub use work::Work;

use crate::budget::{Cap, Ledger};
use crate::digest::Digest;
use crate::event::{ForkedFrom, Frozen, LimitsChanged, LoopTime, PauseReason, Payload, Settings};
use crate::plan::Plan;
use crate::port::{Allowance, Usage};
use crate::template::{Kind, Operation};
use crate::verdict::Verdict;
use demand::Demands;
use ready::Ready;

/// The fold finds steps by their paths, some times per event.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub u32);

/// One layout of a plan: the run's own, or a sub-workflow's.
#[derive(Debug)]
pub struct Scope {
    pub plan: Arc<Plan>,
    pub parent: Option<StepId>,
    /// Put before the paths of its steps.
    pub prefix: Arc<str>,
    /// Plan number -> the newest round's step.
    pub steps: Vec<StepId>,
    /// Plan number -> the step of the round before, where there was one.
    pub(crate) before: BTreeMap<u32, StepId>,
    pub phases: Vec<PhaseId>,
    pub open_phases: u32,
    /// Inputs of a sub-workflow; the run's own are in `Run::inputs`.
    pub inputs: Option<Payload>,
    /// Tells apart equal steps of equal sub-workflows: the items and ordinals around it.
    pub identity: Digest,
    /// Its expansion was taken back.
    pub gone: bool,
    /// Plan phases that those outside of a `repeat` have been told of.
    pub(crate) released: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    Paused { reason: PauseReason, until: Option<u64> },
    Cancelled { resumable: bool },
    Finished(Verdict),
}

impl Status {
    /// The status of the wire (DESIGN §6).
    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Paused { .. } => "paused",
            Status::Cancelled { .. } | Status::Finished(Verdict::Cancelled) => "cancelled",
            Status::Finished(Verdict::Failed) => "failed",
            Status::Finished(_) => "completed",
        }
    }

    pub fn open(self) -> bool {
        matches!(self, Status::Running | Status::Paused { .. })
    }
}

/// Numbers kept as the events come, so that nobody has to count.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Steps, without those that only hold others.
    pub total: u32,
    pub settled: u32,
    pub reused: u32,
    pub failed: u32,
    /// Sum of active times without what attempts lost by each other: what one step after the other would have taken.
    /// Attempts beside another one and those that were given up are not in it, nor is what was reused.
    pub sequential_ms: u64,
    pub usage: Usage,
    /// Attempts whose agent reported no usage, or not all of it.
    pub unattributed: u32,
    /// Attempts that were started.
    pub calls: u32,
    pub retries: u32,
    /// Attempts that failed, whatever came of the step.
    pub errors: u32,
    pub timeouts: u32,
    /// Attempts that a target refused.
    pub refused: u32,
    pub hedges: u32,
    pub fallbacks: u32,
    pub stalls: u32,
    pub breaker_openings: u32,
    pub opened: u32,
    /// Agents that had to be told again what they had known.
    pub reloads: u32,
    /// Attempts that made way for urgent work.
    pub preempted: u32,
    /// Steps with `cache`: results that were there, and those that were not.
    pub cache_hits: u32,
    pub cache_misses: u32,
    /// Misses because what was kept was damaged.
    pub cache_damaged: u32,
    /// What the hits would have taken.
    pub cache_saved_tokens: u64,
    pub cache_saved_ms: u64,
    /// Wall time of earlier owners' turns.
    pub earlier_ms: u64,
    /// When the present owner's turn began.
    pub turn_ms: u64,
    /// When the run was last resumed: what had succeeded by then was taken over.
    pub resumed_ms: Option<u64>,
    /// The loops of earlier owners, and this one's as far as it was told.
    pub loop_earlier: LoopTime,
    pub loop_turn: LoopTime,
    pub measured: Measured,
}

impl Tally {
    pub fn loop_time(&self) -> LoopTime {
        let (earlier, turn) = (self.loop_earlier, self.loop_turn);
        LoopTime {
            busy_us: earlier.busy_us.saturating_add(turn.busy_us),
            total_us: earlier.total_us.saturating_add(turn.total_us),
        }
    }
}

#[derive(Debug)]
pub struct Run {
    pub id: String,
    pub feature: String,
    pub title: String,
    pub inputs: Map<String, Value>,
    pub settings: Settings,
    pub template: Frozen,
    pub templates: Vec<Frozen>,
    pub steps: Vec<Step>,
    pub phases: Vec<Phase>,
    pub scopes: Vec<Scope>,
    pub status: Status,
    pub started_ms: u64,
    pub updated_ms: u64,
    pub tally: Tally,
    /// What finished steps gave, by key: survives edits, in any order.
    pub memo: HashMap<Digest, Arc<Output>>,
    /// Keys of results that were taken over, by the step that gave them.
    kept: HashMap<Arc<str>, Digest>,
    /// Signals already taken: a signal delivered twice has one effect.
    pub signals: HashSet<String>,
    /// The version of the fold that its journal was begun with.
    pub core: u32,
    /// Which run of its feature it is, from 1.
    pub number: Option<u32>,
    /// The run that this one was, before its journal was lost.
    pub(crate) origin: Option<String>,
    /// The runs that this one goes on from, the last one last.
    pub forks: Vec<ForkedFrom>,
    /// What stands here for the sessions that steps name, where they were another run's.
    pub sessions: BTreeMap<String, String>,
    by_path: HashMap<Arc<str>, StepId>,
    /// Steps whose last attempt has no known outcome, from before an edit.
    lost_paths: HashSet<Arc<str>>,
    /// Tries of steps whose phase began again and that are to be laid out anew: count, and whether asked again.
    tried: HashMap<Arc<str>, (u32, bool)>,
    /// All counters are being drawn anew.
    relinking: bool,
    ready: Ready,
    demands: Demands,
    /// What was spent and is reserved, by node of the budget tree.
    pub ledger: Ledger,
    /// Attempts that were cut off with their owners.
    cut: Vec<cut::Cut>,
    /// What a standing run needs to go on.
    pub needs: Option<String>,
    /// Somebody has done something about it since the run stands still.
    acted: bool,
    /// The budget of the agent that does what names none.
    agent_node: Option<String>,
    /// Agent steps that wait for their turn.
    spenders: u32,
    /// Caps that a person changed.
    pub raised: BTreeMap<String, Cap>,
    /// Targets that take no calls for now.
    pub parked: BTreeMap<String, Parked>,
    /// Limits as they are now, where they differ from the settings.
    pub changed: LimitsChanged,
    /// Questions of running agents, oldest first.
    pub asks: Vec<OpenAsk>,
    /// What people have said to agents, in the order in which they said it.
    pub messages: Vec<Sent>,
    /// By agent and window.
    allowances: BTreeMap<(String, String), Allowance>,
    /// Scripts that have begun and have not ended.
    scripts: BTreeSet<StepId>,
    to_stop: BTreeSet<StepId>,
    to_repeat: BTreeSet<PhaseId>,
    /// Scripts and workflows that have failed with tries left.
    to_retry: BTreeSet<StepId>,
    /// Steps that make a lost result again.
    again: lost::Again,
    judged_now: Vec<PhaseId>,
    plans: HashMap<String, Arc<Plan>>,
    shapes: calls::Shapes,
    /// Steps in `Running` that occupy a slot / that do not / in `Backoff` / that wait for a person.
    pub active: Active,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Active {
    pub slots: u32,
    pub sleeping: u32,
    pub asking: u32,
    pub backoff: u32,
    pub unknown: u32,
    pub joins_missed: u32,
}

impl Run {
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }

    fn step_mut(&mut self, id: StepId) -> &mut Step {
        &mut self.steps[id.0 as usize]
    }

    pub fn phase(&self, id: PhaseId) -> &Phase {
        &self.phases[id.0 as usize]
    }

    fn phase_mut(&mut self, id: PhaseId) -> &mut Phase {
        &mut self.phases[id.0 as usize]
    }

    /// The step that expressions mean by a plan step's path: the newest round's, or, as long as that has not come to
    /// its turn, the one of the round before, so that a new round can learn from what came after it in the last one.
    pub fn meant(&self, scope: ScopeId, number: u32) -> StepId {
        let scope = self.scope(scope);
        let newest = scope.steps[number as usize];
        let ahead = !self.step(newest).state.settled() && self.step(newest).output.is_none();
        scope.before.get(&number).copied().filter(|_| ahead).unwrap_or(newest)
    }

    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0 as usize]
    }

    fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.scopes[id.0 as usize]
    }

    /// How many workflows a step is inside of, without the run's own.
    pub fn depth(&self, id: StepId) -> u32 {
        let (mut depth, mut at) = (0, self.scope(self.step(id).scope).parent);
        while let Some(parent) = at {
            depth += 1;
            at = self.scope(self.step(parent).scope).parent;
        }
        depth
    }

    pub fn find(&self, path: &str) -> Option<StepId> {
        self.by_path.get(path).copied()
    }

    pub fn operation(&self, id: StepId) -> &Operation {
        let step = self.step(id);
        match &step.call {
            Some(call) => &call.operation,
            None => self.scope(step.scope).plan.operation(step.plan_step),
        }
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.scopes[0].plan
    }

    pub fn plan_named(&self, name: &str) -> Option<&Arc<Plan>> {
        self.plans.get(name)
    }

    /// The templates that `workflow` steps can be expanded to, by name.
    pub fn named_plans(&self) -> Vec<(String, Arc<Plan>)> {
        let mut plans: Vec<_> = self.plans.iter().map(|(name, plan)| (name.clone(), plan.clone())).collect();
        plans.sort_by(|a, b| a.0.cmp(&b.0));
        plans
    }

    /// A fan-out that has not been expanded: the item steps do the work, it only holds them.
    pub fn is_fan(&self, id: StepId) -> bool {
        self.step(id).item.is_none() && self.operation(id).foreach.is_some()
    }

    /// Whether running this step occupies a slot.
    pub fn holds_slot(&self, id: StepId) -> bool {
        !self.is_fan(id) && self.operation(id).kind.holds_slot()
    }

    pub fn kind(&self, id: StepId) -> Kind {
        self.operation(id).kind
    }

    /// All steps that still belong to the run, oldest first.
    pub fn step_ids(&self) -> impl Iterator<Item = StepId> + use<> {
        let ids: Vec<StepId> =
            (0..self.steps.len() as u32).map(StepId).filter(|&id| !self.step(id).gone).collect();
        ids.into_iter()
    }

    pub fn live_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.gone)
    }

    /// Path of a phase: its id behind the path of the step that holds its scope, with `@round` from the second on.
    pub fn phase_path(&self, id: PhaseId) -> String {
        let phase = self.phase(id);
        let scope = self.scope(phase.scope);
        format!("{}{}", scope.prefix, phase.label(&scope.plan))
    }

    pub fn find_phase(&self, path: &str) -> Option<PhaseId> {
        let lives = |id: &PhaseId| !self.scope(self.phase(*id).scope).gone;
        (0..self.phases.len() as u32).rev().map(PhaseId).filter(lives).find(|&id| self.phase_path(id) == path)
    }

    /// The step's path without fan-out indexes: part of its key, so that items can come in any order.
    pub fn path_without_index(path: &str) -> String {
        let mut out = String::with_capacity(path.len());
        let mut rest = path;
        while let Some((before, inside)) = rest.split_once('[') {
            out.push_str(before);
            rest = inside.split_once(']').map_or("", |(_, after)| after);
        }
        out.push_str(rest);
        out
    }
}
