//! The ready queue: who may start next, without scanning.
//!
//! Ready steps wait in lanes. A lane is a set of steps with the same limits (what they ask for, a fan-out with
//! `maxParallel`), so either all of a lane may start or none, and only lane heads need to be looked at.
//! Order inside and between lanes: priority, which gets better with waiting; longest remaining path; plan order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::run::{DemandId, Run, StepId};

/// Waiting this long is worth one level of priority: nobody starves.
pub const AGEING_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// Occupies a slot of the run.
    pub slot: bool,
    pub demand: DemandId,
    /// The fan-out whose `maxParallel` counts.
    pub fan: Option<StepId>,
}

/// Smaller goes first. A fixed number although waiting counts: who is ready a minute earlier is one level better.
type Rank = (u64, Reverse<u32>, StepId);

#[derive(Debug, Default)]
pub(super) struct Ready {
    lanes: BTreeMap<Lane, BTreeSet<Rank>>,
    pool_running: HashMap<String, u32>,
    fan_running: HashMap<StepId, u32>,
    len: u32,
    /// Steps that may not wait for ever and have queued since somebody last asked.
    impatient: Vec<StepId>,
    /// Steps with `cache` that have queued since somebody last asked.
    cacheable: Vec<StepId>,
}

impl Run {
    pub fn lane(&self, id: StepId) -> Lane {
        let step = self.step(id);
        let limited = |_: &StepId| self.operation(id).max_parallel.is_some();
        let fan = step.item.map(|(fan, _)| fan).filter(limited);
        Lane { slot: self.holds_slot(id), demand: step.demand, fan }
    }

    /// P0 to P3: the step's own, the run's, its template's.
    pub fn priority(&self, id: StepId) -> u8 {
        const DEFAULT_PRIORITY: u8 = 2;
        let own = self.operation(id).priority.or(self.settings.priority);
        own.or(self.plan().template.priority).unwrap_or(DEFAULT_PRIORITY)
    }

    fn rank(&self, id: StepId) -> Rank {
        let step = self.step(id);
        let minutes = step.ready_ms.saturating_sub(self.started_ms) / AGEING_MS;
        (u64::from(self.priority(id)) + minutes, Reverse(step.height), id)
    }

