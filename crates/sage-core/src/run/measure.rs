//! What is measured along the way, for people: time that counts, what filters saved, what resumes kept.
//!
//! ```text
//! active    |-------|     |------|          |------|  |--|     see `active_time`
//! attempts    a==          b===                c==             alone: without what others cost them
//!              d====                                           between: neither an attempt nor a wait
//! ```
//! Nothing is decided from these figures.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::event::{Crowded, Estimate, Event, StepFinished};
use crate::policy::FailureClass;
use crate::run::{Judgement, PhaseId, Run, State, Status, StepId};

#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Tokens that filters kept out of the next prompt: once per result, whoever reads it.
    pub saved_by_filter: u64,
    /// Attempts that told no usage and were counted by us, and what was counted.
    pub estimated_attempts: u32,
    pub estimate: Estimate,
    /// Owned time in which nothing worked and nothing could.
    pub waited_ms: u64,
    /// Owned time in which no attempt was under way although one could have been: the orchestration's own.
    pub between_ms: u64,
    /// When the last pause before a retry is over.
    pub retry_at_ms: u64,
    /// Of `Tally::sequential_ms`: attempts of which nobody knows what they lost by others.
    pub unmeasured_ms: u64,
    pub resumes: u32,
    /// Finished steps that resumes found, and those of them that ran again all the same.
    pub found: u32,
    pub lost: u32,
    /// Those that the last resume found.
    kept: HashSet<Arc<str>>,
    /// When the last opening of each target's breaker ends.
    pub(super) openings: BTreeMap<String, u64>,
}

/// Of a phase and all that is inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    pub errors: u32,
    pub timeouts: u32,
    pub reloads: u32,
    pub tokens_saved: u64,
    pub cache_hits: u32,
    pub cache_misses: u32,
    /// What its attempts lost by others that ran at the same time.
    pub lost_ms: u64,
}

impl Run {
    /// The share of finished steps that resumes did not have to run again; nothing if there was no resume.
    pub fn resume_success(&self) -> Option<f64> {
        let Measured { resumes, found, lost, .. } = self.tally.measured;
        (resumes > 0).then(|| if found == 0 { 1.0 } else { 1.0 - f64::from(lost) / f64::from(found) })
    }

    /// The time since the last event, if all of it was waiting. Between two owners there is no such time.
    pub(super) fn measure_wait(&mut self, event: &Event, now: u64) {
        use Event::{RunAdopted, RunEdited, RunForked, RunOpened, RunRewound, StepRechecked};
        let between = matches!(
            event,
            RunOpened(_) | RunEdited(_) | RunRewound(_) | RunForked(_) | RunAdopted(_) | StepRechecked(_)
        );
        if between {
            return;
        }
        let passed = now.saturating_sub(self.updated_ms);
        if self.only_waits() {
            self.tally.measured.waited_ms += passed;
        } else if self.active.slots + self.active.sleeping == 0 {
            // The pause before a retry is nobody's work.
            let since = self.updated_ms.max(self.tally.measured.retry_at_ms);
            self.tally.measured.between_ms += now.saturating_sub(since);
        }
    }

    /// An attempt took so long; alone it would have taken less.
    pub(super) fn measure_time(&mut self, id: StepId, ms: u64, crowded: Option<Crowded>) {
        let lost_ms = match crowded {
            Some(Crowded::LostMs(lost)) => lost.min(ms),
            _ => 0,
        };
        self.tally.sequential_ms += ms - lost_ms;
        if crowded == Some(Crowded::Unknown) {
            self.tally.measured.unmeasured_ms += ms;
        }
        self.count_around(id, |counts| counts.lost_ms += lost_ms);
    }

    /// Nothing works, and nothing could without a person or a target that is closed.
    pub(super) fn only_waits(&self) -> bool {
        let active = &self.active;
        if active.slots > self.asking_steps() || active.sleeping + active.backoff > 0 {
            return false;
        }
        let paused = matches!(self.status, Status::Paused { .. });
        let asks = active.asking + active.unknown > 0 || !self.asks.is_empty();
        paused || (asks && self.ready_count() == 0)
    }

    pub(super) fn measure_end(&mut self, id: StepId, event: &StepFinished) {
        if let Some(estimate) = event.estimate.filter(|_| event.usage.is_empty()) {
            let measured = &mut self.tally.measured;
            measured.estimated_attempts += 1;
            measured.estimate.input += estimate.input;
            measured.estimate.output += estimate.output;
        }
        if let Some(filtered) = event.filtered {
            let saved = filtered.tokens_saved();
            self.tally.measured.saved_by_filter += saved;
            self.count_around(id, |counts| counts.tokens_saved += saved);
        }
    }

    /// A new owner goes on: what is finished now shall not run again.
    pub(super) fn measure_resume(&mut self) {
        let leaf = |step: &&super::Step| step.children.is_none() && matches!(step.state, State::Succeeded);
        let kept: HashSet<Arc<str>> = self.live_steps().filter(leaf).map(|step| step.path.clone()).collect();
        let measured = &mut self.tally.measured;
        measured.resumes += 1;
        measured.found += kept.len() as u32;
        measured.kept = kept;
    }

    /// Finished steps whose results are gone with a journal.
    pub(super) fn measure_lost(&mut self, steps: u32) {
        self.tally.measured.found += steps;
        self.tally.measured.lost += steps;
    }

    pub(super) fn measure_start(&mut self, id: StepId) {
        let path = self.step(id).path.clone();
        let again = self.tally.measured.kept.remove(&path);
        self.tally.measured.lost += u32::from(again);
    }

    /// It shall run again because somebody wants it to.
    pub(super) fn forget_kept(&mut self, id: StepId) {
        let path = self.step(id).path.clone();
        self.tally.measured.kept.remove(&path);
    }

    pub(super) fn count_failure(&mut self, id: StepId, class: FailureClass) {
        let timeouts = u32::from(class == FailureClass::Timeout);
        let errors = match class {
            FailureClass::RateLimit | FailureClass::Quota => {
                self.tally.refused += 1;
                0
            }
            FailureClass::Budget | FailureClass::System => 0,
            _ => 1,
        };
        self.tally.errors += errors;
        self.tally.timeouts += timeouts;
        self.count_around(id, |counts| {
            counts.errors += errors;
            counts.timeouts += timeouts;
        });
    }

    /// In the step's phase, and in the phases of all that hold it.
    pub(super) fn count_around(&mut self, id: StepId, count: impl Fn(&mut PhaseCounts)) {
        let mut at = Some(id);
        while let Some(id) = at {
            let phase = self.step(id).phase;
            // An item and its fan-out are in the same phase.
            if self.step(id).item.is_none() {
                count(&mut self.phase_mut(phase).counts);
            }
            at = self.holder(id);
        }
    }

    /// A phase has come to its end; told to whoever looks after this event.
    pub(super) fn mark_judged(&mut self, id: PhaseId, judgement: Judgement, now: u64) {
        let active_ms = self.active_ms();
        let phase = self.phase_mut(id);
        phase.judged = Some(judgement);
        phase.time.stop(active_ms);
        if phase.judged_ms == 0 {
            phase.judged_ms = now;
        }
        self.judged_now.push(id);
    }

    /// Phases that the last event brought to their end: the fold derives it, so no event says so.
    pub fn judged_now(&self) -> &[PhaseId] {
        &self.judged_now
    }
}
