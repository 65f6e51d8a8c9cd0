//! The gate: an attempt starts only when its budget, its targets and its pools all say yes.
//!
//! Lanes that were refused stay closed until their time comes, or until this run gives something back: nobody
//! asks the shared limits over and over. What a refusal means for the step (wait, fall back) is decided here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sage_core::budget::{Amount, Short};
use sage_core::event::{LimitsChanged, StepFellBack, StepFinished, TargetParked, TargetReleased};
use sage_core::policy::{Alternative, FailureClass, FallbackOn, OnBudget};
use sage_core::run::{DemandId, INBOX, Lane, Parked, StepId};
use sage_core::target::{Estimate, Hold, HoldReason};
use sage_core::template::Kind;
use tokio::time::Instant;

use super::timers::Timer;
use super::{LoopError, RunLoop};
use crate::inbox::{Inbox, Pressure};
use crate::limits::{Answer, Member, Permit, PoolWant, Refused, Want};
use crate::prepare::Start;

/// How soon a lane that waits for other runs asks again: they cannot call us.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How soon a lane that waits for a target looks again: a person may have reset it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A park that moves by less than this is no news.
const SAME_TIME_MS: u64 = 1_000;

/// Rules of the project: these agents together, at most so many at once, and what they weigh on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    pub agents: Vec<String>,
    pub max_concurrent: u32,
    /// A pool that each of them takes a unit of: `cpu`, `memory`, `io`.
    pub profile: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Why {
    /// Another run has the slots of a pool, or the limits could not be asked.
    Others(Option<String>),
    Target(String, Hold),
    Budget(Box<Short>),
    /// So many wakes are unhandled that no new agent starts.
    Inbox(usize),
}

#[derive(Debug)]
struct Closed {
    why: Why,
    look_again: Instant,
}

pub(super) struct Gate {
    member: Member,
    closed: HashMap<Lane, Closed>,
    /// Steps that are prepared and wait at the gate: their expressions are not evaluated twice.
    prepared: HashMap<StepId, Start>,
    /// Others may have a ticket of ours to wait for.
    queued: bool,
    targets: HashMap<DemandId, Arc<[String]>>,
    /// Targets that have refused since they last took a call: what is about to start there had better not.
    shut: HashSet<String>,
    /// Since when other runs have had all slots of a pool.
    slots: HashMap<String, Instant>,
}

pub(super) struct Granted {
    pub permit: Permit,
    pub reserve: Option<Amount>,
}

impl Gate {
    pub fn new(member: Member) -> Gate {
        Gate {
            member,
            closed: HashMap::new(),
            prepared: HashMap::new(),
            queued: false,
            targets: HashMap::new(),
            shut: HashSet::new(),
            slots: HashMap::new(),
        }
    }

    /// A target refused: attempts that were granted but have not begun must not run into it.
    pub fn shut(&mut self, targets: impl IntoIterator<Item = String>) {
        self.shut.extend(targets);
    }

    pub fn is_shut(&self, targets: &[String]) -> bool {
        !self.shut.is_empty() && targets.iter().any(|target| self.shut.contains(target))
    }

    pub fn is_closed(&self, lane: &Lane) -> bool {
        self.closed.contains_key(lane)
    }

    pub fn why(&self, lane: &Lane) -> Option<&Why> {
        self.closed.get(lane).map(|closed| &closed.why)
    }

    /// This run gave something back, or a budget changed: everybody may ask again.
    pub fn reopen(&mut self) {
        self.closed.clear();
    }

    fn reopen_due(&mut self) {
        let now = Instant::now();
        self.closed.retain(|_, closed| closed.look_again > now);
    }

    /// What they were prepared from may be another thing now.
    pub fn forget_prepared(&mut self) {
        self.prepared.clear();
    }

    pub fn keep_prepared(&mut self, id: StepId, start: Start) {
        self.prepared.insert(id, start);
    }

    pub fn take_prepared(&mut self, id: StepId) -> Option<Start> {
        self.prepared.remove(&id)
    }

    /// The run of somebody with urgent work who waits for what this run holds, and the pool.
    pub fn pressed(&self, now_ms: u64) -> Option<(String, String)> {
        self.member.pressed(now_ms)
    }

    /// An ask that nobody will repeat: its ticket goes with the next turn.
    pub fn leaves_tickets(&mut self) {
        self.queued = true;
    }

    /// Nothing of this run waits for a pool any more: others need not let it go first.
    pub fn leave_queue(&mut self) {
        if self.queued && !self.closed.values().any(|closed| matches!(closed.why, Why::Others(_))) {
            self.member.withdraw();
            self.queued = false;
        }
    }
}

