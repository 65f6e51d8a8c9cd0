//! What monitors are told of a run (P11): when a group of stages has come to its end, and how a run performed.
//! Views of the journal: derived from the event that the run has just folded, and named by its number.

use serde_json::{Value, json};

use super::{PhaseMetrics, WorkflowMetrics, phase_status};
use crate::event::Event;
use crate::run::{PhaseId, Run};

/// One message: its `type` and its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub kind: &'static str,
    pub fields: Value,
}

/// What the event that the run has just folded is worth telling.
pub fn told(event: &Event, run: &Run) -> Vec<Told> {
    let mut all: Vec<Told> = run.judged_now().iter().map(|&phase| group(run, phase)).collect();
    if matches!(event, Event::RunFinished(_) | Event::RunCancelled(_) | Event::RunPaused(_)) {
        all.push(performance(run));
    }
    all
}

fn group(run: &Run, id: PhaseId) -> Told {
    let phase = run.phase(id);
    let metrics = PhaseMetrics::of(run, id);
    let fields = json!({
        "group": run.phase_path(id),
        "duration": metrics.duration,
        "stagesCompleted": phase.ok,
        "stages": phase.members.len(),
        "status": phase_status(run, id),
        "metrics": metrics,
    });
    Told { kind: "group.completed", fields }
}

fn performance(run: &Run) -> Told {
    let metrics = WorkflowMetrics::of(run);
    let fields = json!({
        "feature": run.feature,
        "workflowId": run.id,
        "status": run.status.name(),
        "sequentialTime": metrics.sequential_time,
        "parallelTime": metrics.parallel_time,
        "timeSaved": metrics.time_saved,
        "percentageSaved": metrics.percentage_saved,
        "speedup": metrics.speedup,
        "tokens": metrics.total_tokens,
        "tokensSaved": metrics.tokens_saved,
        "metrics": metrics,
    });
    Told { kind: "workflow.performance", fields }
}
