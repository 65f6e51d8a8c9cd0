//! The calls of one run of a script: which are known from before, which are new, which has ended next.
//!
//! ```text
//!  call made --(identity, ordinal)--> a record? --> its number; ended already? --> deliverable at its position
//!                                     none?     --> the next free number, said to the engine
//! ```
//! Completions are delivered by their position in the journal, one that no call waits for is skipped: so an
//! unchanged script sees exactly what it saw, `Promise.race` included.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sage_core::digest::Digest;
use sage_core::port::script::{CallOutcome, NewCall, Recorded, Settled};
use serde_json::Value;

/// Keys are hashes already.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
pub(super) struct Record {
    known: HashMap<(Digest, u32), u32>,
    ordinals: HashMap<Digest, u32>,
    /// What is known of each number, those of earlier turns and new ones.
    numbers: Vec<Number>,
    made: u32,
    /// Everything that has ended, by position; taken when it is delivered.
    settled: Vec<Option<Settled>>,
    /// Positions whose call was made and not yet answered.
    ready: BinaryHeap<Reverse<u32>>,
    /// Calls that were made and have not ended.
    waiting: u32,
    new: Vec<NewCall>,
    /// Known calls without an end that were made since somebody last asked.
    again: Vec<u32>,
    /// Where the last call with a known place was made.
    pub last_at: Option<String>,
}

/// A call by its number in the journal.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    /// Its place among the calls of this run of the script, once it was made.
    slot: Option<u32>,
    /// Its place among those that have ended.
    position: Option<u32>,
}

/// A call that is about to be made.
pub(super) struct Coming {
    identity: Digest,
    ordinal: u32,
    /// If it was made in an earlier turn.
    number: Option<u32>,
}

impl Coming {
    pub fn is_known(&self) -> bool {
        self.number.is_some()
    }
}

/// A call that was made.
pub(super) struct Made {
    pub slot: u32,
    /// Whether the record has a good answer for it.
    pub answered: bool,
}

impl Record {
    pub fn new(calls: Vec<Recorded>, settled: Vec<Settled>) -> Record {
        let mut record = Record {
            known: HashMap::with_capacity_and_hasher(calls.len(), Default::default()),
            ..Record::default()
        };
        for call in calls {
            record.number(call.number);
            record.known.insert((call.identity, call.ordinal), call.number);
        }
        settled.into_iter().for_each(|settled| record.settle(settled));
        record
    }

    fn number(&mut self, number: u32) -> &mut Number {
        let index = number as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, Number::default());
        }
        &mut self.numbers[index]
    }

    pub fn made(&self) -> u32 {
        self.made
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The next call of this identity.
    pub fn coming(&self, identity: Digest) -> Coming {
        let ordinal = self.ordinals.get(&identity).copied().unwrap_or(0);
        Coming { identity, ordinal, number: self.known.get(&(identity, ordinal)).copied() }
    }

    /// A call of the script. An unknown one goes to `new_calls`.
    pub fn call(&mut self, coming: Coming, operation: Value, label: String, group: String) -> Made {
        let Coming { identity, ordinal, number } = coming;
        self.ordinals.insert(identity, ordinal + 1);
        let slot = self.made;
        self.made += 1;
        let number = number.unwrap_or_else(|| {
            let number = self.numbers.len() as u32;
            let group = Some(group).filter(|group| !group.is_empty());
            self.new.push(NewCall { number, identity, ordinal, operation, label, group, at: None });
            number
        });
        let known = self.number(number);
        known.slot = Some(slot);
        let Some(position) = known.position else {
            if self.new.last().is_none_or(|call| call.number != number) {
                self.again.push(number);
            }
            self.waiting += 1;
            return Made { slot, answered: false };
        };
        self.ready.push(Reverse(position));
        let settled = self.settled.get(position as usize).and_then(Option::as_ref);
        Made { slot, answered: settled.is_some_and(|it| matches!(it.outcome, CallOutcome::Value(_))) }
    }

    /// Where the newest call was made.
    pub fn at(&mut self, at: Option<String>) {
        let newest = self.made.checked_sub(1);
        let slot = |call: &NewCall| self.numbers.get(call.number as usize).and_then(|number| number.slot);
        if let Some(call) = self.new.last_mut().filter(|call| slot(call) == newest) {
            call.at.clone_from(&at);
        }
        self.last_at = at.or(self.last_at.take());
    }

    pub fn new_calls(&mut self) -> (Vec<NewCall>, Vec<u32>) {
        (std::mem::take(&mut self.new), std::mem::take(&mut self.again))
    }

    /// Something ended, now or before. What ends twice counts once.
    pub fn settle(&mut self, settled: Settled) {
        let position = self.settled.len() as u32;
        let number = self.number(settled.number);
        if number.position.is_some() {
            return;
        }
        number.position = Some(position);
        let made = number.slot.is_some();
        self.settled.push(Some(settled));
        if made {
            self.waiting -= 1;
            self.ready.push(Reverse(position));
        }
    }

    /// The next completion to deliver, and the slot of its call.
    pub fn next(&mut self) -> Option<(u32, Settled)> {
        let Reverse(position) = self.ready.pop()?;
        let settled = self.settled.get_mut(position as usize).and_then(Option::take)?;
        let slot = self.numbers.get(settled.number as usize)?.slot?;
        Some((slot, settled))
    }
}
