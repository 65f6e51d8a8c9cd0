//! Starting steps: grants, preparation, intents.

use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::event::{End, StepExpanded, StepFinished, StepSkipped, StepStarted};
use sage_core::policy::{Cause, FailureClass};
use sage_core::port::StepCall;
use sage_core::run::{State, StepId};
use sage_core::template::Kind;

use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Input, LoopError, RunLoop};
use crate::evaluate;
use crate::pending::Pending;
use crate::perform::Checks;
use crate::prepare::{Prepared, Request, Start};

/// Preparations under way at once: enough to keep the evaluators busy, few enough to skip over.
const PREPARING: u32 = 64;
/// A hundred years: the monotonic clock cannot count for ever.
const FAR_MS: u64 = 100 * 365 * 86_400_000;

impl RunLoop {
    /// Grants and starts whatever may start now.
    pub(super) fn start_ready(&mut self) -> Result<(), LoopError> {
        self.look_up_ready();
        while self.running() && self.holding < PREPARING && self.may_start() {
            let gate = &self.gate;
            let Some(id) = self.run.next_start(&self.held, |lane| gate.is_closed(lane)) else { break };
            match self.gate.take_prepared(id) {
                Some(start) => self.begin(id, start)?,
                None if self.is_unseen(id) => self.look_up(id),
                None => self.prepare(id)?,
            }
        }
        self.begin_lookups();
        Ok(())
    }

    fn prepare(&mut self, id: StepId) -> Result<(), LoopError> {
        let request = Request::new(&self.run, id);
        if request.is_literal() {
            let around = &self.around;
            let prepared = request.prepare(&around.blobs, around.evaluator.as_ref(), &around.project);
            return self.prepared(id, prepared);
        }
        self.held.hold(&self.run, id);
        self.holding += 1;
        let (sender, blobs) = (self.sender.clone(), self.around.blobs.clone());
        let (evaluator, project) = (self.around.evaluator.clone(), self.around.project.clone());
        tokio::spawn(async move {
            let work = move || Ok(request.prepare(&blobs, evaluator.as_ref(), &project));
            let prepared = evaluate::off_loop("expression", work).await.unwrap_or_else(Prepared::Invalid);
            let _ = sender.send(Input::Prepared(id, prepared)).await;
        });
        Ok(())
    }

    pub(super) fn prepared_off_loop(&mut self, id: StepId, prepared: Prepared) -> Result<(), LoopError> {
        self.held.release(&self.run, id);
        self.holding -= 1;
        // Paused or cancelled meanwhile: it is prepared again when its time comes.
        if !self.running() || !matches!(self.run.step(id).state, State::Ready | State::Backoff { .. }) {
            return Ok(());
        }
        self.prepared(id, prepared)
    }

