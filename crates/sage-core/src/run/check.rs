//! Checks: steps whose result must say `passed: true` (`expect: {passed: true}`).
//!
//! ```text
//! passed: true -> succeeded     passed: false -> failed     anything else -> unknown
//! unknown: `resume` makes the check again, `approve` goes on without it (degraded), `reject` fails it
//! ```
//! A check that was not made is never a pass, and what depends on it does not start.

use std::collections::HashSet;
use std::sync::Arc;

use crate::event::{Payload, StepAnswered};
use crate::plan::Plan;
use crate::policy::FailureClass;
use crate::run::step::{Failure, Output, State};
use crate::run::{Run, StepId};
use crate::template::{Kind, Operation};

impl Operation {
    /// A switch of `expect`.
    pub fn expects(&self, name: &str) -> Option<bool> {
        self.expect.as_ref()?.get(name)?.as_bool()
    }

    /// Its result says whether something passed.
    pub fn is_check(&self) -> bool {
        self.expects("passed") == Some(true)
    }
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

    /// Checks that passed, and after which nothing was implemented or approved: they hold as long as the project is as
    /// it was.
    pub fn standing_checks(&self) -> Vec<StepId> {
        let passed = |id: &StepId| {
            let step = self.step(*id);
            let own = step.children.is_none() && step.call.is_none();
            own && matches!(step.state, State::Succeeded) && !step.degraded && self.operation(*id).is_check()
        };
        self.step_ids().filter(passed).filter(|&id| !self.built_upon(id)).collect()
    }

    fn built_upon(&self, id: StepId) -> bool {
        let (mut queue, mut seen, mut at) = (Vec::new(), HashSet::new(), Some(id));
        while let Some(id) = at {
            queue.extend(self.after(id));
            at = self.holder(id);
        }
        while let Some(id) = queue.pop() {
            if seen.insert(id) {
                let builds = self.operation(id).implements() || self.kind(id) == Kind::Approval;
                if builds && matches!(self.step(id).state, State::Succeeded) {
                    return true;
                }
                queue.extend(self.after(id));
                queue.extend(self.children(id));
            }
        }
        false
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
