//! The fold: one event in, the run changed. An event that does not fit is a typed error, never a panic.

use std::sync::Arc;

use crate::digest::Digest;
use crate::event::*;
use crate::plan::{Plan, PlanError};
use crate::policy::{Cause, FailureClass};
use crate::run::step::{Failure, Output, Running, State};
use crate::run::{HashMap, PhaseId, Run, Status, StepId, Tally};

#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    #[error("the first event must be `run.started`, not `{0}`")]
    First(String),
    #[error("`{0}` a second time")]
    Twice(&'static str),
    #[error("the run was written by a newer core (version {0}, this one knows {CORE_VERSION})")]
    Newer(u32),
    #[error("`{kind}` names the step `{step}`, which does not exist")]
    NoStep { kind: &'static str, step: String },
    #[error("`{kind}` does not fit step `{step}`, which is {state}")]
    Misfit { kind: &'static str, step: String, state: &'static str },
    #[error("`{kind}` names the phase `{phase}`, which does not exist")]
    NoPhase { kind: &'static str, phase: String },
    #[error("template `{name}` of the journal cannot be read: {why}")]
    Template { name: String, why: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
}

fn compile(frozen: &Frozen) -> Result<Arc<Plan>, FoldError> {
    let template =
        crate::load::reload(frozen).map_err(|why| FoldError::Template { name: frozen.name.clone(), why })?;
    Ok(Arc::new(Plan::new(template)?))
}

fn compile_all(templates: &[Frozen]) -> Result<HashMap<String, Arc<Plan>>, FoldError> {
    templates.iter().map(|frozen| Ok((frozen.name.clone(), compile(frozen)?))).collect()
}

/// What comes right before a new owner's turn is not part of the last one's.
fn is_before_turn(event: &Event) -> bool {
    matches!(
        event,
        Event::RunEdited(_) | Event::RunRewound(_) | Event::RunAdopted(_) | Event::StepRechecked(_)
    )
}

impl Run {
    /// A run from its first event.
    pub fn start(event: &RunStarted, now: u64) -> Result<Run, FoldError> {
        if event.core > CORE_VERSION {
            return Err(FoldError::Newer(event.core));
        }
        let mut run = Run {
            id: event.run.clone(),
            feature: event.feature.clone(),
            title: event.title.clone(),
            inputs: event.inputs.clone(),
            settings: event.settings.clone(),
            template: event.template.clone(),
            templates: event.templates.clone(),
            steps: Vec::new(),
            phases: Vec::new(),
            scopes: Vec::new(),
            status: Status::Running,
            started_ms: now,
            updated_ms: now,
            tally: Tally { turn_ms: now, ..Tally::default() },
            memo: Default::default(),
            kept: Default::default(),
            signals: Default::default(),
            core: event.core,
            number: event.number,
            origin: None,
            forks: Vec::new(),
            sessions: Default::default(),
            by_path: Default::default(),
            lost_paths: Default::default(),
            tried: Default::default(),
            relinking: false,
            ready: Default::default(),
            demands: Default::default(),
            ledger: Default::default(),
            cut: Vec::new(),
            raised: Default::default(),
            spenders: 0,
            agent_node: None,
            needs: None,
            acted: false,
            parked: Default::default(),
            changed: Default::default(),
            asks: Vec::new(),
            messages: Vec::new(),
            allowances: Default::default(),
            scripts: Default::default(),
            to_stop: Default::default(),
            to_repeat: Default::default(),
            to_retry: Default::default(),
            again: Default::default(),
            judged_now: Vec::new(),
            plans: compile_all(&event.templates)?,
            shapes: Default::default(),
            active: Default::default(),
        };
        let plan = compile(&event.template)?;
        run.lay_out(plan, None, "".into(), None, Digest::of(b"run"), 0, now);
        run.set_caps();
        Ok(run)
    }

    pub fn apply(&mut self, event: &Event, now: u64) -> Result<(), FoldError> {
        self.judged_now.clear();
        self.measure_wait(event, now);
        if matches!(event, Event::RunOpened(_)) {
            self.tally.earlier_ms = self.elapsed_ms();
            self.tally.turn_ms = now;
        }
        if !is_before_turn(event) {
            self.updated_ms = self.updated_ms.max(now);
        }
        match event {
            Event::RunStarted(_) => return Err(FoldError::Twice("run.started")),
            Event::RunOpened(opened) => self.opened(opened, now),
            // It changes whose run it is, and nothing in it.
            Event::RunAdopted(_) => {}
            Event::RunEdited(edited) => self.edited(edited, now)?,
            Event::RunRewound(rewound) => {
                let from = match self.find_phase(&rewound.from) {
                    Some(phase) => self.phase(phase).members.clone(),
                    None => vec![self.named("run.rewound", &rewound.from)?],
                };
                self.rewind(from, now);
            }
            Event::RunForked(forked) => self.forked(forked, now)?,
            Event::RunImported(imported) => self.imported(imported, now),
            Event::RunPaused(paused) => {
                self.status = Status::Paused { reason: paused.reason, until: paused.until };
                self.needs = paused.needs.clone();
                self.acted = false;
                self.tally.loop_turn = paused.loop_time.unwrap_or(self.tally.loop_turn);
                self.signals.extend(paused.signal.clone());
            }
            Event::RunCancelled(cancelled) => {
                self.status = Status::Cancelled { resumable: cancelled.resumable };
                self.signals.extend(cancelled.signal.clone());
            }
            Event::RunFinished(finished) => {
                self.status = Status::Finished(finished.verdict);
                self.tally.loop_turn = finished.loop_time.unwrap_or(self.tally.loop_turn);
            }
            Event::StepStarted(started) => self.started(started, now)?,
            Event::StepSpawned(spawned) => self.spawned(spawned)?,
            Event::StepFinished(finished) => self.finished(finished, now)?,
            Event::StepSkipped(skipped) => {
                let id = self.startable("step.skipped", &skipped.step)?;
                self.step_mut(id).output = Some(Arc::new(Output::Null));
                self.settle(id, State::Skipped, now);
            }
            Event::StepReused(reused) => self.reused(reused, now)?,
            Event::StepCached(cached) => self.cached(cached, now)?,
            Event::StepExpanded(expanded) => self.expanded(expanded, now)?,
            Event::StepRetried(retried) => self.retried(retried, now)?,
            Event::StepAnswered(answered) => self.answered(answered, now)?,
            Event::PhaseRestarted(restarted) => {
                let phase = self.phase_named("phase.restarted", &restarted.phase)?;
                self.restart_phase(phase, now);
            }
            Event::PhaseRepeated(repeated) => {
                let phase = self.phase_named("phase.repeated", &repeated.phase)?;
                self.repeated(phase, repeated.again, now);
            }
            Event::StepLost(lost) => self.lost(lost, now)?,
            Event::StepRechecked(rechecked) => self.rechecked(rechecked, now)?,
            event if Run::is_of_scripts(event) => self.apply_calls(event, now)?,
            event if Run::is_of_agents(event) => self.apply_agents(event, now)?,
            other => self.apply_limits(other, now)?,
        }
        self.follow_changes(now);
        Ok(())
    }

    pub(super) fn named(&self, kind: &'static str, path: &str) -> Result<StepId, FoldError> {
        self.find(path).ok_or_else(|| FoldError::NoStep { kind, step: path.to_string() })
    }

    fn phase_named(&self, kind: &'static str, path: &str) -> Result<PhaseId, FoldError> {
        self.find_phase(path).ok_or_else(|| FoldError::NoPhase { kind, phase: path.to_string() })
    }

    pub(super) fn misfit(&self, kind: &'static str, id: StepId) -> FoldError {
        let step = self.step(id);
        FoldError::Misfit { kind, step: step.path.to_string(), state: step.state.name() }
    }

    pub(super) fn startable(&self, kind: &'static str, path: &str) -> Result<StepId, FoldError> {
        let id = self.named(kind, path)?;
        match self.step(id).state {
            State::Ready | State::Backoff { .. } => Ok(id),
            _ => Err(self.misfit(kind, id)),
        }
    }

    fn started(&mut self, event: &StepStarted, now: u64) -> Result<(), FoldError> {
        let id = self.startable("step.started", &event.step)?;
        self.measure_start(id);
        let step = self.step_mut(id);
        step.attempts = event.attempt;
        step.preempted = false;
        step.key = Some(event.key);
        step.repeatable = event.repeatable;
        step.cached_no_more();
        if step.started_ms == 0 {
            step.started_ms = now;
        }
        let ask = event.ask.clone().map(Arc::new);
        self.missed(id, event.cache.as_ref());
        // Who asks a person first has not begun to work.
        if self.holds_slot(id) && ask.is_none() {
            self.tally.calls += 1;
            self.attempt_begins(id, event.attempt, event.reserve);
        }
        self.transition(
            id,
            State::Running(Running { since_ms: now, until: event.until, ask, ..Running::default() }),
        );
        Ok(())
    }

    fn spawned(&mut self, event: &StepSpawned) -> Result<(), FoldError> {
        let id = self.named("step.spawned", &event.step)?;
        if let State::Running(running) = &mut self.step_mut(id).state {
            running.pid = Some((event.pid, event.start_time));
        }
        Ok(())
    }

    fn finished(&mut self, event: &StepFinished, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.finished", &event.step)?;
        let (stopping, stalled) = match &self.step(id).state {
            State::Running(running) => (running.stopping, running.stalled),
            // A step can end without an attempt: its expressions are wrong, or something stands in for it.
            State::Ready | State::Backoff { .. } => (false, false),
            _ => return Err(self.misfit("step.finished", id)),
        };
        self.charge(id, event.attempt, event.ms, &event.usage, event.spent);
        // What was given up for another would not have been begun, one after the other.
        if !(stopping && matches!(event.end, End::Stopped)) {
            self.measure_time(id, event.ms, event.crowded);
        }
        self.measure_end(id, event);
        self.looked(id, event.looked);
        match &event.end {
            End::Succeeded { result, full, artifacts, changed } => {
                let (result, full, artifacts) = (result.clone(), full.clone(), artifacts.clone());
                let (changed, aside) = (*changed, event.aside.clone().map(Box::new));
                let output = Output::Leaf { result, full, artifacts, changed, aside };
                self.succeeded(id, Arc::new(output), now);
            }
            End::Skipped { result } => {
                self.step_mut(id).output = Some(Arc::new(Output::leaf(result.clone())));
                self.settle(id, State::Skipped, now);
            }
            End::Failed { class: FailureClass::Unchecked, message, partial } => {
                self.unchecked(id, message, partial.as_ref())
            }
            End::Failed { class, message, partial } => {
                let (class, cause, message, partial) =
                    (*class, event.cause, message.clone(), partial.clone());
                self.judged(id, class, cause, &message);
                let failure = Failure { class, cause, message, partial };
                self.step_mut(id).failure = Some(Box::new(failure));
                self.count_failure(id, class);
                self.settle(id, State::Failed, now);
            }
            End::Stopped if stopping => self.settle(id, State::Cancelled, now),
            End::Stopped if stalled => self.transition(id, State::Unknown),
            End::Stopped => self.transition(id, State::Ready),
        }
        Ok(())
    }

    /// An attempt came to an end that everybody knows. Only what is wrong with its answer is worth telling.
    fn judged(&mut self, id: StepId, class: FailureClass, cause: Option<Cause>, message: &str) {
        let step = self.step_mut(id);
        step.unknown = false;
        if class == FailureClass::Invalid && !cause.is_some_and(Cause::is_terminal) {
            step.verdict = Some(message.into());
        }
    }

    pub(super) fn succeeded(&mut self, id: StepId, output: Arc<Output>, now: u64) {
        let stand_in = self.stands_in(id);
        let step = self.step_mut(id);
        step.output = Some(output.clone());
        step.failure = None;
        step.verdict = None;
        step.unknown = false;
        step.degraded |= stand_in;
        // What only stands in for a result must not be taken for one the next time.
        if let Some(key) = step.key.filter(|_| !stand_in) {
            self.memo.insert(key, output);
        }
        self.settle(id, State::Succeeded, now);
    }

    fn reused(&mut self, event: &StepReused, now: u64) -> Result<(), FoldError> {
        let id = self.startable("step.reused", &event.step)?;
        let Some(mut output) = self.memo.get(&event.key).cloned() else {
            return Err(self.misfit("step.reused", id));
        };
        if let Some(files) = &event.artifacts
            && let Some(moved) = output.moved(files.clone(), event.aside.clone())
        {
            output = Arc::new(moved);
            self.memo.insert(event.key, output.clone());
        }
        let step = self.step_mut(id);
        step.key = Some(event.key);
        step.reused = true;
        step.started_ms = now;
        self.tally.reused += 1;
        self.succeeded(id, output, now);
        Ok(())
    }

    fn retried(&mut self, event: &StepRetried, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.retried", &event.step)?;
        if self.step(id).children.is_some() {
            return self.tried_again(id, event, now);
        }
        if !matches!(self.step(id).state, State::Running(_) | State::Ready | State::Backoff { .. }) {
            return Err(self.misfit("step.retried", id));
        }
        self.charge(id, event.attempt, event.ms, &event.usage, event.spent);
        self.measure_time(id, event.ms, event.crowded);
        self.count_failure(id, event.class);
        self.tally.retries += 1;
        self.step_mut(id).life_ms += event.ms;
        let failure = Failure::new(event.class, event.message.clone());
        self.judged(id, event.class, None, &event.message);
        // An answer that did not fit is asked for once more, whatever the retry policy is.
        let counts = event.class != FailureClass::Invalid || self.operation(id).retry.covers(event.class);
        let step = self.step_mut(id);
        step.failure = Some(Box::new(failure));
        // Of two beside each other the older one may be the last to fail.
        step.attempts = step.attempts.max(event.attempt);
        if counts {
            step.tries += 1;
        } else {
            step.asked_again = true;
        }
        step.delay_ms = Some(event.at.saturating_sub(now));
        let retry_at_ms = &mut self.tally.measured.retry_at_ms;
        *retry_at_ms = event.at.max(*retry_at_ms);
        self.transition(id, State::Backoff { at: event.at });
        Ok(())
    }

    fn answered(&mut self, event: &StepAnswered, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.answered", &event.step)?;
        self.signals.extend(event.signal.clone());
        self.acted = true;
        let rejected = event.choice == "reject";
        let failure = || {
            let said = event.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
            let message = format!("rejected by {}{said}", event.by);
            Some(Box::new(Failure::new(FailureClass::Rejected, message)))
        };
        match &self.step(id).state {
            State::Running(running) if running.ask.is_some() && !rejected && self.stands_in(id) => {
                self.step_mut(id).accepted = true;
                self.transition(id, State::Ready);
            }
            State::Running(running) if running.ask.is_some() && !rejected => {
                self.succeeded(id, Arc::new(Output::leaf(event.result.clone())), now);
            }
            State::Unknown if !rejected && self.is_unchecked(id) => self.go_without(id, event, now),
            State::Unknown if !rejected => {
                self.step_mut(id).unknown = false;
                self.transition(id, State::Ready);
            }
            State::Running(_) | State::Unknown => {
                self.step_mut(id).failure = failure();
                self.settle(id, State::Failed, now);
            }
            _ => return Err(self.misfit("step.answered", id)),
        }
        Ok(())
    }

    fn repeated(&mut self, id: PhaseId, again: bool, now: u64) {
        self.to_repeat.remove(&id);
        if again {
            self.next_round(id, now);
            return;
        }
        let mut queue = Vec::new();
        let judgement = self.reached_as(id);
        self.conclude(id, judgement, &mut queue, now);
        self.drain(queue, now);
    }

    fn edited(&mut self, event: &RunEdited, now: u64) -> Result<(), FoldError> {
        let plan = compile(&event.template)?;
        self.plans = compile_all(&event.templates)?;
        let lost = self
            .live_steps()
            .filter(|s| s.unknown || (matches!(s.state, State::Running(_)) && s.children.is_none()));
        self.lost_paths = lost.map(|step| step.path.clone()).collect();
        self.step_ids().for_each(|id| self.settle_cut(id));
        self.ledger.clear_caps();
        self.template = event.template.clone();
        self.templates = event.templates.clone();
        self.shapes = Default::default();
        self.inputs = event.inputs.clone();
        self.steps.clear();
        self.phases.clear();
        self.scopes.clear();
        self.by_path.clear();
        self.clear_ready();
        self.scripts.clear();
        self.to_stop.clear();
        self.to_repeat.clear();
        self.to_retry.clear();
        self.tried.clear();
        self.again = Default::default();
        self.asks.clear();
        self.active = Default::default();
        self.spenders = 0;
        (self.tally.total, self.tally.settled, self.tally.failed, self.tally.reused) = (0, 0, 0, 0);
        self.lay_out(plan, None, "".into(), None, Digest::of(b"run"), 0, now);
        self.set_caps();
        Ok(())
    }
}
