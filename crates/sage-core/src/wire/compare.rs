//! A parallel run beside a sequential one of the same work (P2): what was really saved.

use serde::{Deserialize, Serialize};

use super::metrics::{percentage_saved, speedup};
use super::{WorkflowMetrics, verdict_of};
use crate::run::Run;
use crate::verdict::Verdict;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub feature: String,
    pub workflow_id: String,
    pub sequential_feature: String,
    pub sequential_workflow_id: String,
    /// What the sequential run took, measured; without waiting for people and closed targets, as `parallelTime`.
    pub sequential_time: u64,
    pub parallel_time: u64,
    /// Less than 0 where the sequential run was faster.
    pub time_saved: i64,
    pub percentage_saved: f64,
    pub speedup: f64,
    /// What the parallel run alone says that a sequential one takes.
    pub estimated_sequential_time: u64,
    /// Steps of either run that did not run: their results were there already.
    pub steps_reused: u32,
}

impl Comparison {
    pub fn of(parallel: &Run, sequential: &Run) -> Comparison {
        let (here, there) = (WorkflowMetrics::of(parallel), WorkflowMetrics::of(sequential));
        let (sequential_time, parallel_time) = (there.parallel_time, here.parallel_time);
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let reused = |run: &Run| run.tally.reused + run.tally.cache_hits;
        Comparison {
            feature: parallel.feature.clone(),
            workflow_id: parallel.id.clone(),
            sequential_feature: sequential.feature.clone(),
            sequential_workflow_id: sequential.id.clone(),
            sequential_time,
            parallel_time,
            time_saved: signed(sequential_time) - signed(parallel_time),
            percentage_saved: percentage_saved(sequential_time, parallel_time),
            speedup: speedup(sequential_time, parallel_time),
            estimated_sequential_time: here.sequential_time,
            steps_reused: reused(parallel) + reused(sequential),
        }
    }
}

/// Whether `sequential` did the work of `parallel` one step after the other, and came to its end.
pub fn is_sequential_run_of(sequential: &Run, parallel: &Run) -> bool {
    let same = (&sequential.template, &sequential.templates, &sequential.inputs)
        == (&parallel.template, &parallel.templates, &parallel.inputs);
    same && sequential.settings.sequential && is_reached(sequential)
}

/// Whether a run ended with what it was for.
pub fn is_reached(run: &Run) -> bool {
    matches!(verdict_of(run), Some(Verdict::Succeeded | Verdict::Degraded))
}
