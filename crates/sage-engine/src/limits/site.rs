//! One want at one place: looked at, opened under its lock, judged, and taken or left as it was.
//!
//! Steps are split so that a want at two places is judged at both before anything is written at one. Dropping
//! a site that was not taken or committed gives back its locks and leaves the board as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use sage_core::target::{Admission, Estimate, Hold, Target, TargetPolicy};

use super::board::{Ask, Board};
use super::member::{Ledger, Seat};
use super::place::{Scope, State, target_pool};
use super::store::{Fault, Patience, Probe};
use super::{Permit, Refused, Want};

#[derive(Debug)]
pub(super) struct Site<'a> {
    pub scope: Scope,
    seat: &'a Seat,
    state: MutexGuard<'a, State>,
    priority: u8,
    estimate: Estimate,
    now_ms: u64,
    /// Units and limit by pool.
    pools: BTreeMap<String, (u32, u32)>,
    targets: Vec<Sought<'a>>,
    /// Under the board's lock.
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn {
    draft: Board,
    /// The draft is another board than the one that is there.
    changed: bool,
    /// In `draft`, not on the board yet.
    ledger: Ledger,
}

#[derive(Debug)]
struct Sought<'a> {
    name: &'a str,
    policy: &'a TargetPolicy,
    state: Target,
    /// It is counted in its own pool.
    counted: bool,
    locked: bool,
    changed: bool,
    probe: Option<Probe>,
}

impl<'a> Site<'a> {
    /// The places that a want needs, in the order of `Scope`.
    pub fn all(seat: &'a Seat, want: &Want<'a>, now_ms: u64) -> Vec<Self> {
        let mut sites = Vec::new();
        for scope in Scope::ALL {
            let mut pools: BTreeMap<String, (u32, u32)> = BTreeMap::new();
            for want in want.pools.iter().filter(|want| want.units > 0 && Scope::of_pool(want.pool) == scope)
            {
                let (units, limit) = pools.entry(want.pool.to_owned()).or_insert((0, want.limit));
                *units = units.saturating_add(want.units);
                *limit = want.limit.min(*limit);
            }
            let names: BTreeSet<&str> = want.targets.iter().map(String::as_str).collect();
            let here = names.into_iter().filter(|name| Scope::of_target(name) == scope);
            let sought = |name| Sought {
                name,
                policy: seat.limits.policy(name),
                state: Target::default(),
                counted: false,
                locked: false,
                changed: false,
                probe: None,
            };
            let targets: Vec<Sought<'a>> = here.map(sought).collect();
            if !pools.is_empty() || !targets.is_empty() {
                let state = seat.limits.place(scope).enter();
                let (priority, estimate) = (want.priority, want.estimate);
                sites.push(Self {
                    scope,
                    seat,
                    state,
                    priority,
                    estimate,
                    now_ms,
                    pools,
                    targets,
                    turn: None,
                });
            }
        }
        sites
    }

    /// The cheap look, without locks: a target that is parked or broken is found here.
    pub fn look(&mut self) -> Option<Refused> {
        for sought in &mut self.targets {
            sought.state = self.state.view(sought.name, sought.policy);
            if let Some(hold) = sought.state.hold(sought.policy, self.now_ms) {
                sought.settle(&mut self.state, self.now_ms);
                return Some(refused(sought.name, hold));
            }
            // Whether there is room for just this call is only said by an admission; this one is thrown away.
            let mut trial = sought.state.clone();
            if let Admission::Wait(hold) = trial.admit(sought.policy, self.now_ms, &self.estimate, true) {
                sought.settle(&mut self.state, self.now_ms);
                return Some(refused(sought.name, hold));
            }
        }
        None
    }

    /// Takes the board's lock, if any pool is wanted here.
    pub fn open(&mut self) -> Result<(), Fault> {
        for sought in &mut self.targets {
            if let Some(width) = sought.state.quota.width(&sought.policy.quota) {
                count_in(&mut self.pools, sought, width);
            }
        }
        if self.pools.is_empty() {
            // Only a limit that a person has set can bound them now.
            let overrides = &self.state.store.board()?.overrides;
            if overrides.is_empty()
                || !self.targets.iter().any(|s| overrides.contains_key(&target_pool(s.name)))
            {
                return Ok(());
            }
        }
        self.state.store.lock(Patience::Loop)?;
        let mut draft = match self.state.store.board() {
            Ok(board) => board.clone(),
            Err(error) => {
                self.state.store.unlock();
                return Err(error.into());
            }
        };
        for sought in self.targets.iter_mut().filter(|sought| !sought.counted) {
            if draft.overrides.contains_key(&target_pool(sought.name)) {
                count_in(&mut self.pools, sought, u32::MAX);
            }
        }
        let ledger = std::mem::take(&mut self.seat.ledgers()[self.scope as usize]);
        let changed = ledger.withdraws || !ledger.owed.is_empty();
        ledger.apply(&self.seat.id, &mut draft);
        self.turn = Some(Turn { draft, changed, ledger });
        Ok(())
    }

    fn ask<'b>(&'b self, pool: &'b str) -> Ask<'b> {
        let (units, limit) = self.pools.get(pool).copied().unwrap_or_default();
        Ask {
            member: &self.seat.id,
            run: &self.seat.run,
            pool,
            units,
            limit,
            priority: self.priority,
            now_ms: self.now_ms,
            ageing_ms: self.seat.limits.ageing_ms(),
        }
    }

