//! What a run would take from the cache, without running it: the run is folded in memory, and every step whose
//! result is there is settled with it, so that the next ones can be looked up. Nothing is written.

use std::sync::Arc;

use sage_core::event::{
    CORE_VERSION, Event, OpenMode, RunOpened, RunStarted, StepCached, StepExpanded, StepSkipped,
};
use sage_core::run::{Held, Run, StepId};

use super::{Engine, OpenError, StartRequest};
use crate::blobs::Blobs;
use crate::cache::{Conditions, Hit, Looked, Subject};
use crate::prepare::{Prepared, Request, Start};
use crate::sim::SimFs;

/// A step that needs no attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: String,
    pub age_ms: u64,
    pub expires_in_ms: u64,
    pub saved_tokens: u64,
    pub saved_ms: u64,
}

/// Large results of a preview lie in memory.
fn memory() -> Arc<Blobs> {
    Arc::new(Blobs::new(Arc::new(SimFs::new(0)), "/preview"))
}

impl Engine {
    /// Steps that would be taken from the cache, as far as that can be told before anything has run.
    pub fn would_take(&self, request: &StartRequest) -> Result<Vec<Kept>, OpenError> {
        let mut found = Vec::new();
        if self.cache.is_none() || request.settings.no_cache {
            return Ok(found);
        }
        let now = self.clock.now_ms();
        let started = RunStarted {
            core: CORE_VERSION,
            run: "run_preview".into(),
            feature: request.feature.clone(),
            title: request.title.clone(),
            template: request.template.clone(),
            templates: request.templates.clone(),
            inputs: request.inputs.clone(),
            settings: request.settings.clone(),
            number: None,
        };
        let mut run = Run::start(&started, now)?;
        if !run.caches() {
            return Ok(found);
        }
        run.apply(&RunOpened::new(OpenMode::Start, 0).into(), now)?;
        let (blobs, held) = (memory(), Held::default());
        while let Some(id) = run.next_start(&held, |_| false) {
            match self.preview(&run, id, &blobs, now) {
                Some((event, kept)) => {
                    run.apply(&event, now)?;
                    found.extend(kept);
                }
                None => run.leave_out(id),
            }
        }
        Ok(found)
    }

    /// What the step would become without an attempt, if that is possible.
    fn preview(&self, run: &Run, id: StepId, blobs: &Blobs, now: u64) -> Option<(Event, Option<Kept>)> {
        let step = run.step(id).path.clone();
        match Request::new(run, id).prepare(blobs, self.evaluator.as_ref(), &self.project.root) {
            Prepared::Skip => Some((StepSkipped { step }.into(), None)),
            Prepared::Expand(into) => Some((StepExpanded { step, into }.into(), None)),
            Prepared::Invalid(_) | Prepared::Hindered(_) => None,
            Prepared::Start(start) => {
                let hit = self.peek(run, id, &start, blobs, now)?;
                let kept = Kept {
                    path: step.to_string(),
                    age_ms: hit.age_ms,
                    expires_in_ms: hit.expires_in_ms.unwrap_or(0),
                    saved_tokens: hit.saved.usage.total(),
                    saved_ms: hit.saved.ms,
                };
                let event = StepCached {
                    step,
                    key: start.parts.key(),
                    parts: start.parts.shortened(),
                    cache_key: hit.cache_key,
                    from: hit.from,
                    age_ms: hit.age_ms,
                    expires_in_ms: hit.expires_in_ms,
                    result: hit.result,
                    full: hit.full,
                    artifacts: hit.artifacts,
                    aside: None,
                    saved: hit.saved,
                };
                Some((event.into(), Some(kept)))
            }
        }
    }

    fn peek(&self, run: &Run, id: StepId, start: &Start, blobs: &Blobs, now: u64) -> Option<Hit> {
        let run_dir = self.project.run_dir(&run.id);
        let subject = Subject::of(run, id, &self.executor, &self.project.root, &run_dir)?;
        let cache = self.cache.as_ref()?;
        let ticket = subject.ticket(cache, &start.parts).ok()?;
        // No conditions: a preview writes no file of the project.
        match cache.look_up(&ticket, true, &Conditions::default(), &self.project.root, blobs, now) {
            Looked::Hit(hit) => Some(*hit),
            Looked::Miss(_) => None,
        }
    }
}
