//! `sage result`: what a run or a step gave, as JSON.

use std::process::ExitCode;

use sage_core::run::Output;
use sage_core::wire::Summary;
use sage_engine::results::{Face, value_of};
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{drive, feature, print, print_json};

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

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let run = engine.read(&feature)?.run;
    let blobs = engine.blobs(&run.id);
    let face = if args.full { Face::Full } else { Face::Filtered };
    let show =
        |output: &Output| value_of(output, face, &blobs).map_err(|error| Failure::failed(error.to_string()));
    let value = match &args.step {
        Some(path) => {
            let id = super::step(&run, path)?;
            match &run.step(id).output {
                Some(output) => show(output)?,
                None => {
                    return Err(Failure::failed(format!(
                        "step `{path}` has no result; it is {}",
                        run.step(id).state.name()
                    ))
                    .hint(format!("sage explain {feature} {path}")));
                }
            }
        }
        None => {
            let summary = Summary::of(&run, &|output| drive::value(output, &blobs));
            serde_json::to_value(summary.results.phases)?
        }
    };
    if args.json {
        print_json(&json!({"type": "result", "feature": feature, "step": args.step, "result": value}))?;
    } else {
        print(format_args!("{}\n", serde_json::to_string_pretty(&value)?));
    }
    Ok(ExitCode::SUCCESS)
}