    /// The first pool that refuses, when the dead no longer count.
    pub fn first_refusal(&mut self) -> Option<String> {
        let mut turn = self.turn.take()?;
        let mut refusal = None;
        let pools: Vec<String> = self.pools.keys().cloned().collect();
        for pool in pools {
            if turn.draft.is_free(&self.ask(&pool)) {
                continue;
            }
            for member in turn.draft.in_the_way(&self.ask(&pool)) {
                if !self.state.store.is_alive(&member) {
                    turn.draft.remove(&member);
                    turn.changed = true;
                }
            }
            if !turn.draft.is_free(&self.ask(&pool)) {
                refusal = Some(pool);
                break;
            }
        }
        self.turn = Some(turn);
        refusal
    }

    /// In the pools before `end`, which were free, when a later one has refused.
    pub fn keep_places(&mut self, end: Option<&str>) {
        self.draft(|site, draft| {
            let passed = site.pools.keys().take_while(|pool| end != Some(pool.as_str()));
            passed.for_each(|pool| draft.keep_place(&site.ask(pool)));
        });
    }

    /// Leaves or renews the ticket in `pool`.
    pub fn wait(&mut self, pool: &str) {
        self.draft(|site, draft| draft.wait(&site.ask(pool)));
    }

    fn draft(&mut self, change: impl FnOnce(&Self, &mut Board)) {
        if let Some(mut turn) = self.turn.take() {
            change(self, &mut turn.draft);
            turn.changed = true;
            self.turn = Some(turn);
        }
    }

    /// Asks the targets. A lock is only taken if a call changes what is written of the target.
    pub fn admit(&mut self) -> Result<Option<Refused>, Fault> {
        for sought in &mut self.targets {
            let mut trial = sought.state.clone();
            let admission = trial.admit(sought.policy, self.now_ms, &self.estimate, false);
            let known = trial == sought.state && !self.state.has_backlog(sought.name);
            if known && admission == (Admission::Go { probe: false }) {
                continue;
            }
            self.state.store.lock_target(sought.name, Patience::Loop)?;
            sought.locked = true;
            if let Some(hold) = sought.admit(&mut self.state, self.now_ms, &self.estimate)? {
                return Ok(Some(refused(sought.name, hold)));
            }
        }
        Ok(None)
    }

    /// Writes what was granted. Targets first: what they have counted too much harms nobody, units would.
    pub fn take(&mut self, permit: &mut Permit) -> Result<(), Fault> {
        for sought in self.targets.iter().filter(|sought| sought.changed) {
            self.state.store.put_target(sought.name, &sought.state)?;
            self.state.caught_up(sought.name);
        }
        let mut taken = Vec::new();
        self.draft(|site, draft| {
            for pool in site.pools.keys() {
                taken.push((pool.clone(), draft.take(&site.ask(pool))));
            }
        });
        self.commit()?;
        for (pool, units) in taken {
            permit.holds(self.scope, pool, units);
        }
        for sought in &mut self.targets {
            self.state.took_off(sought.name);
            permit.calls(self.scope, sought.name, sought.counted, sought.probe.take());
        }
        Ok(())
    }

    /// Writes the board if it changed.
    pub fn commit(&mut self) -> Result<(), Fault> {
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        let own = turn.draft.members.get(&self.seat.id);
        let waits = own.is_some_and(|row| row.pools.values().any(|share| share.ticket.is_some()));
        if turn.changed {
            if own.is_some() {
                self.state.store.prove(&self.seat.id)?;
            }
            // Nobody looks at the draft after it is the board.
            self.state.store.put_board(std::mem::take(&mut turn.draft))?;
        }
        turn.ledger = Ledger { waits, ..Ledger::default() };
        Ok(())
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        for sought in self.targets.iter().filter(|sought| sought.locked) {
            self.state.store.unlock_target(sought.name);
        }
        if let Some(turn) = self.turn.take() {
            self.state.store.unlock();
            self.seat.ledgers()[self.scope as usize].merge(turn.ledger);
        }
    }
}

impl Sought<'_> {
    /// Writes the end of a hold that a clock's jump back has brought nearer: otherwise it would be as far away at each
    /// look, and nothing would ever start.
    fn settle(&self, place: &mut State, now_ms: u64) {
        let mut settled = self.state.clone();
        settled.settle(self.policy, now_ms);
        if settled != self.state {
            let settle = |target: &mut Target| target.settle(self.policy, now_ms);
            // If it cannot be written now, the next look does it.
            let _ = place.change_target(self.name, self.policy, Patience::Loop, settle);
        }
    }

    /// Under its lock. A reason to wait, or `state` is what to write.
    fn admit(&mut self, place: &mut State, now_ms: u64, estimate: &Estimate) -> Result<Option<Hold>, Fault> {
        let current = place.view(self.name, self.policy);
        self.state = current.clone();
        if let Admission::Wait(_) = self.state.admit(self.policy, now_ms, estimate, false) {
            // Whether the probe is free is only looked at if it would help.
            self.state = current;
            match self.state.admit(self.policy, now_ms, estimate, true) {
                Admission::Wait(hold) => return Ok(Some(hold)),
                Admission::Go { probe: false } => {}
                Admission::Go { probe: true } => {
                    self.probe = place.store.probe(self.name)?;
                    if self.probe.is_none() {
                        let mut taken = place.view(self.name, self.policy);
                        let Admission::Wait(hold) = taken.admit(self.policy, now_ms, estimate, false) else {
                            return Err(Fault::Busy);
                        };
                        return Ok(Some(hold));
                    }
                }
            }
        }
        self.changed = self.state != place.store.target(self.name);
        Ok(None)
    }
}

fn count_in(pools: &mut BTreeMap<String, (u32, u32)>, sought: &mut Sought<'_>, width: u32) {
    let (units, limit) = pools.entry(target_pool(sought.name)).or_insert((0, width));
    *units = units.saturating_add(1);
    *limit = width.min(*limit);
    sought.counted = true;
}

fn refused(name: &str, hold: Hold) -> Refused {
    Refused::Target { target: name.to_owned(), hold }
}
