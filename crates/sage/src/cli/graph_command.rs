//! `sage graph`: a template's graph, or a run's with the states of its steps.

use std::process::ExitCode;

use sage_core::plan::{Plan, PlanStep};
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::context::Context;
use super::failure::Failure;
use super::{diagnostics, feature, print, print_json};
use crate::graph::{self, Drawn};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A template's name or file, or a feature
    what: String,
    /// How to draw it
    #[arg(long, default_value = "text", value_parser = ["text", "mermaid", "dot"])]
    format: String,
    /// Print JSON: the steps and what each waits for
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let catalog = Catalog::of(context);
    let found = catalog.find(&args.what);
    if let (Err(_), Ok(feature)) = (&found, feature(&args.what))
        && let Ok(snapshot) = context.engine().read_named(&feature, &args.what)
    {
        let run = &snapshot.run;
        if args.json {
            print_json(&as_json(run.plan()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let now = sage_engine::clock::Clock::System.now_ms();
        let drawn = Drawn { run, clock_ms: snapshot.clock_ms(now), driven: snapshot.is_driven() };
        print(match args.format.as_str() {
            "mermaid" => graph::mermaid_run(drawn),
            "dot" => graph::dot_run(drawn),
            _ => graph::text_run(drawn),
        });
        return Ok(ExitCode::SUCCESS);
    }
    found?;
    let ready = catalog.load(&args.what, &mut diagnostics::report)?;
    let plan = Plan::new(ready.template).map_err(|error| Failure::usage(error.to_string()))?;
    if args.json {
        print_json(&as_json(&plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(match args.format.as_str() {
        "mermaid" => graph::mermaid(&plan),
        "dot" => graph::dot(&plan),
        _ => graph::text(&plan),
    });
    Ok(ExitCode::SUCCESS)
}

fn as_json(plan: &Plan) -> Value {
    let node = |step: &PlanStep| {
        let phase = &plan.phases[step.phase as usize];
        let after: Vec<&str> = phase.dependencies.iter().map(|&p| plan.phase(p).id.as_str()).collect();
        let needs: Vec<&str> = step.needs.iter().map(|&n| plan.steps[n as usize].path.as_ref()).collect();
        json!({"path": step.path.as_ref(), "level": step.level, "afterPhases": after, "needs": needs})
    };
    let nodes: Vec<Value> = plan.steps.iter().map(node).collect();
    json!({"type": "graph", "template": plan.template.name, "depth": plan.depth, "nodes": nodes})
}
