//! `sage graph`: a template's graph, or a run's with the states of its steps.

use std::process::ExitCode;

use sage_core::plan::Plan;

use super::catalog::Catalog;
use super::context::Context;
use super::failure::Failure;
use super::{diagnostics, feature, print};
use crate::graph;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A template's name or file, or a feature
    what: String,
    /// How to draw it
    #[arg(long, default_value = "text", value_parser = ["text", "mermaid", "dot"])]
    format: String,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let catalog = Catalog::new(&context.project.root, context.project.templates());
    let found = catalog.find(&args.what);
    if let (Err(_), Ok(feature)) = (&found, feature(&args.what))
        && let Ok(snapshot) = context.engine().read(&feature)
    {
        let run = &snapshot.run;
        print(match args.format.as_str() {
            "mermaid" => graph::mermaid_run(run),
            "dot" => graph::dot_run(run),
            _ => graph::text_run(run),
        });
        return Ok(ExitCode::SUCCESS);
    }
    found?;
    let ready = catalog.load(&args.what, &mut diagnostics::report)?;
    let plan = Plan::new(ready.template).map_err(|error| Failure::usage(error.to_string()))?;
    print(match args.format.as_str() {
        "mermaid" => graph::mermaid(&plan),
        "dot" => graph::dot(&plan),
        _ => graph::text(&plan),
    });
    Ok(ExitCode::SUCCESS)
}
