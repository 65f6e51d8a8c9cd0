//! Results that are gone from the disk: who made one makes it again, and all others keep what they have until it is
//! known to be another one.
//!
//! ```text
//! Succeeded -- step.lost --> Pending -> ... -> Succeeded, equal: nothing else happens
//!                                                        another: what depends on it is prepared again, by its key
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::digest::Digest;
use crate::event::{Payload, StepLost};
use crate::run::step::{Children, Output, State};
use crate::run::{FoldError, Run, StepId};

/// Steps that make a lost result again, and those around them.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// What each of them gave before.
    before: BTreeMap<StepId, Digest>,
    /// Those that gave something else now.
    changed: BTreeSet<StepId>,
    /// What comes after each maker, near or far: it begins nothing before the result is there again.
    behind: BTreeMap<StepId, HashSet<StepId>>,
    /// Steps that would be ready if they were not behind.
    waiting: BTreeSet<StepId>,
}

impl Run {
    /// Steps that made what is kept under a digest: their result, or what they were expanded to.
    pub fn makers_of(&self, digest: &Digest) -> Vec<StepId> {
        let is_it = |payload: &Payload| payload.is_blob() && payload.sha == *digest;
        let made = |id: StepId| {
            let step = self.step(id);
            let result = match step.output.as_deref() {
                Some(Output::Leaf { result, full, .. }) => is_it(result) || full.as_ref().is_some_and(is_it),
                Some(Output::Whole { result, .. }) => is_it(result),
                _ => false,
            };
            result
                || match step.children.as_deref() {
                    Some(Children::Items { items, .. }) => is_it(items),
                    Some(Children::Scope(scope)) => self.scope(*scope).inputs.as_ref().is_some_and(is_it),
                    Some(Children::Calls(_)) | None => false,
                }
        };
        let again = |id: &StepId| matches!(self.step(*id).state, State::Succeeded | State::Open { .. });
        self.step_ids().filter(again).filter(|&id| self.is_newest(id) && made(id)).collect()
    }

    /// Steps of the run's own plan that run again with a step or a phase: it and everything after it.
    pub fn followers(&self, from: &str) -> HashSet<String> {
        let top = |id: StepId| {
            let mut id = id;
            while let Some(holder) = self.holder(id) {
                id = holder;
            }
            self.scopes[0].plan.steps[self.step(id).plan_step as usize].path.to_string()
        };
        let mut queue = match self.find_phase(from) {
            Some(phase) => self.phase(phase).members.clone(),
            None => self.find(from).into_iter().collect(),
        };
        let mut seen: HashSet<StepId> = HashSet::new();
        while let Some(id) = queue.pop() {
            if seen.insert(id) {
                queue.extend(self.after(id));
                queue.extend(self.holder(id));
            }
        }
        seen.into_iter().map(top).collect()
    }

    /// Not of a round that another one has followed: nobody would wait for it.
    pub(super) fn is_newest(&self, id: StepId) -> bool {
        let step = self.step(id);
        let newest = step.item.is_some() || self.scope(step.scope).steps[step.plan_step as usize] == id;
        newest && self.holder(id).is_none_or(|holder| self.is_newest(holder))
    }

    pub(super) fn lost(&mut self, event: &StepLost, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.lost", &event.step)?;
        if !matches!(self.step(id).state, State::Succeeded | State::Open { .. }) || !self.is_newest(id) {
            return Err(self.misfit("step.lost", id));
        }
        let mut around = Some(id);
        while let Some(step) = around {
            self.remember(step);
            around = self.holder(step);
        }
        self.begin_again(id, now);
        Ok(())
    }

    /// The step runs once more inside of all that holds it. What comes after it keeps what it has, and begins nothing
    /// new before this has ended.
    pub(super) fn begin_again(&mut self, id: StepId, now: u64) {
        let mut around = self.holder(id);
        while let Some(holder) = around {
            self.reset(holder);
            around = self.holder(holder);
        }
        let behind = self.comes_after(id);
        self.again.behind.insert(id, behind);
        self.forget_kept(id);
        if let Some(key) = self.step(id).key {
            self.memo.remove(&key);
        }
        self.take_back(id);
        self.step_mut(id).fresh = true;
        self.reset(id);
        self.relink(now);
        // It has had its effects: where a person decides about lost attempts, a person decides about this one.
        let asks = self.operation(id).on_unknown.asks(self.step(id).repeatable);
        if asks && self.holds_slot(id) && matches!(self.step(id).state, State::Ready) {
            self.step_mut(id).unknown = true;
            self.transition(id, State::Unknown);
        }
    }

    /// Everything after a step and after what it is a part of.
    fn comes_after(&self, id: StepId) -> HashSet<StepId> {
        let (mut queue, mut around) = (self.after(id), self.holder(id));
        while let Some(holder) = around {
            queue.extend(self.after(holder));
            around = self.holder(holder);
        }
        let mut seen = HashSet::new();
        while let Some(id) = queue.pop() {
            if seen.insert(id) {
                queue.extend(self.after(id));
            }
        }
        seen
    }

    /// Whether it comes after a result that is being made again: then it waits, and is remembered.
    pub(super) fn waits_behind(&mut self, id: StepId) -> bool {
        if self.again.behind.is_empty() {
            return false;
        }
        let mut at = Some(id);
        while let Some(step) = at {
            if self.again.behind.values().any(|behind| behind.contains(&step)) {
                self.again.waiting.insert(id);
                return true;
            }
            at = self.holder(step);
        }
        false
    }

    /// All waits are drawn anew. What a script has asked for it does not ask for again.
    pub(super) fn forget_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.again.waiting);
        waiting.retain(|&id| self.step(id).call.is_some());
        self.again.waiting = waiting;
    }

    fn remember(&mut self, id: StepId) {
        if let Some(output) = self.step(id).output.clone() {
            self.again.before.entry(id).or_insert(output.sha());
        }
    }

    /// A step has settled: if it made something again, whether that is another result.
    pub(super) fn made_again(&mut self, id: StepId) {
        if self.again.behind.remove(&id).is_some() {
            self.release();
        }
        if self.again.before.is_empty() || !self.step(id).state.ok() {
            return;
        }
        let now = self.step(id).output.as_ref().map_or_else(Output::none, |output| output.sha());
        if self.again.before.remove(&id).is_some_and(|before| before != now) {
            self.again.changed.insert(id);
        }
    }

    /// Whoever waited for a result and has nothing else to wait for is ready, whatever became of it.
    fn release(&mut self) {
        for id in std::mem::take(&mut self.again.waiting) {
            if matches!(self.step(id).state, State::Pending) && !self.step(id).gone {
                self.transition(id, State::Ready);
            }
        }
    }

    /// What depends on another result than before is prepared again. What is at work keeps what it was given.
    pub(super) fn follow_changes(&mut self, now: u64) {
        if self.again.changed.is_empty() {
            return;
        }
        let changed = std::mem::take(&mut self.again.changed);
        let mut queue: Vec<StepId> = changed.iter().flat_map(|&id| self.after(id)).collect();
        let mut seen: HashSet<StepId> = HashSet::new();
        while let Some(id) = queue.pop() {
            if seen.insert(id) {
                queue.extend(self.after(id));
                queue.extend(self.children(id));
            }
        }
        let mut steps: Vec<StepId> = seen.into_iter().filter(|&id| !self.works(id)).collect();
        steps.sort_unstable();
        for id in steps {
            if !self.step(id).gone && !matches!(self.step(id).state, State::Pending | State::Ready) {
                self.take_back(id);
                self.reset(id);
            }
        }
        self.relink(now);
    }
}
