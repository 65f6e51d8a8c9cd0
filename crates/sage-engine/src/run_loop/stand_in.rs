//! A step that has fallen back to something that needs no attempt: a fixed value, or a result of an earlier run.

use std::time::Duration;

use sage_core::event::{Ask, End, StepFinished, StepStarted};
use sage_core::policy::{Alternative, FailureClass, FallbackOn};
use sage_core::run::{State, StepId};

use super::{Input, LoopError, RunLoop, Surroundings};
use crate::cache::{DEFAULT_TTL_MS, Hit};
use crate::output::Content;
use crate::prepare::Start;
use crate::results::{pack, unpack};

/// What an earlier run has for a step.
#[derive(Debug)]
pub(crate) struct StoodIn {
    start: Start,
    found: Result<Hit, String>,
}

impl RunLoop {
    pub(super) fn stand_in(&mut self, id: StepId, start: Start) -> Result<(), LoopError> {
        let Some(Alternative::Value(value)) = self.run.alternative(id) else {
            self.look_back(id, start);
            return Ok(());
        };
        match pack(value, &self.around.blobs) {
            Ok(result) => {
                let (step, attempt) = (self.run.step(id).path.clone(), self.run.step(id).attempts);
                let end = End::succeeded(result);
                self.emit(StepFinished::new(step, attempt, end, 0, Default::default())).map(drop)
            }
            Err(error) => self.nothing_stands_in(id, &error.to_string()),
        }
    }

    /// Looks for what the step gave before: in the cache, however old, and in earlier runs of the feature.
    fn look_back(&mut self, id: StepId, start: Start) {
        let (step, operation) = (self.run.step(id), self.run.operation(id).type_name.clone());
        let (path, feature, run) = (step.path.to_string(), self.run.feature.clone(), self.run.id.clone());
        let journaled = step.cache.as_ref().and_then(|known| known.key);
        let key = self.lookups.ticket(id).map(|ticket| ticket.key).or(journaled);
        let item = start.parts.shortened().get("item").cloned();
        let (around, now) = (self.around.clone(), self.around.clock.now_ms());
        let (output, accepted) = (start.output.clone(), step.accepted);
        let sender = self.sender.clone();
        self.held.set_aside(id);
        tokio::spawn(async move {
            let look = move || {
                let (cache, blobs) = (around.cache.as_ref(), &around.blobs);
                let step = (operation.as_str(), path.as_str(), feature.as_str());
                let kept = cache.and_then(|cache| cache.stand_in(key, step, item.as_ref(), blobs, now));
                let hit = match kept {
                    Some(hit) => hit,
                    None => earlier(&around, &feature, &run, &path, now)?,
                };
                let asks = hit.expires_in_ms.is_none() && cache.is_some_and(|cache| cache.asks);
                // What a person is asked about first is not written yet.
                let Some(output) = output.filter(|_| accepted || !asks) else { return Ok(hit) };
                let whole = unpack(hit.full.as_ref().unwrap_or(&hit.result), blobs);
                let content = Content::of(&whole.map_err(|error| error.to_string())?, None)?;
                let written =
                    around.outputs.write(&output, &content).map_err(|refused| refused.to_string())?;
                Ok(hit.written(Some(written)))
            };
            let found = tokio::task::spawn_blocking(look).await;
            let found = found.unwrap_or_else(|error| Err(format!("internal: {error}")));
            let _ = sender.send(Input::StoodIn(id, Box::new(StoodIn { start, found }))).await;
        });
    }

    pub(super) fn stood_in(&mut self, id: StepId, stood_in: StoodIn) -> Result<(), LoopError> {
        self.held.take_back(id);
        let ready = matches!(self.run.step(id).state, State::Ready | State::Backoff { .. });
        if !self.running() || !ready {
            return Ok(());
        }
        match stood_in.found {
            Ok(hit) if self.asks_first(id, &hit) => self.ask_for(id, &stood_in.start, &hit),
            Ok(hit) => self.cached(id, &stood_in.start, hit),
            Err(why) => self.nothing_stands_in(id, &why),
        }
    }

    /// What is too old is taken without a word only where nobody could be asked.
    fn asks_first(&self, id: StepId, hit: &Hit) -> bool {
        let asks = self.around.cache.as_ref().is_some_and(|cache| cache.asks);
        asks && hit.expires_in_ms.is_none() && !self.run.step(id).accepted
    }

    /// The step becomes a question; it holds nothing until it is answered.
    fn ask_for(&mut self, id: StepId, start: &Start, hit: &Hit) -> Result<(), LoopError> {
        let step = self.run.step(id);
        let age = humantime::format_duration(Duration::from_secs(hit.age_ms / 60_000 * 60));
        let message = format!("its own way is closed; take the result that {} made {age} ago?", hit.from);
        let ask = Ask { message, choices: vec!["approve".into(), "reject".into()], default: None };
        let (path, attempt) = (step.path.clone(), step.attempts);
        let started = StepStarted::new(path, attempt, start.parts.key(), start.parts.shortened());
        self.emit(StepStarted { ask: Some(ask), ..started }).map(drop)
    }

    fn nothing_stands_in(&mut self, id: StepId, why: &str) -> Result<(), LoopError> {
        if self.fall_back(id, FallbackOn::Failure, why)? {
            return Ok(());
        }
        let step = self.run.step(id);
        let (path, attempt, failure) = (step.path.clone(), step.attempts, step.failure.as_ref());
        let class = failure.map_or(FailureClass::Failed, |failure| failure.class);
        let first = failure.map(|failure| format!("{}; ", failure.message)).unwrap_or_default();
        let end = End::Failed { class, message: format!("{first}fallback: {why}"), partial: None };
        self.emit(StepFinished::new(path, attempt, end, 0, Default::default())).map(drop)
    }
}

/// What the step gave in an earlier run of the feature.
fn earlier(around: &Surroundings, feature: &str, run: &str, path: &str, now: u64) -> Result<Hit, String> {
    let found = (around.earlier)(feature, run, path);
    let found = found.ok_or("no earlier run of this feature has a result of it")?;
    let age_ms = now.saturating_sub(found.at_ms);
    let ttl_ms = around.cache.as_ref().map_or(DEFAULT_TTL_MS, |cache| cache.config.ttl_ms);
    Ok(Hit {
        cache_key: None,
        from: found.run,
        age_ms,
        expires_in_ms: ttl_ms.checked_sub(age_ms).filter(|left| *left > 0),
        result: pack(&found.result, &around.blobs).map_err(|error| error.to_string())?,
        full: None,
        artifacts: Vec::new(),
        aside: None,
        saved: Default::default(),
    })
}
