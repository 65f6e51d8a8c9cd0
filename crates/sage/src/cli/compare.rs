//! `sage compare`: a parallel run beside a sequential run of the same template and inputs.
//!
//! The sequential run is a feature of its own, `<feature>-sequential`. If there is one it is read, else it is run,
//! which takes long and may cost money: never without a yes.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use sage_core::event::Settings;
use sage_core::run::{Run, StepId};
use sage_core::slug::{Feature, MAX_SLUG_BYTES};
use sage_core::template::Kind;
use sage_core::wire::{Comparison, WorkflowMetrics, is_reached, is_sequential_run_of};
use sage_engine::open::{Engine, StartRequest};
use serde_json::json;

use super::context::Context;
use super::drive::{self, Show};
use super::failure::{Failure, Kind as FailureKind};
use super::notes::{self, Note};
use super::{feature, print, print_json};
use crate::display::text::{argument, cost_text, count_text, plural, time_text};

const SUFFIX: &str = "-sequential";
/// Agents that use no model.
const FREE: [&str; 2] = ["offline", "fake"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// Run the sequential run without asking, if there is none yet
    #[arg(short, long)]
    yes: bool,
    /// Show what would be run, and run nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let parallel = engine.read(&feature(&args.feature)?)?.run;
    check(&parallel)?;
    let known = sequential_run(&engine, &parallel)?;
    let sequential = match known {
        Some(run) => run,
        None if args.dry_run => return announce(&parallel, args.json),
        None if args.yes || agrees(&parallel, args.json) => run_sequential(&engine, &parallel, args.json)?,
        None => return Err(unwilling(&parallel)),
    };
    if !is_reached(&sequential) {
        let failure = Failure::new(
            kind_of(&sequential),
            format!("the sequential run `{}` is {}", sequential.feature, sequential.status.name()),
        );
        return Err(failure.hint(format!("sage resume {}", argument(&sequential.feature))));
    }
    let comparison = Comparison::of(&parallel, &sequential);
    tell(&comparison, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Only work that was done, in parallel, can be compared.
fn check(parallel: &Run) -> Result<(), Failure> {
    let name = argument(&parallel.feature);
    if !is_reached(parallel) {
        let status = parallel.status.name();
        return Err(Failure::usage(format!(
            "`{}` is {status}: only a run that succeeded can be compared",
            parallel.feature
        ))
        .hint(format!("sage resume {name}")));
    }
    if parallel.settings.sequential {
        return Err(Failure::usage(format!("`{}` itself ran one step at a time", parallel.feature))
            .hint(format!("sage run {name}    (without --sequential)")));
    }
    Ok(())
}

fn sequential_name(feature: &str) -> String {
    let base: String = feature.chars().take(MAX_SLUG_BYTES - SUFFIX.len()).collect();
    format!("{}{SUFFIX}", base.trim_end_matches('-'))
}

/// The sequential run of the same work, if there is one.
fn sequential_run(engine: &Engine, parallel: &Run) -> Result<Option<Run>, Failure> {
    let name = sequential_name(&parallel.feature);
    let Some(_) = engine.latest(&name) else { return Ok(None) };
    let run = engine.read(&name)?.run;
    if run.status.open() {
        return Err(Failure::new(
            FailureKind::Conflict,
            format!("the sequential run `{name}` is {}", run.status.name()),
        )
        .hint(format!("sage resume {}", argument(&name))));
    }
    Ok(Some(run).filter(|run| is_sequential_run_of(run, parallel)))
}

/// The same work, one step after the other; results of earlier runs are not taken.
fn run_sequential(engine: &Engine, parallel: &Run, json: bool) -> Result<Run, Failure> {
    let feature = Feature::from_title(&sequential_name(&parallel.feature))?;
    let settings = Settings { sequential: true, no_cache: true, ..parallel.settings.clone() };
    let request = StartRequest {
        feature: feature.slug().into(),
        title: format!("{} (sequential)", parallel.title),
        template: parallel.template.clone(),
        templates: parallel.templates.clone(),
        inputs: parallel.inputs.clone(),
        settings,
        replace: false,
        no_wait: false,
    };
    let show = Show { quiet: json, ..Show::default() };
    drive::to_end(engine, engine.start(request)?, &show, false)
}

fn kind_of(run: &Run) -> FailureKind {
    if run.status.open() { FailureKind::Paused } else { FailureKind::Failed }
}

/// What a sequential run means: how many steps, how long, and what it may cost.
fn announcement(parallel: &Run) -> String {
    let metrics = WorkflowMetrics::of(parallel);
    let steps = plural(u64::from(metrics.operation_count), "step");
    let name = sequential_name(&parallel.feature);
    let at_most = if metrics.sequential_at_most { "at most" } else { "about" };
    let time = time_text(metrics.sequential_time);
    let mut text = format!(
        "comparing runs all {steps} of `{}` again, one after another, as `{name}`: {at_most} {time}",
        parallel.feature
    );
    let agents = paid_agents(parallel);
    if !agents.is_empty() {
        let used = match metrics.cost_usd {
            Some(cost) => format!(
                "{} tokens, {}",
                count_text(metrics.total_tokens),
                cost_text(cost, metrics.cost_estimated)
            ),
            None => format!("{} tokens", count_text(metrics.total_tokens)),
        };
        text.push_str(&format!(
            "; agents may cost money ({}; the parallel run used {used})",
            agents.join(", ")
        ));
    }
    text
}

fn paid_agents(run: &Run) -> Vec<&str> {
    let agents = run.step_ids().filter(|&id: &StepId| run.kind(id) == Kind::Agent);
    let mut names: Vec<&str> =
        agents.filter_map(|id| run.agent_of(id)).filter(|name| !FREE.contains(name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn announce(parallel: &Run, json: bool) -> Result<ExitCode, Failure> {
    if json {
        let metrics = WorkflowMetrics::of(parallel);
        print_json(&json!({
            "type": "compare", "dryRun": true, "feature": parallel.feature,
            "sequentialFeature": sequential_name(&parallel.feature), "steps": metrics.operation_count,
            "estimatedSequentialTime": metrics.sequential_time, "parallelTime": metrics.parallel_time,
            "paidAgents": paid_agents(parallel),
        }))?;
    } else {
        print(format_args!("{}. Nothing was started.\n", announcement(parallel)));
    }
    Ok(ExitCode::SUCCESS)
}

fn agrees(parallel: &Run, json: bool) -> bool {
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if json || !terminal {
        return false;
    }
    eprint!("{}. Run it? [y/N] ", announcement(parallel));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    matches!(line.trim(), "y" | "Y" | "yes")
}

fn unwilling(parallel: &Run) -> Failure {
    Failure::usage(format!("no sequential run of `{}` yet; {}", parallel.feature, announcement(parallel)))
        .hint(format!("sage compare {} --yes", argument(&parallel.feature)))
}

fn tell(comparison: &Comparison, json: bool) -> Result<(), Failure> {
    let Comparison { sequential_time, parallel_time, time_saved, percentage_saved, .. } = *comparison;
    if json {
        let mut value = serde_json::to_value(comparison)?;
        value["type"] = "compare".into();
        return print_json(&value);
    }
    if comparison.steps_reused > 0 {
        let steps = plural(u64::from(comparison.steps_reused), "step");
        notes::print(&[Note::new(format!(
            "{steps} did not run because results were reused; the times do not cover the same work"
        ))]);
    }
    let sign = if time_saved < 0 { "-" } else { "" };
    let saved = time_text(time_saved.unsigned_abs());
    print(format_args!(
        "sequential  {:>8}  {}\nparallel    {:>8}  {}\nsaved       {:>8}  {percentage_saved} %, {:.2}x faster (estimated from the parallel run: {})\n",
        time_text(sequential_time),
        comparison.sequential_feature,
        time_text(parallel_time),
        comparison.feature,
        format!("{sign}{saved}"),
        comparison.speedup,
        time_text(comparison.estimated_sequential_time),
    ));
    Ok(())
}
