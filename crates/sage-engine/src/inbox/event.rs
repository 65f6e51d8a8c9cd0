//! Which events of a run somebody should be woken for, and the wake that tells it. Pure.

use sage_core::event::{End, Event, PauseReason, RunPaused, StepFinished};
use sage_core::policy::{FailureClass, Rung};
use sage_core::run::{Run, StepId};
use sage_core::template::Kind;
use sage_core::verdict::Verdict;
use sage_core::wire::{errors, rfc3339};
use serde_json::{Map, Value};

use super::wake::{Deliverables, RECORD, USUAL_PRIORITY, Wake, WakeType};

const SUMMARY_CHARS: usize = 500;
/// Who speaks for a run as a whole.
const RUN_ROLE: &str = "orchestrator";

/// The wake of an event that the run has just folded as its record `seq`. The id follows from the two, so an event
/// that is told twice is one wake.
pub fn wake_of(event: &Event, seq: u64, run: &Run) -> Option<Wake> {
    match event {
        Event::RunFinished(finished) => {
            Some(of_run(seq, run, ended(finished.verdict), finished_text(run, finished.verdict)))
        }
        Event::RunCancelled(_) => Some(of_run(seq, run, WakeType::Error, "cancelled".into())),
        Event::RunPaused(paused) if needs_a_person(paused) => {
            Some(of_run(seq, run, WakeType::Blocked, paused_text(paused)))
        }
        Event::StepStarted(started) => {
            let ask = started.ask.as_ref()?;
            let id = run.find(&started.step)?;
            Some(of_step(seq, run, id, WakeType::Blocked, format!("waits for an answer: {}", ask.message)))
        }
        Event::StepAsked(asked) => {
            let id = run.find(&asked.step)?;
            let text = format!("asks: {}", asked.ask.question());
            Some(of_step(seq, run, id, WakeType::Blocked, text))
        }
        Event::StepFinished(finished) => of_step_end(finished, seq, run),
        Event::StepStalled(stalled) if stalled.rung == Rung::Ask => {
            let id = agent_step(run, &stalled.step)?;
            let text = format!("made no progress for {} s: a person is asked", stalled.idle_ms / 1000);
            Some(of_step(seq, run, id, WakeType::Blocked, text))
        }
        _ => None,
    }
}

fn ended(verdict: Verdict) -> WakeType {
    match verdict {
        Verdict::Succeeded | Verdict::Degraded => WakeType::Complete,
        Verdict::Failed | Verdict::Cancelled => WakeType::Error,
    }
}

fn finished_text(run: &Run, verdict: Verdict) -> String {
    let errors = errors(run);
    match errors.first() {
        Some(first) if errors.len() > 1 => {
            format!("{}: {first}, and {} more", verdict.name(), errors.len() - 1)
        }
        Some(first) => format!("{}: {first}", verdict.name()),
        None => verdict.name().into(),
    }
}

/// Not where a time is known, and not where a person has just asked for it.
fn needs_a_person(paused: &RunPaused) -> bool {
    match paused.reason {
        PauseReason::Approval
        | PauseReason::Unknown
        | PauseReason::Join
        | PauseReason::Timeout
        | PauseReason::Budget => true,
        PauseReason::Quota | PauseReason::Breaker => paused.until.is_none(),
        // It goes on by itself, but only once somebody has made room.
        PauseReason::Storage | PauseReason::System => true,
        PauseReason::User | PauseReason::Interrupted | PauseReason::Sleep => false,
    }
}

fn paused_text(paused: &RunPaused) -> String {
    let why = match paused.reason {
        PauseReason::Approval => "waits for an answer",
        PauseReason::Unknown => "a person must judge a step: it was cut off, or its check could not be made",
        PauseReason::Join => "too few steps of a phase succeeded",
        PauseReason::Timeout => "its time is used up",
        PauseReason::Storage => "a disk is full or cannot be written",
        PauseReason::System => "the machine has no resources left",
        PauseReason::Budget => "a budget has no room",
        PauseReason::Quota => "a quota is used up",
        PauseReason::Breaker => "a target is switched off",
        PauseReason::User | PauseReason::Interrupted | PauseReason::Sleep => "paused",
    };
    paused.needs.as_ref().map_or_else(|| why.to_string(), |needs| format!("{why}: {needs}"))
}

fn of_step_end(finished: &StepFinished, seq: u64, run: &Run) -> Option<Wake> {
    let id = agent_step(run, &finished.step)?;
    match &finished.end {
        End::Succeeded { artifacts, .. } => {
            let mut wake = of_step(seq, run, id, WakeType::Complete, "succeeded".into());
            wake.deliverables.files = artifacts.clone();
            Some(wake)
        }
        End::Failed { class: FailureClass::Unchecked, message, .. } => {
            Some(of_step(seq, run, id, WakeType::Blocked, format!("could not be checked: {message}")))
        }
        End::Failed { class, message, .. } => {
            let text = format!("failed ({}): {message}", class.name());
            Some(of_step(seq, run, id, WakeType::Error, text))
        }
        End::Skipped { .. } | End::Stopped => None,
    }
}

/// Only agents are waited for by others.
fn agent_step(run: &Run, path: &str) -> Option<StepId> {
    run.find(path).filter(|&id| run.kind(id) == Kind::Agent)
}

fn of_step(seq: u64, run: &Run, id: StepId, kind: WakeType, what: String) -> Wake {
    let path = run.step(id).path.to_string();
    let mut wake = of_run(seq, run, kind, format!("{path} {what}"));
    wake.session_id = format!("{}/{path}", run.id);
    // A question is the run's own.
    if run.kind(id) == Kind::Agent {
        wake.agent_role = run.agent_of(id).map(str::to_string);
    }
    wake.priority = run.priority(id);
    wake.other.insert("step".into(), Value::String(path));
    wake
}

fn of_run(seq: u64, run: &Run, kind: WakeType, what: String) -> Wake {
    let known = [("feature", &run.feature), ("run", &run.id)];
    let mut other: Map<String, Value> =
        known.into_iter().map(|(name, value)| (name.into(), Value::String(value.clone()))).collect();
    other.insert(RECORD.into(), seq.into());
    Wake {
        wake_id: format!("wake_{}_{seq}", run.id.trim_start_matches("run_")),
        kind,
        session_id: run.id.clone(),
        agent_role: Some(RUN_ROLE.into()),
        status: kind.usual_status(),
        timestamp: rfc3339(run.updated_ms),
        priority: run.settings.priority.unwrap_or(USUAL_PRIORITY),
        deliverables: Deliverables::default(),
        summary: format!("{}: {what}", run.feature).chars().take(SUMMARY_CHARS).collect(),
        next_role: None,
        acknowledged: false,
        other,
    }
}
