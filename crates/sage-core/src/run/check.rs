//! Checks: steps whose result must say `passed: true` (`expect: {passed: true}`).
//!
//! ```text
//! passed: true -> succeeded     passed: false -> failed     anything else -> unknown
//! unknown: `resume` makes the check again, `approve` goes on without it (degraded), `reject` fails it
//! ```
//! A check that was not made is never a pass, and what depends on it does not start. One that passed holds for the
//! files that it has seen: when they are others, it is made again. One that failed is part of the verdict, whoever
//! goes on without it: a race, a script that caught it.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::digest::Digest;
use crate::event::{Payload, StepAnswered, StepRechecked};
use crate::plan::Plan;
use crate::policy::FailureClass;
use crate::run::step::{Children, Failure, Output, State};
use crate::run::{FoldError, Run, StepId};
use crate::template::{Isolation, Kind, Operation};

impl Operation {
    /// A switch of `expect`.
    pub fn expects(&self, name: &str) -> Option<bool> {
        self.expect.as_ref()?.get(name)?.as_bool()
    }

    /// Its result says whether something passed.
    pub fn is_check(&self) -> bool {
        self.expects("passed") == Some(true)
    }

    /// That it succeeds says something about the project's files: by its result, or by a command that is expected to
    /// pass. In a worktree it says something about that.
    pub fn checks_project(&self) -> bool {
        let command = self.expect.as_ref().and_then(|expect| expect.get("command"));
        (self.is_check() || command.is_some_and(|command| command.is_string()))
            && self.isolation == Isolation::None
    }
}

/// What a check says that found nothing to check.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Absent {
    applies: Option<bool>,
    /// A person said that there is nothing.
    declined: bool,
}

impl Run {
    /// Whether a check can be among its steps; the calls of code are not known before.
    pub fn may_check(&self) -> bool {
        let checks = |plan: &Plan| {
            let mut operations = plan.template.phases.iter().flat_map(|phase| &phase.operations);
            operations.any(|operation| operation.is_check() || operation.kind == Kind::Script)
        };
        checks(self.plan()) || self.plans.values().any(|plan| checks(plan))
    }

    /// Checks that have seen other files than `now`, and after which nothing was implemented.
    pub fn stale_checks(&self, now: Digest) -> Vec<StepId> {
        let stale = |id: &StepId| {
            let step = self.step(*id);
            let looked = step.checked.as_ref().and_then(|checked| checked.looked);
            step.state.ok() && !step.degraded && looked.is_some_and(|looked| looked != now)
        };
        let stale = self.step_ids().filter(stale);
        stale.filter(|&id| self.is_newest(id) && !self.built_upon(id)).collect()
    }

    /// Whether a check has noted what it has seen.
    pub fn has_looked(&self) -> bool {
        self.live_steps().any(|step| step.checked.as_ref().is_some_and(|checked| checked.looked.is_some()))
    }

    /// Whether the run waited for something after a check had passed, or an agent worked: the files may have changed.
    pub fn went_on_after_check(&self) -> bool {
        let waited_ms = self.tally.measured.waited_ms;
        let works = |id: &StepId| {
            self.kind(*id) == Kind::Sleep || self.kind(*id) == Kind::Agent && !self.operation(*id).is_check()
        };
        let last_work =
            self.step_ids().filter(works).map(|id| self.step(id).ended_ms).max().unwrap_or_default();
        self.live_steps().any(|step| {
            let looked = step.checked.as_deref().filter(|checked| checked.looked.is_some());
            looked.is_some_and(|checked| checked.waited_ms < waited_ms || step.ended_ms < last_work)
        })
    }

    fn built_upon(&self, id: StepId) -> bool {
        let (mut queue, mut seen, mut at) = (Vec::new(), HashSet::new(), Some(id));
        while let Some(id) = at {
            queue.extend(self.after(id));
            queue.extend(self.later_calls(id));
            at = self.holder(id);
        }
        while let Some(id) = queue.pop() {
            if seen.insert(id) {
                if self.implemented(id) {
                    return true;
                }
                queue.extend(self.after(id));
                queue.extend(self.children(id));
            }
        }
        false
    }

