//! `sage_workflow_status`: where a run stands, now or when it has come to rest.

use sage_core::run::Status;
use sage_core::wire::{Progress, word};
use sage_engine::open::Snapshot;
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{Call, MAX_WAIT_MS};
use super::super::error::{ToolError, call_text};
use crate::cli::context::Context;
use crate::cli::{questions, status};

/// More steps than this are told by those that matter: at work, waiting, failed.
const MAX_STEPS: usize = 200;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let feature = args.feature()?.slug().to_string();
    let wait_ms = args.wait_ms(0, MAX_WAIT_MS)?;
    args.finish()?;
    let snapshot = call.settled(&feature, wait_ms).await?;
    let value = call.blocking(move |context| Ok((view(context, &snapshot)?, snapshot))).await?;
    let (value, snapshot) = value;
    let run = &snapshot.run;
    let mut text = format!("{feature}: {}, {}", word(run, snapshot.is_driven()), Progress::of(run).text());
    if let Some(hint) = value["hint"].as_str() {
        text = format!("{text}; {hint}");
    }
    Ok(Answer::shown(value, text))
}

/// The fields of `sage status --json`, short enough for a model.
pub fn view(context: &Context, snapshot: &Snapshot) -> Result<Value, ToolError> {
    let now = sage_engine::clock::Clock::System.now_ms();
    let mut value = status::view(context, snapshot, now)?;
    let run = &snapshot.run;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("type");
    }
    let open = if snapshot.is_foreign { Vec::new() } else { questions::of_run(run) };
    if run.status.open() && !open.is_empty() {
        value["questions"] = json!(open);
    }
    if let Some(hint) = hint(snapshot, open.is_empty()) {
        value["hint"] = hint.into();
    }
    let omitted = value["steps"].as_array_mut().map_or(0, keep_what_matters);
    if omitted > 0 {
        value["stepsOmitted"] = omitted.into();
    }
    Ok(value)
}

fn hint(snapshot: &Snapshot, nothing_asked: bool) -> Option<String> {
    let feature = &snapshot.run.feature;
    if snapshot.is_foreign {
        return Some("it was not written by this user: ask the user to type: sage trust".into());
    }
    match snapshot.run.status {
        Status::Running if !snapshot.is_alive() => {
            Some(format!("no process owns this run: {}", call_text("sage_workflow_resume", feature)))
        }
        Status::Running | Status::Paused { until: Some(_), .. } => None,
        Status::Paused { .. } if snapshot.is_alive() => None,
        Status::Paused { .. } if nothing_asked => {
            Some(format!("it waits: {}", call_text("sage_workflow_resume", feature)))
        }
        Status::Paused { .. } => Some("it asks something: sage_inbox {\"action\":\"list\"}".into()),
        Status::Finished(_) => Some(call_text("sage_result", feature)),
        Status::Cancelled { .. } => None,
    }
}

/// How many were left out: of the finished and the waiting ones the last, never one that failed or is at work.
fn keep_what_matters(steps: &mut Vec<Value>) -> usize {
    let before = steps.len();
    let mut room = MAX_STEPS;
    let dull = |step: &Value| {
        matches!(step["state"].as_str(), Some("succeeded" | "pending" | "skipped" | "blocked"))
    };
    room = room.saturating_sub(steps.iter().filter(|step| !dull(step)).count());
    steps.retain(|step| {
        let keep = !dull(step) || room > 0;
        room = room.saturating_sub(usize::from(dull(step)));
        keep
    });
    steps.truncate(MAX_STEPS);
    before - steps.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_steps_those_that_matter_are_told() {
        let step = |n: usize| {
            let state = if n % 100 == 7 { "failed" } else { "succeeded" };
            json!({"path": format!("p/{n}"), "state": state})
        };
        let mut steps: Vec<Value> = (0..1_000).map(step).collect();
        assert_eq!(keep_what_matters(&mut steps), 800);
        assert_eq!(steps.iter().filter(|step| step["state"] == "failed").count(), 10);
        let mut few = vec![step(1)];
        assert_eq!((keep_what_matters(&mut few), few.len()), (0, 1));
    }
}
