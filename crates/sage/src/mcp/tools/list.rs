//! `sage_workflow_list`: the newest run of every feature.

use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::context::Context;
use crate::cli::list;
use crate::display::text::plural;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let filter =
        args.one_of("filter", &["running", "paused", "completed", "failed", "cancelled", "degraded"])?;
    args.finish()?;
    call.blocking(move |context| {
        readable(context)?;
        let rows = list::rows(&context.engine(), filter)?;
        let text = plural(rows.len() as u64, "workflow");
        Ok(Answer::shown(json!({"workflows": rows}), text))
    })
    .await
}

/// A state that cannot be read must not look like one without runs.
fn readable(context: &Context) -> Result<(), ToolError> {
    use std::io::ErrorKind::NotFound;
    for dir in [context.project.state(), context.project.runs()] {
        match std::fs::read_dir(&dir) {
            Err(error) if error.kind() != NotFound => {
                let message = format!("cannot read `{}`: {error}", dir.display());
                return Err(ToolError::new(Code::Filesystem, message).hint("type: sage doctor"));
            }
            _ => {}
        }
    }
    Ok(())
}