    /// It changed files, as far as that is known.
    fn implemented(&self, id: StepId) -> bool {
        let step = self.step(id);
        let changed = step.output.as_ref().and_then(|output| output.changed());
        self.operation(id).implements() && matches!(step.state, State::Succeeded) && changed != Some(false)
    }

    /// Calls that a script made after it knew the end of this one.
    fn later_calls(&self, id: StepId) -> Vec<StepId> {
        let step = self.step(id);
        let (Some(call), Some((script, _))) = (&step.call, step.item) else { return Vec::new() };
        let Some(end) = call.first_end else { return Vec::new() };
        let later = |id: &StepId| self.step(*id).call.as_ref().is_some_and(|call| call.after > end);
        self.calls(script).map_or_else(Vec::new, |calls| calls.steps.iter().copied().filter(later).collect())
    }

    pub(super) fn looked(&mut self, id: StepId, looked: Option<Digest>) {
        let waited_ms = self.tally.measured.waited_ms;
        let checked = |looked| Box::new(super::Checked { looked: Some(looked), waited_ms, kept: None });
        self.step_mut(id).checked = looked.map(checked);
    }

    pub(super) fn rechecked(&mut self, event: &StepRechecked, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.rechecked", &event.step)?;
        let ended = self.step(id).state.ok() && self.step(id).children.is_none();
        if !ended || !self.is_newest(id) {
            return Err(self.misfit("step.rechecked", id));
        }
        // What only a command checks need not be done again.
        let kept = self.step(id).output.clone().filter(|_| !self.operation(id).is_check());
        self.unreuse(id);
        self.begin_again(id, now);
        self.step_mut(id).checked =
            kept.map(|kept| Box::new(super::Checked { kept: Some(kept), ..super::Checked::default() }));
        Ok(())
    }

    /// A step that is about to run again was not reused.
    pub(super) fn unreuse(&mut self, id: StepId) {
        self.tally.reused -= u32::from(self.step(id).reused && self.tally.reused > 0);
        self.step_mut(id).reused = false;
    }

    /// Whether checks are among the steps that it is made of.
    pub fn holds_checks(&self, id: StepId) -> bool {
        let parts = self.children(id);
        let alike = matches!(self.step(id).children.as_deref(), Some(Children::Items { .. }));
        let parts = parts.into_iter().take(if alike { 1 } else { usize::MAX });
        parts.into_iter().any(|part| self.operation(part).is_check() || self.holds_checks(part))
    }

    /// Its parts, with the checks among them, are gone: only their result is known.
    pub(super) fn unconfirmed(&mut self, id: StepId) {
        let failure = Failure::new(FailureClass::Unchecked, "its checks are not known: the journal was lost");
        self.step_mut(id).failure = Some(Box::new(failure));
    }

    /// Checks of the last round that did not pass: failed ones, and those that nobody waited for. A script that makes
    /// the same check again, and sees it pass, has mended what was wrong.
    pub fn unmet_checks(&self) -> Vec<StepId> {
        self.step_ids().filter(|&id| self.is_unmet(id)).collect()
    }

    fn is_unmet(&self, id: StepId) -> bool {
        let step = self.step(id);
        let unmet = step.children.is_none() && step.state.settled() && !step.state.ok();
        let checks = self.operation(id).is_check() || self.command_failed(id);
        if !unmet || !checks || !self.is_newest(id) || self.is_superseded(id) {
            return false;
        }
        let only_stopped = matches!(step.state, State::Cancelled) && step.failure.is_none();
        !only_stopped || !self.was_outrun(id)
    }

