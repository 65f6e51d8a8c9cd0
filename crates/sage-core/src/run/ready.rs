//! The ready queue: who may start next, without scanning.
//!
//! Ready steps wait in lanes. A lane is a set of steps with the same limits (a pool, a fan-out with
//! `maxParallel`), so either all of a lane may start or none, and only lane heads need to be looked at.
//! Order inside and between lanes: priority, longest remaining path, plan order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::run::{Run, StepId};

/// Default pool: only the global limit counts.
const NO_POOL: &str = "";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// Occupies a slot (of the global limit and of `pool`).
    pub slot: bool,
    pub pool: String,
    /// The fan-out whose `maxParallel` counts.
    pub fan: Option<StepId>,
}

/// Smaller goes first.
type Rank = (u8, Reverse<u32>, StepId);

#[derive(Debug, Default)]
pub(super) struct Ready {
    lanes: BTreeMap<Lane, BTreeSet<Rank>>,
    pool_running: HashMap<String, u32>,
    fan_running: HashMap<StepId, u32>,
    len: u32,
}

impl Run {
    fn lane(&self, id: StepId) -> Lane {
        let operation = self.operation(id);
        let fan = self.step(id).item.map(|(fan, _)| fan).filter(|_| operation.max_parallel.is_some());
        let slot = self.holds_slot(id);
        let pool = operation.pools.first().map(|(pool, _)| pool.clone()).filter(|_| slot).unwrap_or_default();
        Lane { slot, pool, fan }
    }

    fn rank(&self, id: StepId) -> Rank {
        const DEFAULT_PRIORITY: u8 = 2;
        (self.operation(id).priority.unwrap_or(DEFAULT_PRIORITY), Reverse(self.step(id).height), id)
    }

    pub(super) fn enqueue(&mut self, id: StepId) {
        let (lane, rank) = (self.lane(id), self.rank(id));
        if self.ready.lanes.entry(lane).or_default().insert(rank) {
            self.ready.len += 1;
        }
    }

    pub(super) fn dequeue(&mut self, id: StepId) {
        let (lane, rank) = (self.lane(id), self.rank(id));
        let Some(set) = self.ready.lanes.get_mut(&lane) else {
            return;
        };
        if set.remove(&rank) {
            self.ready.len -= 1;
        }
        if set.is_empty() {
            self.ready.lanes.remove(&lane);
        }
    }

    pub(super) fn clear_ready(&mut self) {
        self.ready = Ready::default();
    }

    /// A step of this lane began (+1) or ended (-1).
    pub(super) fn occupy(&mut self, id: StepId, by: i32) {
        let lane = self.lane(id);
        let change = |count: &mut u32| *count = count.saturating_add_signed(by);
        if lane.pool != NO_POOL {
            change(self.ready.pool_running.entry(lane.pool).or_default());
        }
        if let Some(fan) = lane.fan {
            change(self.ready.fan_running.entry(fan).or_default());
        }
    }

    pub fn ready_count(&self) -> u32 {
        self.ready.len
    }

    /// The ready step that should start next under the run's own limits. `held` are steps whose start is
    /// already being prepared: they count as running. `skip` lets the engine pass over what it cannot grant.
    pub fn next_start(&self, held: &Held, mut skip: impl FnMut(StepId) -> bool) -> Option<StepId> {
        if self.settings.sequential && (self.active.slots + self.active.sleeping + held.all) > 0 {
            return None;
        }
        let mut best: Option<Rank> = None;
        for (lane, set) in &self.ready.lanes {
            if !self.lane_open(lane, held) {
                continue;
            }
            let head = set.iter().find(|(_, _, id)| !held.steps.contains(id) && !skip(*id));
            best = match (best, head) {
                (Some(best), Some(head)) => Some(best.min(*head)),
                (best, head) => best.or(head.copied()),
            };
        }
        best.map(|(_, _, id)| id)
    }

    fn lane_open(&self, lane: &Lane, held: &Held) -> bool {
        if lane.slot && self.active.slots + held.slots >= self.settings.parallel {
            return false;
        }
        if lane.pool != NO_POOL {
            let limit = self.settings.pools.get(&lane.pool).copied().unwrap_or(u32::MAX);
            let running = self.ready.pool_running.get(&lane.pool).copied().unwrap_or(0);
            if running + held.pools.get(&lane.pool).copied().unwrap_or(0) >= limit {
                return false;
            }
        }
        let Some(fan) = lane.fan else { return true };
        let limit = self.operation(fan).max_parallel.unwrap_or(u32::MAX);
        let running = self.ready.fan_running.get(&fan).copied().unwrap_or(0);
        running + held.fans.get(&fan).copied().unwrap_or(0) < limit
    }

    /// Which limit keeps a ready step from starting, if one does.
    pub fn limiting_pool(&self, id: StepId) -> Option<String> {
        let lane = self.lane(id);
        if lane.slot && self.active.slots >= self.settings.parallel {
            return Some("global".into());
        }
        if self.lane_open(&lane, &Held::default()) {
            return None;
        }
        Some(lane.fan.map_or(lane.pool, |_| "maxParallel".into()))
    }
}

/// Starts that were granted but are not journaled yet (their expressions are being evaluated).
#[derive(Debug, Default)]
pub struct Held {
    steps: BTreeSet<StepId>,
    pools: HashMap<String, u32>,
    fans: HashMap<StepId, u32>,
    slots: u32,
    all: u32,
}

impl Held {
    pub fn hold(&mut self, run: &Run, id: StepId) {
        if self.steps.insert(id) {
            self.count(&run.lane(id), 1);
        }
    }

    pub fn release(&mut self, run: &Run, id: StepId) {
        if self.steps.remove(&id) {
            self.count(&run.lane(id), -1);
        }
    }

    fn count(&mut self, lane: &Lane, by: i32) {
        let change = |count: &mut u32| *count = count.saturating_add_signed(by);
        change(&mut self.all);
        if lane.slot {
            change(&mut self.slots);
        }
        if lane.pool != NO_POOL {
            change(self.pools.entry(lane.pool.clone()).or_default());
        }
        if let Some(fan) = lane.fan {
            change(self.fans.entry(fan).or_default());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn contains(&self, id: StepId) -> bool {
        self.steps.contains(&id)
    }
}
