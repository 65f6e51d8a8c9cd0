//! `sage_workflow_resume`: go on with a feature's last run, in the background.

use sage_core::wire::current_phase;
use sage_engine::open::{OpenError, ResumeRequest, Resumed};
use serde_json::Value;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{Call, MAX_WAIT_MS};
use super::super::error::{Code, ToolError, call_text};
use super::execute::hand_over;
use super::outcome;
use super::take::after_owner;
use crate::cli::context::Context;
use crate::cli::notes::{self, Note};
use crate::cli::preflight::check_run_trust;
use crate::cli::resume::changed_template;

/// Where it goes on, and what is odd about it.
struct Begun {
    from: Value,
    notes: Vec<Note>,
}

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let feature = args.feature()?.slug().to_string();
    let from = args.text("fromPhase")?;
    let wait_ms = args.wait_ms(MAX_WAIT_MS, MAX_WAIT_MS)?;
    args.finish()?;
    let name = feature.clone();
    let begun = call.blocking(move |context| begin(context, &name, from)).await?;
    let snapshot = call.settled(&feature, wait_ms).await?;
    call.blocking(move |context| outcome::answer(context, &snapshot, begun.notes, Some(begun.from))).await
}

fn begin(context: &Context, feature: &str, from: Option<String>) -> Result<Begun, ToolError> {
    let engine = context.engine();
    if let Some(phase) = &from {
        check_phase(&engine.read(feature).map_err(refused)?.run, phase)?;
    }
    if !context.config.untrusted.is_empty() {
        check_run_trust(context, &engine.read(feature).map_err(refused)?.run)?;
    }
    let request = ResumeRequest { from: from.clone(), ..ResumeRequest::default() };
    let resumed = after_owner(&engine, feature, || engine.resume(feature, request.clone()));
    match resumed.map_err(refused)? {
        Resumed::Complete { run, notices } => {
            let mut notes = notes::of_notices(&notices);
            notes.extend(changed_template(context, &run));
            Ok(Begun { from: current_phase(&run).into(), notes })
        }
        Resumed::Owned(owned) => {
            let mut notes = notes::of_notices(&owned.notices);
            notes.extend(changed_template(context, owned.run_loop.run()));
            let from = from.or_else(|| current_phase(owned.run_loop.run()));
            let record = engine.detach(*owned, false)?;
            notes.extend(hand_over(context, &record));
            Ok(Begun { from: from.into(), notes })
        }
    }
}

fn check_phase(run: &sage_core::run::Run, phase: &str) -> Result<(), ToolError> {
    let phases: Vec<&str> = run.plan().template.phases.iter().map(|phase| phase.id.as_str()).collect();
    if phases.contains(&phase) {
        return Ok(());
    }
    let shown = super::super::error::given(&phase.into());
    let message =
        format!("`fromPhase` {shown} is no phase of `{}`; it has {}", run.feature, phases.join(", "));
    Err(ToolError::new(Code::InvalidPhase, message))
}

/// Nothing to resume is told as what is missing: the checkpoint.
fn refused(error: OpenError) -> ToolError {
    match &error {
        OpenError::Unknown(feature) => ToolError::new(Code::NoCheckpoint, error.to_string())
            .hint(format!("{} starts one", call_text("sage_workflow_execute", feature))),
        OpenError::NoStep { .. } => ToolError::from(error).code(Code::InvalidPhase),
        _ => error.into(),
    }
}