    /// The project did not keep what a step expects of it (`expect: {command}`).
    fn command_failed(&self, id: StepId) -> bool {
        let invalid = |failure: &Failure| failure.class == FailureClass::Invalid;
        self.operation(id).checks_project() && self.step(id).failure.as_deref().is_some_and(invalid)
    }

    /// Another check of its kind was faster, and passed.
    fn was_outrun(&self, id: StepId) -> bool {
        let others = match self.holder(id).filter(|_| self.step(id).item.is_some()) {
            Some(holder) => self.children(holder),
            None => self.phase(self.step(id).phase).members.clone(),
        };
        let kind = &self.operation(id).type_name;
        others.into_iter().any(|other| {
            let passed = matches!(self.step(other).state, State::Succeeded) && !self.step(other).degraded;
            passed && self.operation(other).is_check() && self.operation(other).type_name == *kind
        })
    }

    /// Whether a check in here did not pass.
    pub(super) fn holds_unmet(&self, id: StepId) -> bool {
        self.is_unmet(id) || self.children(id).into_iter().any(|child| self.holds_unmet(child))
    }

    fn is_superseded(&self, id: StepId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            let step = self.step(id);
            if let (Some(call), Some((script, number))) = (&step.call, step.item) {
                let same = |other: &StepId| {
                    let other = self.step(*other);
                    let equal = other.call.as_ref().is_some_and(|other| other.identity == call.identity);
                    equal && other.state.ok() && other.item.is_some_and(|(_, later)| later > number)
                };
                if self.calls(script).is_some_and(|calls| calls.steps.iter().any(same)) {
                    return true;
                }
            }
            at = self.holder(id);
        }
        false
    }

    /// Something was to be changed, and all checks found nothing that they could check.
    pub fn checked_nothing(&self) -> bool {
        let steps = || self.step_ids().filter(|&id| self.is_newest(id));
        let implemented =
            |id: StepId| self.operation(id).implements() && matches!(self.step(id).state, State::Succeeded);
        let mut found_nothing = false;
        for id in steps().filter(|&id| self.operation(id).is_check()) {
            let step = self.step(id);
            match (&step.state, step.children.as_deref()) {
                (_, Some(Children::Items { steps, .. })) => found_nothing |= steps.is_empty(),
                (_, Some(_)) => {}
                (State::Skipped, None) => found_nothing |= self.found_nothing(id),
                _ => return false,
            }
        }
        found_nothing && steps().any(implemented)
    }

    /// Not because a condition said so, and not because a person did.
    fn found_nothing(&self, id: StepId) -> bool {
        let Some(Output::Leaf { result, .. }) = self.step(id).output.as_deref() else { return false };
        let said = result.json.as_ref().and_then(|json| serde_json::from_str::<Absent>(json.get()).ok());
        said.is_some_and(|said| said.applies == Some(false) && !said.declined)
    }

    /// Waits for a person because its check could not be made.
    pub fn is_unchecked(&self, id: StepId) -> bool {
        let step = self.step(id);
        let unchecked = |failure: &Failure| failure.class == FailureClass::Unchecked;
        matches!(step.state, State::Unknown) && step.failure.as_deref().is_some_and(unchecked)
    }

    pub(super) fn unchecked(&mut self, id: StepId, message: &str, partial: Option<&Payload>) {
        let failure = Failure { partial: partial.cloned(), ..Failure::new(FailureClass::Unchecked, message) };
        let step = self.step_mut(id);
        step.unknown = false;
        step.failure = Some(Box::new(failure));
        self.transition(id, State::Unknown);
    }

    /// A person takes the run on although the check was not made. Its result still says that it was not.
    pub(super) fn go_without(&mut self, id: StepId, event: &StepAnswered, now: u64) {
        let partial = self.step(id).failure.as_ref().and_then(|failure| failure.partial.clone());
        let step = self.step_mut(id);
        step.output = Some(Arc::new(Output::leaf(partial.unwrap_or_else(|| event.result.clone()))));
        step.degraded = true;
        self.settle(id, State::Succeeded, now);
    }
}
