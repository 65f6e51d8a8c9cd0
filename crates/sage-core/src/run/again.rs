//! Scripts and workflows that try again, calls that follow from one that shall run again, handled failures.
//!
//! ```text
//! Open -> all in it has ended, failed -> tries left? -> Retry -> step.retried -> Open, its failed steps pending
//!                                        none?       -> Failed
//! ```
//! What was finished in there is kept, as it is when a person resumes the run.

use crate::event::{End, StepRetried};
use crate::policy::FailureClass;
use crate::run::step::{Children, Failure, State};
use crate::run::{FoldError, Run, StepId};

impl Run {
    /// Whether somebody must say if, and when, it tries again.
    pub fn wants_retry(&self, id: StepId) -> bool {
        self.to_retry.contains(&id)
    }

    /// Whether it failed, and a script around it has come to its result all the same.
    pub fn is_handled(&self, id: StepId) -> bool {
        let mut at = Some(id).filter(|&id| matches!(self.step(id).state, State::Failed));
        while let Some(id) = at {
            at = self.holder(id);
            let script = at.filter(|_| self.step(id).call.is_some()).map(|script| self.step(script));
            if script.is_some_and(|script| script.state.ok() && !script.degraded) {
                return true;
            }
        }
        false
    }

    /// Whether it did not succeed in a round of its phase, and the newest round lacks nothing.
    pub fn is_replaced(&self, id: StepId) -> bool {
        if self.step(id).state.ok() || !self.step(id).state.settled() {
            return false;
        }
        let mut at = Some(id);
        while let Some(id) = at {
            let own = self.step(id).phase;
            let phase = self.phase(own);
            let newest = self.scope(phase.scope).phases[phase.plan_phase as usize];
            if newest != own && self.phase(newest).judged == Some(super::Judgement::Reached) {
                return true;
            }
            at = self.holder(id);
        }
        false
    }

    /// Whether it did not succeed and nothing lacks for it: a race was won by others, a script handled it, or a later
    /// round of its phase replaced it. What made something degraded is not among these.
    pub fn succeeded_without(&self, id: StepId) -> bool {
        if self.step(id).state.ok() || !self.step(id).state.settled() {
            return false;
        }
        if self.is_replaced(id) {
            return true;
        }
        let mut at = Some(id);
        while let Some(id) = at {
            if self.phase(self.step(id).phase).judged == Some(super::Judgement::Reached) {
                return true;
            }
            at = self.holder(id);
            let holder = at.map(|holder| self.step(holder));
            if holder.is_some_and(|holder| holder.state.ok() && !holder.degraded) {
                return true;
            }
        }
        false
    }

    /// Whether a step is a part of another one, at whatever depth.
    pub fn is_inside(&self, id: StepId, holder: StepId) -> bool {
        let mut at = self.holder(id);
        while let Some(id) = at.filter(|&id| id != holder) {
            at = self.holder(id);
        }
        at.is_some()
    }

    /// It failed with tries left: it stays open until somebody has decided.
    pub(super) fn may_retry(&mut self, id: StepId, class: FailureClass) -> bool {
        // Journals of the first version know nothing of it.
        let retry = &self.operation(id).retry;
        let more = self.core >= 2 && retry.covers(class) && self.step(id).tries + 1 < retry.attempts;
        if more {
            self.to_retry.insert(id);
        }
        more
    }

    pub(super) fn tried_again(&mut self, id: StepId, event: &StepRetried, now: u64) -> Result<(), FoldError> {
        if !self.to_retry.contains(&id) {
            return Err(self.misfit("step.retried", id));
        }
        self.count_failure(id, event.class);
        self.tally.retries += 1;
        self.script_again(id);
        let step = self.step_mut(id);
        step.failure = None;
        step.degraded = false;
        step.tries += 1;
        step.life_ms += event.ms;
        self.transition(id, State::Open { left: 0, failed: 0, cancelling: false });
        for step in self.failed_below(id) {
            self.reset(step);
        }
        self.relink(now);
        Ok(())
    }

    /// What failed, or was given up because something did. What still works is left alone.
    fn failed_below(&self, id: StepId) -> Vec<StepId> {
        let (mut queue, mut found) = (self.children(id), Vec::new());
        while let Some(id) = queue.pop() {
            let failed = matches!(self.step(id).state, State::Failed | State::Cancelled | State::Blocked);
            if failed && !self.concluded(id) {
                found.push(id);
                queue.extend(self.children(id));
            }
        }
        found.sort_unstable();
        found
    }

    /// A workflow that takes too long, or one that may not try again after all.
    pub(super) fn given_up(&mut self, id: StepId, end: &End, now: u64) -> Result<(), FoldError> {
        let workflow = matches!(self.step(id).children.as_deref(), Some(Children::Scope(_)));
        let (End::Failed { class, message, partial }, true) = (end, workflow || self.wants_retry(id)) else {
            return Err(self.misfit("step.returned", id));
        };
        let failure = Failure { partial: partial.clone(), ..Failure::new(*class, message.clone()) };
        self.step_mut(id).failure = Some(Box::new(failure));
        let mut queue = Vec::new();
        if self.wants_retry(id) {
            self.close(id, State::Failed, &mut queue, now);
        } else {
            self.cancel_children(id, &mut queue, now);
        }
        self.drain(queue, now);
        Ok(())
    }

    /// Calls that their script made after it had been told the end of this one. It may have made them because of
    /// what it was told, and says its lines from there on again.
    pub(super) fn called_after(&mut self, id: StepId) -> Vec<StepId> {
        let step = self.step(id);
        let (Some(call), Some((script, number))) = (&step.call, step.item) else { return Vec::new() };
        let Some(end) = call.first_end else { return Vec::new() };
        let Some(calls) = self.calls_mut(script) else { return Vec::new() };
        if let Some(last) = calls.ended.iter().find(|ended| ended.number == number) {
            calls.logged = calls.logged.min(last.logged);
        }
        let later = |id: &StepId| self.step(*id).call.as_ref().is_some_and(|call| call.after > end);
        self.calls(script).map_or_else(Vec::new, |calls| calls.steps.iter().copied().filter(later).collect())
    }
}
