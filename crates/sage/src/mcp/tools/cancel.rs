//! `sage_workflow_cancel`: end a run, with a checkpoint to resume from or without.

use std::time::{Duration, Instant};

use sage_core::run::Run;
use sage_core::wire::rfc3339;
use sage_engine::checkpoint;
use sage_engine::control::Signal;
use sage_engine::open::{Engine, OpenError};
use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError, call_text};
use crate::cli::background;
use crate::cli::context::Context;
use crate::cli::tickets::belong;

/// The owner saves the checkpoint a moment after the run has ended.
const SAVED: Duration = Duration::from_secs(5);

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let feature = args.feature()?.slug().to_string();
    let resumable = args.flag("saveCheckpoint", true)?;
    args.finish()?;
    call.blocking(move |context| cancel(context, &feature, resumable)).await
}

fn cancel(context: &Context, feature: &str, resumable: bool) -> Result<Answer, ToolError> {
    let engine = context.engine();
    let delivered =
        tokio::runtime::Handle::current().block_on(engine.deliver(feature, Signal::Cancel { resumable }));
    let run = delivered.map_err(refused)?;
    belong::ended(&engine, &run);
    background::ensure(context);
    if resumable {
        check_saved(&engine, &run)?;
    }
    let value = json!({
        "success": true, "feature": feature, "cancelledAt": rfc3339(run.updated_ms), "checkpointSaved": resumable,
    });
    let next = if resumable {
        format!("; {} goes on", call_text("sage_workflow_resume", feature))
    } else {
        String::new()
    };
    Ok(Answer::new(value, format!("{feature}: cancelled{next}")))
}

/// What nobody knows does not run, either.
fn refused(error: OpenError) -> ToolError {
    match &error {
        OpenError::Unknown(_) => ToolError::from(error).code(Code::NotRunning),
        OpenError::Io { .. } => ToolError::from(error).code(Code::CheckpointSave),
        _ => error.into(),
    }
}

/// Said only when it is so: the file tells of this run's end.
fn check_saved(engine: &Engine, run: &Run) -> Result<(), ToolError> {
    let path = engine.project.checkpoint(&run.feature);
    let deadline = Instant::now() + SAVED;
    loop {
        let why = match checkpoint::load(engine.vfs.as_ref(), &path) {
            Ok(loaded) if loaded.doc.get("runId") == Some(&run.id.as_str().into()) => {
                match loaded.doc.get("status").and_then(serde_json::Value::as_str) {
                    Some("running" | "paused") => "it is older than the end of the run".to_string(),
                    _ => return Ok(()),
                }
            }
            Ok(_) => "it is of another run".to_string(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            let message = format!("`{}` is cancelled, but its checkpoint is not saved: {why}", run.feature);
            return Err(ToolError::new(Code::CheckpointSave, message).hint(format!(
                "its journal is safe: {} works",
                call_text("sage_workflow_resume", &run.feature)
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
