//! Taking over what was finished and is told by no record before: from a checkpoint, when the journal is gone, or
//! from the records after a damaged one.
//!
//! Results by key are memory: whatever comes to have the key takes the result, so a step that follows from something
//! else now runs again. Results of whole phases come without keys; their steps are done.

use std::sync::Arc;

use crate::event::{KeptResult, RunImported};
use crate::run::step::{Output, State};
use crate::run::{HashMap, Run, StepId};

impl Run {
    pub(super) fn imported(&mut self, event: &RunImported, now: u64) {
        self.measure_lost(event.lost);
        self.been(event);
        for KeptResult { key, step, result, full, artifacts, changed } in event.results.clone() {
            self.memo.insert(key, Arc::new(Output::Leaf { result, full, artifacts, changed, aside: None }));
            self.kept.extend(step.clone().map(|step| (step, key)));
            if let Some(id) = step.and_then(|step| self.find(&step)) {
                self.step_mut(id).fresh = false;
                if !self.step(id).state.settled() {
                    self.step_mut(id).key = Some(key);
                }
            }
        }
        self.end_attempts(event, now);
        let mut checks = Vec::new();
        for (phase, results) in &event.phases {
            for (operation, payload) in results {
                let path = format!("{phase}/{operation}");
                let Some(id) = self.find(&path) else {
                    continue;
                };
                if self.step(id).state.settled() {
                    continue;
                }
                self.step_mut(id).reused = true;
                self.tally.reused += 1;
                let standing = event.standing.get(&path).copied().unwrap_or_default();
                let (result, changed) = (payload.clone(), standing.changed);
                let output = match event.digests.get(&path) {
                    Some(&sha) => Output::Whole { result, sha },
                    None => Output::Leaf { result, full: None, artifacts: Vec::new(), changed, aside: None },
                };
                self.step_mut(id).degraded |= standing.degraded || standing.checks;
                self.take_over(id, Arc::new(output), now);
                if standing.checks {
                    self.unconfirmed(id);
                }
                checks.extend(self.operation(id).is_check().then_some(id));
            }
        }
        // What they have seen is not known any more: they are made again, and what comes after them waits.
        for id in checks {
            self.unreuse(id);
            self.begin_again(id, now);
        }
        // What goes on from somewhere has steps that were counted before.
        if self.tally.opened > 0 {
            self.relink(now);
        }
        self.begun_before(event);
    }

    /// They may have had their effects: where a person decides about lost attempts, a person decides about these.
    fn begun_before(&mut self, event: &RunImported) {
        for (path, repeatable) in &event.begun {
            let Some(id) = self.find(path).filter(|&id| self.holds_slot(id)) else { continue };
            if matches!(self.step(id).state, State::Pending | State::Ready) {
                (self.step_mut(id).unknown, self.step_mut(id).repeatable) = (true, *repeatable);
            }
            if matches!(self.step(id).state, State::Ready) {
                self.transition(id, State::Ready);
            }
        }
    }

    /// Attempts whose end was told after the damage.
    fn end_attempts(&mut self, event: &RunImported, now: u64) {
        let running = |id: &StepId| matches!(self.step(*id).state, State::Running(_));
        let by_key: HashMap<_, StepId> = self
            .step_ids()
            .filter(running)
            .filter_map(|id| Some((self.step(id).key.filter(|_| !self.stands_in(id))?, id)))
            .collect();
        if by_key.is_empty() {
            return;
        }
        for kept in &event.results {
            if let (Some(&id), Some(output)) = (by_key.get(&kept.key), self.memo.get(&kept.key).cloned()) {
                self.take_over(id, output, now);
            }
        }
    }

    /// What a step gave that is part of another one whose result was taken over as a whole: the run has no such step.
    pub fn kept_output(&self, path: &str) -> Option<&Arc<Output>> {
        self.memo.get(self.kept.get(path)?)
    }

    fn keep_parts(&mut self, id: StepId) {
        let mut queue = self.children(id);
        while let Some(part) = queue.pop() {
            let step = self.step(part);
            if let (None, true, Some(key)) = (&step.children, step.state.ok(), step.key) {
                self.kept.insert(step.path.clone(), key);
            }
            queue.extend(self.children(part));
        }
    }

    fn take_over(&mut self, id: StepId, output: Arc<Output>, now: u64) {
        self.settle_cut(id);
        if self.step(id).children.is_some() {
            self.keep_parts(id);
            self.take_back(id);
        }
        self.succeeded(id, output, now);
    }
}
