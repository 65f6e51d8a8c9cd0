//! `statistics`: what the stages of this run took until now, and what running them at once has saved. Counted from
//! the run's own journal.

use std::fmt::Write as _;

use sage_core::run::Run;
use sage_core::wire::{StepView, WorkflowMetrics};
use serde_json::{Value, json};

use super::super::context::Context;
use crate::display::text::{count_text, time_text};

pub fn count(context: &Context, feature: &str) -> Result<Value, String> {
    let snapshot = context.engine().read(feature).map_err(|error| error.to_string())?;
    let run = &snapshot.run;
    let stages: Vec<StepView> = run
        .step_ids()
        .filter(|&id| run.step(id).children.is_none() && run.step(id).attempts > 0)
        .map(|id| StepView::of(run, id, run.updated_ms))
        .filter(|step| step.state != "running")
        .collect();
    Ok(told(run, &stages))
}

fn told(run: &Run, stages: &[StepView]) -> Value {
    let metrics = WorkflowMetrics::of(run);
    let (sequential, parallel) = (metrics.sequential_time, metrics.parallel_time);
    let (saved, share) = (metrics.time_saved, metrics.percentage_saved);
    let failed = stages.iter().filter(|stage| stage.state == "failed").count();
    let summary = format!(
        "{} stages in {}, {} if sequential ({share} % saved), {failed} failed",
        stages.len(),
        time_text(parallel),
        time_text(sequential),
    );
    json!({
        "summary": summary,
        "document": document(run, stages, &summary),
        "stages": stages.iter().map(|stage| json!({
            "stage": stage.path, "state": stage.state, "durationMs": stage.elapsed_ms, "tokens": stage.tokens,
            "attempts": stage.attempts,
        })).collect::<Vec<_>>(),
        "sequentialTime": sequential,
        "parallelTime": parallel,
        "timeSaved": saved,
        "percentageSaved": share,
        "tokens": metrics.total_tokens,
        "costUsd": metrics.cost_usd,
    })
}

fn document(run: &Run, stages: &[StepView], summary: &str) -> String {
    let mut text = format!("# {}: statistics\n\n{summary}.\n\n", run.title);
    text.push_str("| stage | state | time | tokens | attempts |\n|---|---|---:|---:|---:|\n");
    for stage in stages {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            stage.path,
            stage.state,
            time_text(stage.elapsed_ms),
            count_text(stage.tokens),
            stage.attempts,
        );
    }
    text.push_str("\nUntil this stage; counted from the run's journal.\n");
    text
}