impl RunLoop {
    /// Asks for everything that one attempt of the step needs; all of it or nothing.
    pub(super) fn ask(&mut self, id: StepId) -> Result<Granted, Why> {
        self.room_in_inbox(id)?;
        let history = self.experience(id);
        let reserve = self.reservation(id, history).map_err(|short| Why::Budget(Box::new(short)))?;
        let targets = self.targets(id);
        let named = self.pools_of(id);
        let pools: Vec<PoolWant<'_>> = named
            .iter()
            .map(|(pool, units, limit)| PoolWant { pool, units: *units, limit: *limit })
            .collect();
        let expected = history.map_or(0, |mean| mean.tokens);
        let estimate = Estimate { input_tokens: expected, output_tokens: 0 };
        let want = Want { pools: &pools, targets: &targets, priority: self.run.priority(id), estimate };
        match self.gate.member.ask(&want, self.around.clock.now_ms()) {
            Answer::Granted(permit) => Ok(Granted { permit, reserve }),
            Answer::Refused(Refused::Target { target, hold }) => Err(Why::Target(target, hold)),
            Answer::Refused(Refused::Pool { pool }) => Err(Why::Others(Some(pool))),
            Answer::Refused(Refused::Busy) => Err(Why::Others(None)),
        }
    }

    /// Agents report to an inbox that somebody must be able to empty.
    fn room_in_inbox(&self, id: StepId) -> Result<(), Why> {
        let inbox = self.around.wakes.as_ref().filter(|_| self.run.kind(id) == Kind::Agent);
        match inbox.map(Inbox::pressure) {
            Some(Pressure::Full(unhandled)) => Err(Why::Inbox(unhandled)),
            _ => Ok(()),
        }
    }

    /// The same for all steps with the same demand, so it is worked out once.
    fn targets(&mut self, id: StepId) -> Arc<[String]> {
        let demand = self.run.step(id).demand;
        if let Some(known) = self.gate.targets.get(&demand) {
            return known.clone();
        }
        let targets: Arc<[String]> = self.run.targets_of(id).into();
        self.gate.targets.insert(demand, targets.clone());
        targets
    }

    /// Pools with units and size: the slots of all runs, the step's own, those of the project's rules.
    pub(super) fn pools_of(&self, id: StepId) -> Vec<(String, u32, u32)> {
        // A narrow run must not hold back the others: its own width is kept by the fold.
        let together = self.run.settings.together.unwrap_or(0).max(self.run.parallel());
        let mut pools = vec![("global".to_string(), 1, together)];
        let sized =
            |pool: &str, units: u32| self.run.pool_size(pool).map(|limit| (pool.to_string(), units, limit));
        pools.extend(self.run.demand(id).pools.iter().filter_map(|(pool, units)| sized(pool, *units)));
        let Some(agent) = self.run.agent_of(id) else { return pools };
        for (number, rule) in self.around.affinity.iter().enumerate() {
            if rule.agents.iter().any(|name| name == agent) {
                pools.push((format!("affinity:{number}"), 1, rule.max_concurrent));
                pools.extend(rule.profile.as_deref().and_then(|profile| sized(profile, 1)));
            }
        }
        // A pool that both the step and a rule name is taken once, with the larger weight.
        pools.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        pools.dedup_by(|a, b| a.0 == b.0);
        pools
    }

    /// The gate said no: the lane is closed for a while, unless the step has another way.
    pub(super) fn refused(&mut self, id: StepId, start: Start, why: Why) -> Result<(), LoopError> {
        if let Why::Target(target, hold) = &why {
            self.tell_parked(target.clone(), hold)?;
            let on = match hold.reason {
                HoldReason::Breaker | HoldReason::Isolated => Some(FallbackOn::Breaker),
                HoldReason::Quota => Some(FallbackOn::Quota),
                HoldReason::RateLimit | HoldReason::Pool => None,
            };
            let because = format!("{target}: {}", hold.message);
            if let Some(on) = on
                && self.fall_back(id, on, &because)?
            {
                return Ok(());
            }
        }
        // What others have reserved may still be given back.
        if let Why::Budget(short) = &why
            && self.run.plan().template.on_budget == OnBudget::Fail
            && short.reserved.is_zero()
        {
            let (step, attempt) = (self.run.step(id).path.clone(), self.run.step(id).attempts);
            let end = sage_core::event::End::Failed {
                class: FailureClass::Budget,
                message: short.to_string(),
                partial: None,
            };
            return self.emit(StepFinished::new(step, attempt, end, 0, Default::default())).map(drop);
        }
        let wait = match &why {
            Why::Others(_) | Why::Inbox(_) => ASK_AGAIN,
            Why::Target(_, hold) => self.wait_of(hold),
            // Only what happens in this run can change it, and that reopens the gate.
            Why::Budget(_) => Duration::from_secs(3_600),
        };
        self.gate.queued |= matches!(why, Why::Others(_));
        if let Why::Others(Some(pool)) = &why {
            self.tell_slot(format!("pool:{pool}"), "other runs have all of its slots".into())?;
        }
        if let Why::Inbox(unhandled) = &why {
            self.tell_slot(INBOX.into(), format!("{unhandled} wakes are unhandled"))?;
        }
        let look_again = Instant::now() + wait;
        self.gate.closed.insert(self.run.lane(id), Closed { why, look_again });
        self.gate.prepared.insert(id, start);
        self.timers.arm(look_again, Timer::Gate);
        Ok(())
    }

