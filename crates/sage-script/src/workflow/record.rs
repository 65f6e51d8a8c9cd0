//! The calls of one run of a script: which are known from before, which are new, which has ended next.
//!
//! ```text
//!  call made --(identity, ordinal)--> a record? --> its number; ended already? --> deliverable at its position
//!                                     none?     --> the next free number, said to the engine
//! ```
//! Completions are delivered by their position in the journal, one that no call waits for is skipped: so an
//! unchanged script sees exactly what it saw, `Promise.race` included.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use sage_core::digest::Digest;
use sage_core::port::script::{CallOutcome, NewCall, Recorded, Settled};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Record {
    known: HashMap<(Digest, u32), u32>,
    next_number: u32,
    ordinals: HashMap<Digest, u32>,
    /// Slot of each number whose call was made. A slot is the place of a call in this run of the script.
    slots: HashMap<u32, u32>,
    made: u32,
    /// Everything that has ended, by position; taken when it is delivered.
    settled: Vec<Option<Settled>>,
    positions: HashMap<u32, usize>,
    /// Positions whose call was made and not yet answered.
    ready: BinaryHeap<Reverse<usize>>,
    /// Calls that were made and have not ended.
    waiting: u32,
    new: Vec<NewCall>,
    /// Known calls without an end that were made since somebody last asked.
    again: Vec<u32>,
    /// Where the last call with a known place was made.
    pub last_at: Option<String>,
}

/// A call that was made.
pub(super) struct Made {
    pub slot: u32,
    /// Whether the record has a good answer for it.
    pub answered: bool,
}

impl Record {
    pub fn new(calls: Vec<Recorded>, settled: Vec<Settled>) -> Record {
        let mut record = Record::default();
        for call in calls {
            record.next_number = record.next_number.max(call.number + 1);
            record.known.insert((call.identity, call.ordinal), call.number);
        }
        settled.into_iter().for_each(|settled| record.settle(settled));
        record
    }

    pub fn made(&self) -> u32 {
        self.made
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// A call of the script. An unknown one goes to `new_calls`.
    pub fn call(&mut self, identity: Digest, operation: Value, label: String, group: String) -> Made {
        let count = self.ordinals.entry(identity).or_default();
        let ordinal = *count;
        *count += 1;
        let slot = self.made;
        self.made += 1;
        let number = match self.known.get(&(identity, ordinal)) {
            Some(number) => {
                if !self.positions.contains_key(number) {
                    self.again.push(*number);
                }
                *number
            }
            None => {
                let number = self.next_number;
                self.next_number += 1;
                let group = Some(group).filter(|group| !group.is_empty());
                self.new.push(NewCall { number, identity, ordinal, operation, label, group, at: None });
                number
            }
        };
        self.slots.insert(number, slot);
        let Some(position) = self.positions.get(&number) else {
            self.waiting += 1;
            return Made { slot, answered: false };
        };
        self.ready.push(Reverse(*position));
        let settled = self.settled.get(*position).and_then(Option::as_ref);
        Made { slot, answered: settled.is_some_and(|it| matches!(it.outcome, CallOutcome::Value(_))) }
    }

    /// Where the newest call was made.
    pub fn at(&mut self, at: Option<String>) {
        let newest = self.made.checked_sub(1);
        if let Some(call) = self.new.last_mut().filter(|call| self.slots.get(&call.number).copied() == newest)
        {
            call.at.clone_from(&at);
        }
        self.last_at = at.or(self.last_at.take());
    }

    pub fn new_calls(&mut self) -> (Vec<NewCall>, Vec<u32>) {
        (std::mem::take(&mut self.new), std::mem::take(&mut self.again))
    }

    /// Whether the next call of this identity has a record.
    pub fn is_known(&self, identity: &Digest) -> bool {
        let ordinal = self.ordinals.get(identity).copied().unwrap_or(0);
        self.known.contains_key(&(*identity, ordinal))
    }

    /// Something ended, now or before. What ends twice counts once.
    pub fn settle(&mut self, settled: Settled) {
        let (number, position) = (settled.number, self.settled.len());
        if self.positions.contains_key(&number) {
            return;
        }
        self.positions.insert(number, position);
        self.settled.push(Some(settled));
        if self.slots.contains_key(&number) {
            self.waiting -= 1;
            self.ready.push(Reverse(position));
        }
    }

    /// The next completion to deliver, and the slot of its call.
    pub fn next(&mut self) -> Option<(u32, Settled)> {
        let Reverse(position) = self.ready.pop()?;
        let settled = self.settled.get_mut(position).and_then(Option::take)?;
        let slot = self.slots.get(&settled.number).copied()?;
        Some((slot, settled))
    }
}