    pub(super) fn prepared(&mut self, id: StepId, prepared: Prepared) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        match prepared {
            Prepared::Skip => self.emit(StepSkipped { step }).map(drop),
            Prepared::Expand(into) => {
                self.scripts.forget(id);
                self.emit(StepExpanded { step, into })?;
                self.watch_step(id);
                Ok(())
            }
            Prepared::Start(start) => self.begin(id, *start),
            Prepared::Invalid(message) => self.invalid(id, message),
            Prepared::Hindered(obstacle) => self.unprepared(id, obstacle),
        }
    }

    /// What it would do cannot be said: it fails without an attempt.
    pub(super) fn invalid(&mut self, id: StepId, message: String) -> Result<(), LoopError> {
        let (step, attempt) = (self.run.step(id).path.clone(), self.run.step(id).attempts);
        let end = End::Failed { class: FailureClass::Invalid, message, partial: None };
        let finished = StepFinished::new(step, attempt, end, 0, Default::default());
        self.emit(StepFinished { cause: Some(Cause::Setup), ..finished }).map(drop)
    }

    pub(super) fn begin(&mut self, id: StepId, start: Start) -> Result<(), LoopError> {
        if self.run.stands_in(id) {
            return self.stand_in(id, start);
        }
        let (key, parts) = (start.parts.key(), start.parts.shortened());
        let (path, attempt) = (self.run.step(id).path.clone(), self.run.step(id).attempts + 1);
        if self.is_reusable(id, key) {
            return self.reuse(id, start);
        }
        if self.is_unknown_to_cache(id, key) {
            self.look_up(id);
            return Ok(());
        }
        let mut granted = None;
        if start.wait.is_none() {
            match self.ask(id) {
                Ok(grant) => granted = Some(grant),
                Err(why) => return self.refused(id, start, why),
            }
            self.tell_released(id)?;
        }
        let unknown = self.run.step(id).unknown;
        let mut started = StepStarted::new(path, attempt, key, parts);
        started.cache = self.lookups.miss(id);
        let now = self.around.clock.now_ms();
        let after = |ms: u64| Instant::now() + Duration::from_millis(ms.min(FAR_MS));
        let effect = match start.wait {
            Some(Pending::Sleep { ms }) => {
                started.until = Some(now.saturating_add(ms));
                Some(Effect::Arm { timer: Timer::Wake(id, attempt), at: after(ms) })
            }
            Some(Pending::Approval { ask, deadline_ms }) => {
                started.ask = Some(ask);
                started.until = deadline_ms.map(|ms| now.saturating_add(ms));
                deadline_ms.map(|ms| Effect::Arm { timer: Timer::Deadline(id, attempt), at: after(ms) })
            }
            None => {
                let kept = self.run.step(id).checked.as_ref().and_then(|checked| checked.kept.clone());
                let checks = Checks::of(self.run.operation(id), start.output, unknown);
                let checks = Checks { kept, ..checks };
                let call = self.call(id, attempt, key, start.params, start.session);
                let call = StepCall { files: start.files, ..call };
                if self.run.alternative(id).is_some() || self.run.operation(id).agent.is_none() {
                    (started.agent, started.model) = (call.agent.clone(), call.model.clone());
                }
                started.repeatable = self.is_repeatable(&call);
                started.reserve = granted.as_ref().and_then(|granted| granted.reserve);
                let permit = granted.map(|granted| granted.permit);
                Some(Effect::Spawn { id, call: Box::new(call), checks: Box::new(checks), permit })
            }
        };
        let seq = self.emit(started)?;
        if let Some(effect) = effect {
            self.after(seq, effect);
        }
        Ok(())
    }

    fn is_repeatable(&self, call: &StepCall) -> bool {
        let text = |name: &str| call.params.get(name).and_then(|value| value.as_str());
        let (Kind::Tool, Some(server), Some(tool)) = (call.kind, text("server"), text("tool")) else {
            return false;
        };
        self.around.executor.known_tool(server, tool).is_some_and(|tool| tool.repeatable)
    }

    /// The attempt's own limit, or what is left of the step's after `beside_ms` of an attempt that is under way.
    pub(super) fn attempt_timeout_ms(&self, id: StepId, beside_ms: u64) -> Option<u64> {
        let operation = self.run.operation(id);
        let used = self.run.step(id).life_ms.saturating_add(beside_ms);
        let left = operation.step_timeout_ms.map(|limit| limit.saturating_sub(used).max(1));
        [operation.timeout_ms, left].into_iter().flatten().min()
    }

    fn call(
        &self,
        id: StepId,
        attempt: u32,
        key: Digest,
        params: serde_json::Map<String, serde_json::Value>,
        session: Option<String>,
    ) -> StepCall {
        let operation = self.run.operation(id);
        StepCall {
            run: self.run.id.clone(),
            feature: self.run.feature.clone(),
            path: self.run.step(id).path.to_string(),
            kind: operation.kind,
            operation: operation.type_name.clone(),
            attempt,
            key: key.to_string(),
            params,
            files: Vec::new(),
            agent: self.run.agent_of(id).map(str::to_string),
            model: self.run.model_of(id).map(str::to_string),
            role: operation.role,
            allow: self.mode(),
            session: session.map(|name| self.run.session_called(&name).to_string()),
            isolation: operation.isolation,
            schema: operation.schema.clone(),
            input: serde_json::Value::Null,
            timeout_ms: self.attempt_timeout_ms(id, 0),
            idle_timeout_ms: operation.idle_timeout_ms,
            unknown: self.run.step(id).unknown,
            fresh: self.run.step(id).fresh,
            feedback: self.run.step(id).verdict.as_deref().map(str::to_string),
            // Asked for anew, it begins without what was said about the work before.
            messages: if self.run.step(id).fresh { Vec::new() } else { self.run.messages_to(id, key) },
            keep_output: operation.output.is_some(),
        }
    }
}
