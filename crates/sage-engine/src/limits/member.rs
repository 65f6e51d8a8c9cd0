//! A run among the others: it asks before each attempt, and waits by asking again.
//!
//! What must stay true:
//! - a want gets everything or nothing, and nothing is written before all of it is granted;
//! - what is given back while a lock is busy is owed, and goes with the member's next turn; death frees it
//!   anyway.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::place::{Scope, State};
use super::site::Site;
use super::store::{Fault, Patience};
use super::{Answer, Limits, Permit, Refused, Want};

/// A run's presence. Dropping it withdraws its tickets; permits stay good until they are dropped themselves.
#[derive(Debug)]
pub struct Member {
    seat: Arc<Seat>,
}

/// What a member and its permits share. When the last of them is gone, so is its every trace.
#[derive(Debug)]
pub(super) struct Seat {
    pub limits: Limits,
    pub id: String,
    pub run: String,
    ledgers: Mutex<[Ledger; 2]>,
}

/// What one board does not know yet.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Units to give back, by pool.
    pub owed: BTreeMap<String, u32>,
    /// Tickets are to be removed.
    pub withdraws: bool,
    /// There may be tickets.
    pub waits: bool,
}

impl Member {
    pub(super) fn new(limits: Limits, id: String, run: &str) -> Self {
        let ledgers = Mutex::default();
        Self { seat: Arc::new(Seat { limits, id, run: run.to_owned(), ledgers }) }
    }

    /// May an attempt begin now? A refusal keeps a place in the queue for as long as it is asked again.
    pub fn ask(&self, want: &Want<'_>, now_ms: u64) -> Answer {
        if want.pools.iter().all(|want| want.units == 0) && want.targets.is_empty() {
            return Answer::Granted(Permit::empty());
        }
        // Each place can fail once; then it is in memory.
        for _ in 0..=Scope::ALL.len() {
            match self.try_ask(want, now_ms) {
                Ok(answer) => return answer,
                Err((_, Fault::Busy)) => break,
                Err((scope, Fault::Io(error))) => self.seat.limits.place(scope).enter().degrade(&error),
            }
        }
        Answer::Refused(Refused::Busy)
    }

    fn try_ask(&self, want: &Want<'_>, now_ms: u64) -> Result<Answer, (Scope, Fault)> {
        let mut sites = Site::all(&self.seat, want, now_ms);
        for site in &mut sites {
            if let Some(refused) = site.look() {
                return Ok(Answer::Refused(refused));
            }
        }
        for site in &mut sites {
            site.open().map_err(|fault| (site.scope, fault))?;
        }
        if let Some(refused) = walk(&mut sites) {
            for site in &mut sites {
                site.commit().map_err(|fault| (site.scope, fault))?;
            }
            return Ok(Answer::Refused(refused));
        }
        for site in &mut sites {
            let refused = site.admit().map_err(|fault| (site.scope, fault))?;
            if let Some(refused) = refused {
                return Ok(Answer::Refused(refused));
            }
        }
        let mut permit = Permit::new(Arc::clone(&self.seat), want.estimate);
        let taken =
            sites.iter_mut().try_for_each(|site| site.take(&mut permit).map_err(|fault| (site.scope, fault)));
        // A permit enters the places when it is dropped: so what was taken before a failure is given back.
        drop(sites);
        taken.map(|()| Answer::Granted(permit))
    }

    /// The run of another member that waits with the highest priority for a pool of which this one holds units.
    pub fn pressed(&self, now_ms: u64) -> Option<(String, String)> {
        let presses = |scope: &Scope| {
            let mut state = self.seat.limits.place(*scope).enter();
            let (member, run, pool) = state.store.board().ok()?.pressed(&self.seat.id, now_ms)?;
            state.store.is_alive(&member).then_some((run, pool))
        };
        Scope::ALL.iter().find_map(presses)
    }

    /// Gives back what could not be given back when a lock was busy.
    pub fn settle_debts(&self) {
        for scope in Scope::ALL {
            let owes = !self.seat.ledgers()[scope as usize].owed.is_empty();
            if owes {
                self.seat.settle(scope);
            }
        }
    }

