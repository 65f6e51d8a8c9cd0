//! What steps say and show about the work that they were to do: files changed, tasks left open, tests that failed.
//!
//! Whether files were changed is measured where that was possible, and else taken from the result (`filesChanged`).

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::event::Standing;
use crate::role::Role;
use crate::run::step::{Children, Output, State, Step};
use crate::run::{Run, StepId};
use crate::template::Operation;

/// The work of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub path: Arc<str>,
    /// It was to change something.
    pub implements: bool,
    /// `None` where nobody knows.
    pub changed: Option<bool>,
    /// Tasks that it left open.
    pub open: usize,
    /// It says itself that tests fail.
    pub tests_failed: bool,
}

/// The shape that work gives: only with `filesChanged` is `open` a list of tasks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    files_changed: Vec<IgnoredAny>,
    #[serde(default)]
    open: Vec<IgnoredAny>,
    #[serde(default)]
    tests: Option<Tests>,
}

#[derive(Deserialize)]
struct Tests {
    #[serde(default)]
    passed: Option<bool>,
}

/// Operations whose name says that they change something, whoever does them.
const IMPLEMENTS: &[&str] =
    &["implement", "implement.fix", "implement.backend", "implement.frontend", "swarm.implement"];

impl Operation {
    /// It is to change files: by its role or its name, unless `expect: {changes: false}` says otherwise.
    pub fn implements(&self) -> bool {
        let named = IMPLEMENTS.contains(&self.type_name.as_str());
        (named || self.role == Some(Role::Implementer)) && self.expects("changes") != Some(false)
    }

    /// It may change files, so somebody looks whether it did.
    pub fn may_change(&self) -> bool {
        self.implements() || self.role == Some(Role::Cleaner)
    }
}

impl Run {
    /// Of the last round of all steps that succeeded and told or showed something about their work. A result that is
    /// too large for the journal is not read.
    pub fn work(&self) -> Vec<Work> {
        let last = |&id: &StepId| {
            let step = self.step(id);
            let own = step.item.map_or(id, |(fan, _)| fan);
            let newest = step.call.is_some() || self.meant(step.scope, step.plan_step) == own;
            step.children.is_none() && newest && matches!(step.state, State::Succeeded)
        };
        self.step_ids().filter(last).filter_map(|id| self.work_of(id)).collect()
    }

    fn work_of(&self, id: StepId) -> Option<Work> {
        let (step, operation) = (self.step(id), self.operation(id));
        let implements = operation.implements();
        let (measured, report) = told(step);
        let changed = measured.or(report.as_ref().map(|report| !report.files_changed.is_empty()));
        let open = report.as_ref().map_or(0, |report| report.open.len());
        let tests = report.and_then(|report| report.tests).and_then(|tests| tests.passed);
        let (path, tests_failed) = (step.path.clone(), tests == Some(false));
        let says = implements || open > 0 || tests_failed;
        says.then_some(Work { path, implements, changed, open, tests_failed })
    }

    /// There were steps that should change something, and none of them did, or there was nothing for them to do.
    pub fn changed_nothing(&self) -> bool {
        let work: Vec<Work> = self.work().into_iter().filter(|work| work.implements).collect();
        let none = |work: &Work| work.changed == Some(false);
        if work.is_empty() { self.had_no_parts() } else { work.iter().all(none) }
    }

    /// A fan-out that should change something had no items.
    fn had_no_parts(&self) -> bool {
        let is_empty = |id: StepId| {
            let step = self.step(id);
            let items =
                matches!(step.children.as_deref(), Some(Children::Items { steps, .. }) if steps.is_empty());
            items && matches!(step.state, State::Succeeded) && self.operation(id).implements()
        };
        self.step_ids().any(is_empty)
    }

    /// Why a run that reached its end is not a plain success, beside steps that failed.
    pub fn shortfalls(&self) -> Vec<String> {
        let mut found = Vec::new();
        for work in self.work().iter().filter(|work| work.tests_failed) {
            found.push(format!("{} says that tests fail", work.path));
        }
        let without = |id: &StepId| self.went_without(*id);
        found.extend(
            self.step_ids().filter(without).map(|id| format!("{} was not checked", self.step(id).path)),
        );
        for id in self.unmet_checks().into_iter().filter(|&id| self.concluded(id)) {
            let step = self.step(id);
            let word = if matches!(step.state, State::Failed) { "failed" } else { "was not checked" };
            found.push(format!("{} {word}", step.path));
        }
        let stood_in = |id: &StepId| self.stood_in(*id);
        found.extend(
            self.step_ids().filter(stood_in).map(|id| format!("{} used its fallback", self.step(id).path)),
        );
        if self.changed_nothing() {
            found.push("no file was changed".to_string());
        } else if self.checked_nothing() {
            found.push("no check ran".to_string());
        }
        found
    }

    /// What the result of a finished step does not say itself.
    pub fn standing(&self, id: StepId) -> Standing {
        let step = self.step(id);
        let changed = match step.output.as_deref() {
            Some(Output::Leaf { changed, .. }) => *changed,
            _ => None,
        };
        Standing { degraded: step.degraded, checks: self.holds_checks(id), changed }
    }

    /// Its result is that of a fallback: a value of the template, or one that the cache kept for too long.
    pub fn stood_in(&self, id: StepId) -> bool {
        let step = self.step(id);
        matches!(step.state, State::Succeeded) && step.degraded && self.stands_in(id)
    }

    /// A person went on although its check was not made.
    pub fn went_without(&self, id: StepId) -> bool {
        let step = self.step(id);
        matches!(step.state, State::Succeeded)
            && step.failure.as_ref().is_some_and(|it| it.class == crate::policy::FailureClass::Unchecked)
    }
}

fn told(step: &Step) -> (Option<bool>, Option<Report>) {
    let Some(Output::Leaf { result, full, changed, .. }) = step.output.as_deref() else {
        return (None, None);
    };
    let json = full.as_ref().unwrap_or(result).json.as_ref();
    (*changed, json.and_then(|json| serde_json::from_str(json.get()).ok()))
}
