//! Results that an earlier run has paid for: they settle a step and cost nothing.

use std::sync::Arc;

use crate::event::{CacheMiss, StepCached};
use crate::plan::Plan;
use crate::run::step::{CacheUse, Output, Step, Taken};
use crate::run::{FoldError, Run, StepId, Tally};
use crate::template::Kind;

impl Run {
    /// Whether any of its steps may take or keep a result; what code calls is not known before.
    pub fn caches(&self) -> bool {
        let wanted = |plan: &Plan| {
            let mut operations = plan.template.phases.iter().flat_map(|phase| &phase.operations);
            operations.any(|operation| operation.caches() || operation.kind == Kind::Script)
        };
        wanted(self.plan()) || self.plans.values().any(|plan| wanted(plan))
    }

    pub(super) fn cached(&mut self, event: &StepCached, now: u64) -> Result<(), FoldError> {
        let id = self.startable("step.cached", &event.step)?;
        let stands_in = self.stands_in(id);
        let taken =
            Taken { from: event.from.clone(), age_ms: event.age_ms, expires_in_ms: event.expires_in_ms };
        let step = self.step_mut(id);
        step.key = Some(event.key);
        step.started_ms = now;
        let key = event.cache_key.or(step.cache.as_ref().and_then(|known| known.key));
        step.cache = Some(Box::new(CacheUse { key, taken: Some(taken) }));
        // What stands in for a result has saved nothing: the step was to be run.
        if !stands_in {
            self.tally.cache_hits += 1;
            self.count_around(id, |counts| counts.cache_hits += 1);
            let saved = &event.saved;
            let tokens = self.tally.cache_saved_tokens.saturating_add(saved.usage.total());
            self.tally.cache_saved_tokens = tokens;
            self.tally.cache_saved_ms = self.tally.cache_saved_ms.saturating_add(saved.ms);
        }
        let (result, full, artifacts) = (event.result.clone(), event.full.clone(), event.artifacts.clone());
        let aside = event.aside.clone().map(Box::new);
        let output = Output::Leaf { result, full, artifacts, changed: None, aside };
        self.succeeded(id, Arc::new(output), now);
        Ok(())
    }

    /// A start with `cache`: the same miss again, after a crash or in another try, is one miss.
    pub(super) fn missed(&mut self, id: StepId, miss: Option<&CacheMiss>) {
        let Some(miss) = miss else { return };
        let step = self.step_mut(id);
        let known = step.cache.as_ref().and_then(|known| known.key);
        step.cache = Some(Box::new(CacheUse { key: Some(miss.key), taken: None }));
        if !miss.unread && known != Some(miss.key) {
            self.tally.cache_misses += 1;
            self.count_around(id, |counts| counts.cache_misses += 1);
            self.tally.cache_damaged += u32::from(miss.damaged.is_some());
        }
    }
}

impl Step {
    /// The result that an earlier run made for it, if that is what it has.
    pub fn taken(&self) -> Option<&Taken> {
        self.cache.as_ref()?.taken.as_ref()
    }

    /// What it had was taken back; where its result is kept is still known.
    pub(super) fn cached_no_more(&mut self) {
        if let Some(known) = &mut self.cache {
            known.taken = None;
        }
    }
}

impl Tally {
    /// Of steps with `cache`; `None` where none were looked up.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let all = self.cache_hits + self.cache_misses;
        (all > 0).then(|| (f64::from(self.cache_hits) / f64::from(all) * 1000.0).round() / 1000.0)
    }
}