    /// This run waits for nothing any more.
    pub fn withdraw(&self) {
        for scope in Scope::ALL {
            let waits = {
                let mut ledgers = self.seat.ledgers();
                let ledger = &mut ledgers[scope as usize];
                ledger.withdraws |= ledger.waits;
                ledger.waits
            };
            if waits {
                self.seat.settle(scope);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn limits(&self) -> &Limits {
        &self.seat.limits
    }

    /// As if its process were killed: nothing is given back, but nobody proves any more that it lives.
    #[cfg(test)]
    pub(super) fn die(self, permits: Vec<Permit>) {
        for scope in Scope::ALL {
            self.seat.limits.place(scope).enter().store.die(&self.seat.id);
        }
        for mut permit in permits {
            permit.drop_probes();
            std::mem::forget(permit);
        }
        std::mem::forget(self);
    }
}

/// Asks all pools in one order, the same for everybody, and waits at the first that refuses.
fn walk(sites: &mut [Site<'_>]) -> Option<Refused> {
    let (at, pool) =
        sites.iter_mut().enumerate().find_map(|(at, site)| site.first_refusal().map(|pool| (at, pool)))?;
    for site in &mut sites[..at] {
        site.keep_places(None);
    }
    sites[at].keep_places(Some(&pool));
    sites[at].wait(&pool);
    Some(Refused::Pool { pool })
}

impl Drop for Member {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl Seat {
    pub fn ledgers(&self) -> MutexGuard<'_, [Ledger; 2]> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn owe(&self, scope: Scope, pool: &str, units: u32) {
        let mut ledgers = self.ledgers();
        let owed = ledgers[scope as usize].owed.entry(pool.to_owned()).or_default();
        *owed = owed.saturating_add(units);
    }

    /// Tells the board what it does not know yet. If the lock is busy, the next turn does.
    pub fn settle(&self, scope: Scope) {
        self.settle_in(scope, &mut self.limits.place(scope).enter());
    }

    pub fn settle_in(&self, scope: Scope, state: &mut State) {
        let settled = self.try_settle(scope, state);
        if let Err(Fault::Io(error)) = settled {
            state.degrade(&error);
            // In memory nothing can fail.
            let _ = self.try_settle(scope, state);
        }
    }

    fn try_settle(&self, scope: Scope, state: &mut State) -> Result<(), Fault> {
        state.store.lock(Patience::Loop)?;
        let result = self.settle_locked(scope, state);
        state.store.unlock();
        result
    }

    fn settle_locked(&self, scope: Scope, state: &mut State) -> Result<(), Fault> {
        let before = state.store.board()?;
        let mut board = before.clone();
        let mut ledgers = self.ledgers();
        let ledger = &mut ledgers[scope as usize];
        ledger.apply(&self.id, &mut board);
        if board != *before {
            state.store.put_board(board)?;
        }
        ledger.settled();
        Ok(())
    }

    /// Removes every trace. If the board is busy, the proof that we live is gone all the same.
    fn leave(&self, scope: Scope) {
        let mut state = self.limits.place(scope).enter();
        if !state.store.is_proved(&self.id) {
            return;
        }
        if state.store.lock(Patience::Loop).is_ok() {
            let board = state.store.board().cloned().unwrap_or_default();
            if board.members.contains_key(&self.id) {
                let mut left = board;
                left.remove(&self.id);
                let _ = state.store.put_board(left);
            }
            state.store.forget(&self.id);
            state.store.unlock();
        } else {
            state.store.forget(&self.id);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        for scope in Scope::ALL {
            self.leave(scope);
        }
    }
}

impl Ledger {
    pub fn apply(&self, member: &str, board: &mut super::board::Board) {
        for (pool, units) in &self.owed {
            board.give(member, pool, *units);
        }
        if self.withdraws {
            board.withdraw(member);
        }
    }

    /// Puts back what was taken out and is not on the board.
    pub fn merge(&mut self, other: Ledger) {
        for (pool, units) in other.owed {
            let owed = self.owed.entry(pool).or_default();
            *owed = owed.saturating_add(units);
        }
        self.withdraws |= other.withdraws;
        self.waits |= other.waits;
    }

    /// The board knows.
    pub fn settled(&mut self) {
        self.owed.clear();
        if self.withdraws {
            (self.withdraws, self.waits) = (false, false);
        }
    }
}