    pub(super) fn enqueue(&mut self, id: StepId) {
        let (lane, rank) = (self.lane(id), self.rank(id));
        if self.ready.lanes.entry(lane).or_default().insert(rank) {
            self.ready.len += 1;
            if self.operation(id).queue_timeout_ms.is_some() {
                self.ready.impatient.push(id);
            }
            if self.operation(id).caches() && !self.is_fan(id) {
                self.ready.cacheable.push(id);
            }
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

    /// Takes a step out of the queue for good: for a look ahead in which it does not start.
    pub fn leave_out(&mut self, id: StepId) {
        self.dequeue(id);
    }

    pub(super) fn clear_ready(&mut self) {
        self.ready = Ready::default();
    }

    /// A step of this lane began (+1) or ended (-1).
    pub(super) fn occupy(&mut self, id: StepId, by: i32) {
        let lane = self.lane(id);
        let demand = self.demands.get(lane.demand);
        for (pool, units) in &demand.pools {
            // The name is copied only once per pool.
            if !self.ready.pool_running.contains_key(pool) {
                self.ready.pool_running.insert(pool.clone(), 0);
            }
            if let Some(count) = self.ready.pool_running.get_mut(pool) {
                *count = count.saturating_add_signed(by * *units as i32);
            }
        }
        if let Some(fan) = lane.fan {
            let count = self.ready.fan_running.entry(fan).or_default();
            *count = count.saturating_add_signed(by);
        }
    }

    pub fn ready_count(&self) -> u32 {
        self.ready.len
    }

    /// The ready step that should start next under the run's own limits. `held` are steps whose start is
    /// already being prepared: they count as running. `closed` tells the lanes that the engine cannot grant now.
    pub fn next_start(&self, held: &Held, mut closed: impl FnMut(&Lane) -> bool) -> Option<StepId> {
        if self.settings.sequential && (self.active.slots + self.active.sleeping + held.all) > 0 {
            return None;
        }
        let mut best: Option<Rank> = None;
        for (lane, set) in &self.ready.lanes {
            if closed(lane) || !self.lane_open(lane, held) {
                continue;
            }
            let head = set.iter().find(|(_, _, id)| !held.contains(*id));
            best = match (best, head) {
                (Some(best), Some(head)) => Some(best.min(*head)),
                (best, head) => best.or(head.copied()),
            };
        }
        best.map(|(_, _, id)| id)
    }

    /// Steps with a `timeout.queue` that have queued since the last call.
    pub fn take_impatient(&mut self) -> Vec<StepId> {
        std::mem::take(&mut self.ready.impatient)
    }

    /// Steps with `cache` that have queued since the last call.
    pub fn take_cacheable(&mut self) -> Vec<StepId> {
        std::mem::take(&mut self.ready.cacheable)
    }

    /// Everybody who waits and may not wait for ever begins to wait anew.
    pub fn all_impatient(&mut self) {
        let waits: Vec<StepId> =
            self.ready_steps().filter(|&id| self.operation(id).queue_timeout_ms.is_some()).collect();
        self.ready.impatient = waits;
    }

    /// Ready steps, lane by lane.
    pub(super) fn ready_steps(&self) -> impl Iterator<Item = StepId> {
        self.ready.lanes.values().flatten().map(|(_, _, id)| *id)
    }

    /// The step that goes first in each lane.
    pub fn urgent_ready(&self) -> impl Iterator<Item = StepId> {
        self.ready.lanes.values().filter_map(|set| set.iter().next()).map(|(_, _, id)| *id)
    }

    /// Lanes in which somebody waits.
    pub fn ready_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.ready.lanes.keys()
    }

    fn lane_open(&self, lane: &Lane, held: &Held) -> bool {
        self.closed_by(lane, held).is_none()
    }

    /// The limit of the run itself that keeps a lane closed.
    fn closed_by(&self, lane: &Lane, held: &Held) -> Option<String> {
        if lane.slot && self.active.slots + held.slots >= self.parallel() {
            return Some("global".into());
        }
        for (pool, units) in &self.demands.get(lane.demand).pools {
            let Some(limit) = self.pool_size(pool) else { continue };
            let running = self.ready.pool_running.get(pool).copied().unwrap_or(0)
                + held.pools.get(pool).copied().unwrap_or(0);
            // More units than there are: it may run alone.
            if running > 0 && running + units > limit {
                return Some(pool.clone());
            }
        }
        let fan = lane.fan?;
        let limit = self.operation(fan).max_parallel.unwrap_or(u32::MAX);
        let running = self.ready.fan_running.get(&fan).copied().unwrap_or(0);
        let full = running + held.fans.get(&fan).copied().unwrap_or(0) >= limit;
        full.then(|| "maxParallel".into())
    }

    /// Which limit of the run keeps a ready step from starting, if one does.
    pub fn limiting_pool(&self, id: StepId) -> Option<String> {
        self.closed_by(&self.lane(id), &Held::default())
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
    /// Not to be started yet, and holding nothing: they may need no start.
    aside: BTreeSet<StepId>,
}

impl Held {
    /// Keeps a step from being started. It occupies nothing meanwhile.
    pub fn set_aside(&mut self, id: StepId) {
        self.aside.insert(id);
    }

    pub fn take_back(&mut self, id: StepId) {
        self.aside.remove(&id);
    }

    pub fn hold(&mut self, run: &Run, id: StepId) {
        if self.steps.insert(id) {
            self.count(run, &run.lane(id), 1);
        }
    }

    pub fn release(&mut self, run: &Run, id: StepId) {
        if self.steps.remove(&id) {
            self.count(run, &run.lane(id), -1);
        }
    }

    fn count(&mut self, run: &Run, lane: &Lane, by: i32) {
        let change = |count: &mut u32, by: i32| *count = count.saturating_add_signed(by);
        change(&mut self.all, by);
        if lane.slot {
            change(&mut self.slots, by);
        }
        for (pool, units) in &run.demands.get(lane.demand).pools {
            change(self.pools.entry(pool.clone()).or_default(), by * *units as i32);
        }
        if let Some(fan) = lane.fan {
            change(self.fans.entry(fan).or_default(), by);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.aside.is_empty()
    }

    pub fn contains(&self, id: StepId) -> bool {
        self.steps.contains(&id) || self.aside.contains(&id)
    }
}
