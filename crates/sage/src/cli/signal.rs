//! `sage pause` and `sage cancel`.

use std::process::ExitCode;

use sage_core::run::Run;
use sage_engine::control::Signal;
use serde_json::json;

use super::context::{Context, runtime};
use super::failure::Failure;
use super::{feature, print, print_json};

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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn deliver(context: &Context, feature: &str, signal: Signal) -> Result<Run, Failure> {
    let engine = context.engine();
    Ok(runtime()?.block_on(engine.deliver(feature, signal))?)
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
        eprintln!("hint: sage resume {feature}");
    }
    Ok(ExitCode::SUCCESS)
}

pub fn cancel(context: &Context, args: CancelArgs) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let run = deliver(context, &feature, Signal::Cancel { resumable: !args.no_checkpoint })?;
    if args.json {
        print_json(&json!({
            "type": "cancelled", "success": true, "feature": feature,
            "cancelledAt": sage_core::wire::rfc3339(run.updated_ms), "checkpointSaved": !args.no_checkpoint,
        }))?;
    } else {
        print(format_args!("cancelled {feature}\n"));
        if !args.no_checkpoint {
            eprintln!("hint: sage resume {feature}    (what is finished is kept)");
        }
    }
    Ok(ExitCode::SUCCESS)
}
