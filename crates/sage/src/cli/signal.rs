//! `sage pause` and `sage cancel`.

use std::process::ExitCode;

use sage_core::run::{Run, State};
use sage_engine::control::Signal;
use serde_json::json;

use super::context::{Context, runtime};
use super::failure::Failure;
use super::tickets::belong;
use super::{feature, print, print_json};
use crate::command_line::{sage, tell};
use crate::display::text::plural;

#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// The feature's title or slug
    feature: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The feature's title or slug
    feature: String,
    /// Not to be resumed later
    #[arg(long)]
    no_checkpoint: bool,
    /// Give up only what has not begun; running steps finish
    #[arg(long, conflicts_with = "no_checkpoint")]
    queued: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn deliver(context: &Context, feature: &str, signal: Signal) -> Result<Run, Failure> {
    let engine = context.engine();
    let run = runtime()?.block_on(engine.deliver(feature, signal))?;
    // Without an owner, nobody else tells its ticket.
    belong::ended(&engine, &run);
    Ok(run)
}

pub fn pause(context: &Context, args: PauseArgs) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let run = deliver(context, &feature, Signal::Pause)?;
    if args.json {
        print_json(
            &json!({"type": "paused", "success": true, "feature": feature, "status": run.status.name()}),
        )?;
    } else {
        print(format_args!("paused {feature}: running steps finish, no more start\n"));
        tell(sage("resume").arg(feature));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn cancel(context: &Context, args: CancelArgs) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    if args.queued {
        return clear(context, &feature, args.json);
    }
    let run = deliver(context, &feature, Signal::Cancel { resumable: !args.no_checkpoint })?;
    if args.json {
        print_json(&json!({
            "type": "cancelled", "success": true, "feature": feature,
            "cancelledAt": sage_core::wire::rfc3339(run.updated_ms), "checkpointSaved": !args.no_checkpoint,
        }))?;
    } else {
        print(format_args!("cancelled {feature}\n"));
        if !args.no_checkpoint {
            tell(sage("resume").arg(feature).comment("finished steps are kept"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn clear(context: &Context, feature: &str, json: bool) -> Result<ExitCode, Failure> {
    let run = deliver(context, feature, Signal::Clear)?;
    let given_up = run
        .live_steps()
        .filter(|step| step.children.is_none() && matches!(step.state, State::Cancelled))
        .count();
    let running = run.live_steps().filter(|step| matches!(step.state, State::Running(_))).count();
    if json {
        print_json(&json!({
            "type": "cleared", "success": true, "feature": feature, "status": run.status.name(),
            "cancelled": given_up, "running": running,
        }))?;
    } else {
        let rest = if running > 0 {
            format!("; finishing: {}", plural(running as u64, "step"))
        } else {
            String::new()
        };
        let given_up = plural(given_up as u64, "step");
        print(format_args!("gave up {given_up} of {feature} that had not begun{rest}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
