//! What `execute` and `resume` answer with: the summary of the run, as far as it is.
//!
//! A run that failed because of its own steps is an answer with `success: false`. It is an error with a code only
//! where the cause lies outside of it: time, a provider, the disk.

use sage_core::event::PauseReason;
use sage_core::policy::FailureClass;
use sage_core::run::{Run, State, Status};
use sage_core::verdict::Verdict;
use sage_core::wire::{self, Progress, Summary};
use sage_engine::open::Snapshot;
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::error::{Code, ToolError, call_text, cut};
use crate::cli::context::Context;
use crate::cli::{drive, questions};

/// Of a summary; the whole results are there page by page.
const MAX_BYTES: usize = 48_000;
/// A result that may stay in a summary that is too large.
const SMALL_BYTES: usize = 1_000;
const PREVIEW_CHARS: usize = 300;

pub fn answer(
    context: &Context,
    snapshot: &Snapshot,
    notes: Vec<String>,
    resumed_from: Option<Value>,
) -> Result<Answer, ToolError> {
    let run = &snapshot.run;
    let blobs = context.engine().blobs(&run.id);
    let summary = Summary::of(run, &|output| drive::value(output, &blobs));
    let mut value = serde_json::to_value(summary).map_err(crate::cli::failure::Failure::from)?;
    if run.status == Status::Running {
        // It was started, and nothing is known to be wrong.
        value["success"] = true.into();
    }
    let open = questions::of_run(run);
    if run.status.open() && !open.is_empty() {
        value["questions"] = json!(open);
    }
    if !notes.is_empty() {
        let errors = value["errors"].as_array().cloned().unwrap_or_default();
        value["errors"] = errors.into_iter().chain(notes.into_iter().map(Value::from)).collect();
    }
    if let Some(from) = resumed_from {
        value["resumedFrom"] = from;
    }
    shorten(&mut value, &run.feature);
    match outside(run) {
        Some(error) => Err(error.with(value)),
        None => Ok(Answer::new(value, text(run))),
    }
}

/// What a client that shows only text needs to know.
fn text(run: &Run) -> String {
    let Progress { completed, total, .. } = Progress::of(run);
    let feature = &run.feature;
    let head = format!("{feature}: {}, {completed} of {total} steps done", run.status.name());
    let next = match run.status {
        Status::Running => {
            format!("it goes on; {} tells when it ends", call_text("sage_workflow_status", feature))
        }
        Status::Paused { until: Some(_), .. } => "it goes on by itself".into(),
        Status::Paused { .. } if questions::of_run(run).is_empty() => {
            call_text("sage_workflow_resume", feature)
        }
        Status::Paused { .. } => "it asks something: sage_inbox {\"action\":\"list\"}".into(),
        Status::Finished(Verdict::Failed) | Status::Cancelled { resumable: true } => {
            format!("{} goes on with it", call_text("sage_workflow_resume", feature))
        }
        _ => format!("{} has the results", call_text("sage_result", feature)),
    };
    let errors = wire::errors(run).into_iter().chain(wire::reasons(run));
    let errors: String = errors.take(5).map(|it| format!("\n{it}")).collect();
    cut(&format!("{head}; {next}{errors}"), 2_000)
}

/// A cause that lies outside of the workflow.
fn outside(run: &Run) -> Option<ToolError> {
    let resume = || call_text("sage_workflow_resume", &run.feature);
    match run.status {
        Status::Paused { reason: PauseReason::Timeout, .. } => {
            let message = format!("`{}` has used up its active time and is paused", run.feature);
            Some(ToolError::new(Code::Timeout, message).hint(format!("{} gives it as much again", resume())))
        }
        Status::Paused { reason: PauseReason::Quota | PauseReason::Breaker, until: None } => {
            let message = format!("`{}` is paused: what its steps need refuses them", run.feature);
            Some(ToolError::new(Code::External, message).hint("type: sage breakers; then resume it"))
        }
        Status::Paused { reason: PauseReason::Storage, .. } => {
            let message = format!("`{}` is paused: its state could not be written", run.feature);
            Some(ToolError::new(Code::Filesystem, message).hint(format!("make room, then {}", resume())))
        }
        Status::Finished(Verdict::Failed) => {
            let (code, what) = failed_by(run)?;
            let message = format!("`{}` failed: {what}", run.feature);
            Some(ToolError::new(code, message).hint(format!("{} tries again what failed", resume())))
        }
        _ => None,
    }
}

/// The first step that failed, if it failed because of others.
fn failed_by(run: &Run) -> Option<(Code, String)> {
    let mut failed = run
        .live_steps()
        .filter(|step| step.children.is_none() && matches!(step.state, State::Failed))
        .filter_map(|step| Some((step, step.failure.as_ref()?)));
    failed.find_map(|(step, failure)| {
        use FailureClass::{Auth, Quota, RateLimit, Timeout, Transient};
        let code = match failure.class {
            Transient | RateLimit | Quota | Auth => Code::External,
            Timeout => Code::Timeout,
            _ => return None,
        };
        Some((code, format!("{}: {} ({})", step.path, failure.message, failure.class.name())))
    })
}

/// Large results become pointers; a model's context is not the place for them.
fn shorten(value: &mut Value, feature: &str) {
    if value.to_string().len() <= MAX_BYTES {
        return;
    }
    for phase in value["results"]["phases"].as_array_mut().into_iter().flatten() {
        let id = phase["phaseId"].as_str().unwrap_or_default().to_string();
        for (operation, result) in phase["results"].as_object_mut().into_iter().flatten() {
            let text = result.to_string();
            if text.len() > SMALL_BYTES {
                let whole = json!({"feature": feature, "step": format!("{id}/{operation}")});
                *result = json!({
                    "omitted": true, "bytes": text.len(), "preview": cut(&text, PREVIEW_CHARS),
                    "read": format!("sage_result {whole}"),
                });
            }
        }
    }
}
