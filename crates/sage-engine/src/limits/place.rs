//! A place where limits are kept: the project's for pools and ordinary targets, the user's for providers.
//!
//! A store, and what this process alone knows: calls under way, and what it could not write yet. A place
//! whose directory can't be used goes on in memory, and tells so once.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sage_core::target::{CallReport, Target, TargetPolicy, Transition};

use super::store::{Fault, Patience, Store};

/// Reports that could not be recorded because a process is stopped. More would say the same.
const MAX_BACKLOG: usize = 100;

/// Their order is the order in which wants walk them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Project,
    User,
}

impl Scope {
    pub const ALL: [Scope; 2] = [Scope::Project, Scope::User];

    /// Providers are one account for all projects of a user.
    pub fn of_target(name: &str) -> Self {
        if name.starts_with("provider:") { Scope::User } else { Scope::Project }
    }

    pub fn of_pool(pool: &str) -> Self {
        pool.strip_prefix(TARGET_POOL).map_or(Scope::Project, Scope::of_target)
    }
}

const TARGET_POOL: &str = "target:";

/// The pool that bounds how many calls to a target are under way.
pub(super) fn target_pool(name: &str) -> String {
    format!("{TARGET_POOL}{name}")
}

#[derive(Debug)]
pub(super) struct Place(Mutex<State>);

#[derive(Debug)]
pub(super) struct State {
    pub store: Box<dyn Store>,
    /// Calls of this process by target.
    flights: BTreeMap<String, u32>,
    backlog: BTreeMap<String, Vec<(CallReport, u64)>>,
    /// Whose limits they are, for the warning.
    told: &'static str,
    warning: Option<String>,
}

impl Place {
    pub fn new(store: Box<dyn Store>, told: &'static str) -> Self {
        let (flights, backlog) = (BTreeMap::new(), BTreeMap::new());
        Self(Mutex::new(State { store, flights, backlog, told, warning: None }))
    }

    pub fn enter(&self) -> MutexGuard<'_, State> {
        // What a panicking thread has left is at worst a stale copy; the store reads again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Goes on in memory, with what this process knows.
    pub fn degrade(&mut self, error: &io::Error) {
        self.warning = Some(format!("limits of {} are not shared with other runs: {error}", self.told));
        self.store = Box::new(self.store.take_memory());
    }

    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// A target as this process knows it, without a lock.
    pub fn view(&mut self, name: &str, policy: &TargetPolicy) -> Target {
        let mut target = self.store.target(name);
        self.catch_up(name, policy, &mut target);
        target
    }

    /// Applies what could not be recorded when it happened.
    fn catch_up(&self, name: &str, policy: &TargetPolicy, target: &mut Target) -> Vec<Transition> {
        let late = self.backlog.get(name).into_iter().flatten();
        late.flat_map(|(report, at_ms)| target.record(policy, *at_ms, report)).collect()
    }

    /// Under its lock: the target now, changed by `change`, and written if that made a difference.
    pub fn change_target<R>(
        &mut self,
        name: &str,
        policy: &TargetPolicy,
        patience: Patience,
        change: impl FnOnce(&mut Target) -> R,
    ) -> Result<(Target, Vec<Transition>, R), Fault> {
        self.store.lock_target(name, patience)?;
        let before = self.store.target(name);
        let mut target = before.clone();
        let late = self.catch_up(name, policy, &mut target);
        let result = change(&mut target);
        let written = if target == before { Ok(()) } else { self.store.put_target(name, &target) };
        self.store.unlock_target(name);
        written?;
        self.backlog.remove(name);
        Ok((target, late, result))
    }

    /// The backlog of `name` was written with a change that the caller made itself.
    pub fn caught_up(&mut self, name: &str) {
        self.backlog.remove(name);
    }

    pub fn has_backlog(&self, name: &str) -> bool {
        self.backlog.contains_key(name)
    }

    /// Records how a call ended. If that changes nothing (a healthy target's success), nothing is locked.
    pub fn record(
        &mut self,
        name: &str,
        policy: &TargetPolicy,
        report: &CallReport,
        now_ms: u64,
    ) -> Vec<Transition> {
        if !self.has_backlog(name) {
            let before = self.store.target(name);
            let mut after = before.clone();
            let transitions = after.record(policy, now_ms, report);
            if after == before {
                return transitions;
            }
        }
        let record = |state: &mut Self| {
            state.change_target(name, policy, Patience::Loop, |t| t.record(policy, now_ms, report))
        };
        let result = match record(self) {
            Err(Fault::Io(error)) => {
                self.degrade(&error);
                record(self)
            }
            result => result,
        };
        match result {
            Ok((_, mut late, transitions)) => {
                late.extend(transitions);
                late
            }
            Err(_) => {
                let backlog = self.backlog.entry(name.to_owned()).or_default();
                if backlog.len() < MAX_BACKLOG {
                    backlog.push((report.clone(), now_ms));
                }
                Vec::new()
            }
        }
    }

    pub fn took_off(&mut self, name: &str) {
        *self.flights.entry(name.to_owned()).or_default() += 1;
    }

    pub fn landed(&mut self, name: &str) {
        if let Some(count) = self.flights.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.flights.remove(name);
            }
        }
    }

    /// Calls to a target that are under way: all on the board if it is `counted`, at least this process's.
    pub fn in_flight(&mut self, name: &str, counted: bool) -> u32 {
        let own = self.flights.get(name).copied().unwrap_or_default();
        if !counted {
            return own;
        }
        let pool = target_pool(name);
        let board = self.store.board().cloned().unwrap_or_default();
        let held =
            board.members.iter().filter_map(|(member, row)| Some((member, row.pools.get(&pool)?.held)));
        let all: u32 = held.filter(|(member, _)| self.store.is_alive(member)).map(|(_, held)| held).sum();
        own.max(all)
    }
}
