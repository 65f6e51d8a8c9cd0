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
    let summary =
        format!("{} stages in {}{}, {failed} failed", stages.len(), time_text(parallel), compared(&metrics));
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

/// What running stages at once was worth: where nothing was saved, that is said.
fn compared(metrics: &WorkflowMetrics) -> String {
    let sequential = time_text(metrics.sequential_time);
    match metrics.percentage_saved {
        share if share > 0.0 => format!(", {sequential} if sequential ({share} % saved)"),
        _ => format!(", {sequential} if sequential (nothing saved by running stages at once)"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P2, R18
    #[test]
    fn lost_time_is_not_a_saving() {
        let metrics = |sequential_time: u64, percentage_saved: f64| WorkflowMetrics {
            sequential_time,
            percentage_saved,
            ..WorkflowMetrics::default()
        };
        assert_eq!(compared(&metrics(2_000, 50.0)), ", 2.0s if sequential (50 % saved)");
        let nothing = ", 0.8s if sequential (nothing saved by running stages at once)";
        assert_eq!(compared(&metrics(800, -4.9)), nothing);
        assert_eq!(compared(&metrics(800, 0.0)), nothing);
    }
}