    fn wait_of(&self, hold: &Hold) -> Duration {
        let left = hold.until.map(|until| until.saturating_sub(self.around.clock.now_ms()).max(1));
        left.map_or(ASK_AGAIN, |ms| Duration::from_millis(ms).min(LOOK_AGAIN))
    }

    /// There is no room. Told when it lasts: slots change hands all the time.
    fn tell_slot(&mut self, place: String, message: String) -> Result<(), LoopError> {
        let since = *self.gate.slots.entry(place.clone()).or_insert_with(Instant::now);
        if since.elapsed() < LOOK_AGAIN {
            return Ok(());
        }
        self.tell_parked(place, &Hold { reason: HoldReason::Pool, until: None, message })
    }

    fn tell_parked(&mut self, target: String, hold: &Hold) -> Result<(), LoopError> {
        let news = Parked { reason: hold.reason, until: hold.until, message: hold.message.clone() };
        let same = |known: &Parked| {
            let times = known.until.unwrap_or(0).abs_diff(news.until.unwrap_or(0));
            known.reason == news.reason && times < SAME_TIME_MS
        };
        if self.run.parked.get(&target).is_some_and(same) {
            return Ok(());
        }
        let Parked { reason, until, message } = news;
        self.emit(TargetParked { target, reason, until, message }).map(drop)
    }

    /// A call was granted: its targets take calls again.
    pub(super) fn tell_released(&mut self, id: StepId) -> Result<(), LoopError> {
        self.gate.slots.clear();
        if !self.gate.shut.is_empty() {
            let open = self.run.targets_of(id);
            self.gate.shut.retain(|target| !open.contains(target));
        }
        if self.run.parked.is_empty() {
            return Ok(());
        }
        let pools = self.run.parked.keys().filter(|name| name.starts_with("pool:")).cloned();
        // Only an agent has been asked about the inbox.
        let inbox = (self.run.kind(id) == Kind::Agent).then(|| INBOX.to_string());
        let told: Vec<String> = self.run.targets_of(id).into_iter().chain(pools).chain(inbox).collect();
        for target in told {
            if self.run.parked.contains_key(&target) {
                self.emit(TargetReleased { target })?;
            }
        }
        Ok(())
    }

    /// Goes on by the step's next alternative, if its policy names one for this case.
    pub(super) fn fall_back(&mut self, id: StepId, on: FallbackOn, why: &str) -> Result<bool, LoopError> {
        let Some(fallback) = &self.run.operation(id).fallback else { return Ok(false) };
        let next = self.run.step(id).alternative.map_or(0, |at| at + 1);
        let Some(alternative) = fallback.to.get(next as usize).filter(|_| fallback.on.contains(&on)) else {
            return Ok(false);
        };
        let name = alternative_name(alternative);
        let step = self.run.step(id).path.clone();
        self.gate.prepared.remove(&id);
        self.emit(StepFellBack { step, to: next, name, why: why.to_string() })?;
        Ok(true)
    }

    pub(super) fn gate_due(&mut self) {
        self.gate.reopen_due();
    }

    /// Limits that somebody changed while the run was under way (`sage limits set`).
    pub(super) fn follow_limits(&mut self) -> Result<(), LoopError> {
        self.gate.member.settle_debts();
        let overrides = self.around.limits.overrides();
        let parallel = overrides.get("global").copied();
        let pools =
            overrides.into_iter().filter(|(pool, _)| pool != "global" && !pool.starts_with("target:"));
        let mut changed = LimitsChanged { parallel, pools: pools.collect(), why: String::new() };
        if let Some((limit, why)) = self.machine.limit(changed.parallel.unwrap_or(self.run.settings.parallel))
        {
            changed.parallel = Some(limit);
            changed.why = why;
        }
        let now = &self.run.changed;
        if (now.parallel, &now.pools) == (changed.parallel, &changed.pools) {
            return Ok(());
        }
        if changed.why.is_empty() {
            let parallel = changed.parallel.unwrap_or(self.run.settings.parallel);
            let pools: String = changed.pools.iter().map(|(pool, size)| format!(", {pool} {size}")).collect();
            changed.why = format!("{parallel} at once{pools}");
        }
        self.gate.reopen();
        self.emit(changed).map(drop)
    }
}

pub(super) fn alternative_name(alternative: &Alternative) -> String {
    match alternative {
        Alternative::Cache => "the result of an earlier run".into(),
        Alternative::Value(_) => "a fixed value".into(),
        Alternative::Agent { agent, model } => {
            let agent = agent.as_ref().map(|agent| format!("agent {agent}"));
            let model = model.as_ref().map(|model| format!("model {model}"));
            [agent, model].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    }
}
