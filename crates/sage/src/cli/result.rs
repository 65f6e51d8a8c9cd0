//! `sage result`: what a run or a step gave, as JSON.

use std::process::ExitCode;

use sage_core::port::script::Program;
use sage_core::run::Run;
use sage_core::wire::Summary;
use sage_engine::open::Engine;
use sage_engine::results::{Face, value_of};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{drive, feature, print, print_json};
use crate::command_line::sage;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// A step's path, e.g. research/market
    step: Option<String>,
    /// The whole result instead of the filtered one
    #[arg(long)]
    full: bool,
    /// Print one line of JSON: {type, feature, step, result}
    #[arg(long)]
    json: bool,
}

/// What a step gave, or all phases without one.
pub fn value(engine: &Engine, run: &Run, step: Option<&str>, full: bool) -> Result<Value, Failure> {
    let blobs = engine.blobs(&run.id);
    let Some(path) = step else {
        // What a workflow in code returns is its result.
        let script = run.find(&format!("{}/{}", Program::PHASE, Program::STEP));
        let script = script.filter(|&id| run.plan().steps.len() == 1 && run.calls(id).is_some());
        if let Some(output) = script.and_then(|id| run.step(id).output.as_ref()) {
            return value_of(output, Face::Filtered, &blobs)
                .map_err(|error| Failure::failed(error.to_string()));
        }
        // Up to the last record: pages of one result must fit together.
        let summary = Summary::of(run, true, run.updated_ms, &|output| drive::value(output, &blobs));
        return Ok(serde_json::to_value(summary.results.phases)?);
    };
    let face = if full { Face::Full } else { Face::Filtered };
    let (id, output) = match (run.find(path), run.kept_output(path)) {
        // A repair has kept its result, and not the step itself.
        (None, Some(output)) => {
            return value_of(output, face, &blobs).map_err(|error| Failure::failed(error.to_string()));
        }
        _ => super::step(run, path).map(|id| (id, &run.step(id).output))?,
    };
    match output {
        Some(output) => value_of(output, face, &blobs).map_err(|error| Failure::failed(error.to_string())),
        None => {
            let state = run.state_name(id);
            Err(Failure::failed(format!("step `{path}` has no result; it is {state}"))
                .hint(sage("explain").arg(&run.feature).arg(path)))
        }
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let run = engine.read_named(&feature, &args.feature)?.run;
    let value = value(&engine, &run, args.step.as_deref(), args.full)?;
    if args.json {
        print_json(&json!({"type": "result", "feature": feature, "step": args.step, "result": value}))?;
    } else {
        print(format_args!("{}\n", serde_json::to_string_pretty(&value)?));
    }
    Ok(ExitCode::SUCCESS)
}
