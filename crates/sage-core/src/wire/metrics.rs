//! The figures of a run and of its phases (R18), as all doors show them.
//!
//! Three times are told, up to `asOf`. `totalTime` is how long a process owned the run. `parallelTime` is its active
//! time: the same without the time in which it only waited for people or closed targets. `sequentialTime` is what the
//! same work takes one step after the other: the time between attempts, and each attempt without what it lost because
//! others of the run had the processors (measured, see `Crowded`). `sequentialAtMost` says that this could not be
//! measured for some of them: their whole time is counted then. Neither of the two that are compared knows of reused
//! steps.

use serde::{Deserialize, Serialize};

use super::{counts, shown_cost};
use crate::alert::{self, Alert};
use crate::port::Usage;
use crate::run::{PhaseId, Run, State, Step, StepId};

/// One in so many parts of the time may be unmeasured without a word.
const NEGLIGIBLE: u64 = 20;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokensByClass {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
    /// Attempts of agents that reported no usage, or not all of it: those tokens are not known, which is not 0.
    pub unattributed: u32,
    /// Some of them, counted by us; in no total and in no budget.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub estimated_tokens: Option<EstimatedTokens>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimatedTokens {
    pub attempts: u32,
    pub input: u64,
    pub output: u64,
}

/// Tokens that did not reach a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedBy {
    /// What filters took away: per result once, however many prompts would have held it.
    pub filter: u64,
    /// What the agents of cached results had used.
    pub cache: u64,
    pub code_mode: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowMetrics {
    /// Times count up to here: now while a process drives the run, else its last record. A checkpoint always counts up
    /// to its last record.
    #[serde(default)]
    pub as_of: String,
    pub total_time: u64,
    pub total_tokens: u64,
    pub context_reloads: u32,
    pub phase_count: u32,
    /// Steps, without those that only hold others (unless they failed by themselves), and the most of them under way at once.
    #[serde(default)]
    pub operation_count: u32,
    #[serde(default)]
    pub parallel_operations: u32,
    /// Never less than `parallelTime`: one step after the other is not faster.
    pub sequential_time: u64,
    /// `sequentialTime` is an upper bound, and so are the figures that follow from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential_at_most: bool,
    #[serde(default)]
    pub parallel_time: u64,
    #[serde(default)]
    pub time_saved: u64,
    #[serde(default)]
    pub percentage_saved: f64,
    pub speedup: f64,
    /// Of steps with `cache`; null where there were none.
    pub cache_hit_rate: Option<f64>,
    pub tokens_saved: u64,
    #[serde(default)]
    pub tokens_saved_by: SavedBy,
    /// What agents told, else what the price table says; null where neither knows.
    pub cost_usd: Option<f64>,
    /// The cost, or a part of it, comes from the price table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
    pub tokens_by_class: TokensByClass,
    pub steps_reused: u32,
    pub owners: u32,
    #[serde(default)]
    pub resumes: u32,
    /// The share of finished steps that resumes did not run again; null if there was none.
    #[serde(default)]
    pub resume_success: Option<f64>,
    /// Share of its time in which the loop could take no input; known once the run has stood still or ended.
    #[serde(default)]
    pub orchestrator_blocked_share: Option<f64>,
    /// Attempts that were started, and what became of them.
    pub attempts: u32,
    pub retries: u32,
    /// Failed attempts by all attempts; refusals are none.
    pub error_rate: f64,
    pub timeouts: u32,
    pub refused: u32,
    pub hedges: u32,
    pub fallbacks: u32,
    pub stalls: u32,
    pub breaker_openings: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budget: Option<BudgetView>,
    /// Which of these figures are beyond what was to be expected.
    #[serde(default)]
    pub alerts: Vec<Alert>,
}

/// What the run may spend and has spent; only where something is capped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    pub cap: crate::budget::Cap,
    pub spent: crate::budget::Amount,
    pub reserved: crate::budget::Amount,
    /// Spent above the cap: agents can overshoot by one response.
    pub overshoot: crate::budget::Amount,
}

impl BudgetView {
    pub fn of(run: &Run) -> Option<BudgetView> {
        let node = run.node_so_far(crate::budget::RUN)?;
        let (spent, reserved) = (node.settled, node.reserved);
        Some(BudgetView { cap: node.cap?, spent, reserved, overshoot: node.overshoot() })
    }
}

impl WorkflowMetrics {
    /// Up to the last record.
    pub fn of(run: &Run) -> WorkflowMetrics {
        WorkflowMetrics::at(run, run.updated_ms)
    }

    /// Up to a time of `Run::clock_ms`.
    pub fn at(run: &Run, clock_ms: u64) -> WorkflowMetrics {
        let (usage, tally) = (run.usage(), &run.tally);
        let parallel_time = run.active_at(clock_ms);
        let worked = tally.sequential_ms + tally.measured.between_ms + under_way(run, clock_ms);
        let sequential_time = worked.max(parallel_time);
        let leaves: Vec<StepId> = run.step_ids().filter(|&id| works(run, id)).collect();
        let saved =
            SavedBy { filter: tally.measured.saved_by_filter, cache: tally.cache_saved_tokens, code_mode: 0 };
        let parallel_operations = most_at_once(run, &leaves);
        let mut metrics = WorkflowMetrics {
            as_of: super::rfc3339(clock_ms),
            total_time: run.elapsed_at(clock_ms),
            total_tokens: usage.total(),
            context_reloads: tally.reloads,
            phase_count: run.scopes[0].phases.len() as u32,
            operation_count: leaves.len() as u32,
            parallel_operations,
            sequential_time,
            sequential_at_most: parallel_operations > 1
                && tally.measured.unmeasured_ms * NEGLIGIBLE > tally.sequential_ms,
            parallel_time,
            time_saved: sequential_time - parallel_time,
            percentage_saved: percentage_saved(sequential_time, parallel_time),
            speedup: speedup(sequential_time, parallel_time),
            cache_hit_rate: tally.cache_hit_rate(),
            tokens_saved: saved.filter + saved.cache + saved.code_mode,
            tokens_saved_by: saved,
            cost_usd: shown_cost(&usage),
            cost_estimated: usage.cost_estimated,
            tokens_by_class: tokens_by_class(run, &usage),
            steps_reused: leaves.iter().filter(|&&id| run.is_reused(id)).count() as u32,
            owners: tally.opened,
            resumes: tally.measured.resumes,
            resume_success: run.resume_success().map(|share| rounded(share, 1000.0)),
            orchestrator_blocked_share: blocked_share(run),
            attempts: tally.calls,
            retries: tally.retries,
            error_rate: share(tally.errors, tally.calls),
            timeouts: tally.timeouts,
            refused: tally.refused,
            hedges: tally.hedges,
            fallbacks: tally.fallbacks,
            stalls: tally.stalls,
            breaker_openings: tally.breaker_openings,
            budget: BudgetView::of(run),
            alerts: Vec::new(),
        };
        let usual = alert::Thresholds::default();
        metrics.alerts = alert::alerts(&metrics, run.settings.alerts.as_ref().unwrap_or(&usual));
        metrics
    }
}

fn tokens_by_class(run: &Run, usage: &Usage) -> TokensByClass {
    let measured = &run.tally.measured;
    let estimated = EstimatedTokens {
        attempts: measured.estimated_attempts,
        input: measured.estimate.input,
        output: measured.estimate.output,
    };
    TokensByClass {
        input: usage.input.unwrap_or(0),
        cache_read: usage.cache_read.unwrap_or(0),
        cache_write: usage.cache_write.unwrap_or(0),
        output: usage.output.unwrap_or(0),
        reasoning: usage.reasoning.unwrap_or(0),
        unattributed: run.tally.unattributed,
        estimated_tokens: (estimated.attempts > 0).then_some(estimated),
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseMetrics {
    /// From its opening to its judgement, on the run's active clock (`parallelTime`).
    pub duration: u64,
    pub tokens: u64,
    #[serde(default)]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
    pub operation_count: u32,
    /// Of these, those that `Progress` counts as completed.
    #[serde(default)]
    pub completed_operations: u32,
    pub parallel_ops: u32,
    /// What its steps took, one after the other.
    #[serde(default)]
    pub sequential_time: u64,
    #[serde(default)]
    pub speedup: f64,
    #[serde(default)]
    pub attempts: u32,
    #[serde(default)]
    pub error_rate: f64,
    #[serde(default)]
    pub timeouts: u32,
    #[serde(default)]
    pub context_reloads: u32,
    #[serde(default)]
    pub tokens_saved: u64,
    /// Of steps with `cache`; null where there were none.
    #[serde(default)]
    pub cache_hit_rate: Option<f64>,
}

impl PhaseMetrics {
    /// Up to the last record.
    pub fn of(run: &Run, id: PhaseId) -> PhaseMetrics {
        PhaseMetrics::at(run, id, run.updated_ms)
    }

    /// Up to a time of `Run::clock_ms`.
    pub fn at(run: &Run, id: PhaseId, clock_ms: u64) -> PhaseMetrics {
        let phase = run.phase(id);
        let leaves = leaves(run, &phase.members);
        let steps = || leaves.iter().map(|&id| run.step(id));
        let duration = run.phase_ms(id, clock_ms);
        let active: u64 = steps().map(|step| step.active_ms).sum();
        let sequential_time = active.saturating_sub(phase.counts.lost_ms).max(duration);
        // As for the run: a nap and a question are no attempts at work.
        let working = leaves.iter().filter(|&&id| run.holds_slot(id));
        let attempts = working.map(|&id| run.step(id).attempts).sum();
        let mut usage = Usage::default();
        leaves.iter().for_each(|&id| usage.add(&run.usage_of(id)));
        let looked_up = phase.counts.cache_hits.saturating_add(phase.counts.cache_misses);
        PhaseMetrics {
            duration,
            tokens: usage.total(),
            cost_usd: shown_cost(&usage),
            cost_estimated: usage.cost_estimated,
            operation_count: leaves.len() as u32,
            completed_operations: steps().filter(|step| step.state.ok()).count() as u32,
            parallel_ops: most_at_once(run, &leaves),
            sequential_time,
            speedup: speedup(sequential_time, duration),
            attempts,
            error_rate: share(phase.counts.errors, attempts),
            timeouts: phase.counts.timeouts,
            context_reloads: phase.counts.reloads,
            tokens_saved: phase.counts.tokens_saved,
            cache_hit_rate: (looked_up > 0).then(|| share(phase.counts.cache_hits, looked_up)),
        }
    }
}

fn blocked_share(run: &Run) -> Option<f64> {
    let time = run.tally.loop_time();
    let share = time.busy_us as f64 / time.total_us as f64;
    (time.total_us > 0).then(|| rounded(share, 10_000.0))
}

fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

fn share(part: u32, all: u32) -> f64 {
    if all == 0 { 0.0 } else { rounded((f64::from(part) / f64::from(all)).min(1.0), 1000.0) }
}

pub(super) fn speedup(sequential_ms: u64, parallel_ms: u64) -> f64 {
    if parallel_ms == 0 { 1.0 } else { rounded(sequential_ms as f64 / parallel_ms as f64, 100.0) }
}

pub(super) fn percentage_saved(sequential_ms: u64, parallel_ms: u64) -> f64 {
    let left = parallel_ms as f64 / sequential_ms as f64;
    if sequential_ms == 0 { 0.0 } else { rounded((1.0 - left) * 100.0, 10.0) }
}

/// Steps that hold no others, and what failed by itself although it does (`Progress` counts it).
fn works(run: &Run, id: StepId) -> bool {
    run.step(id).children.is_none() || counts(run, id)
}

fn leaves(run: &Run, members: &[StepId]) -> Vec<StepId> {
    let mut queue = members.to_vec();
    let mut leaves = Vec::new();
    while let Some(id) = queue.pop() {
        queue.extend(run.children(id));
        leaves.extend(works(run, id).then_some(id));
    }
    leaves
}

/// What attempts that have not ended have taken so far.
fn under_way(run: &Run, clock_ms: u64) -> u64 {
    let elapsed = |step: &Step| match &step.state {
        State::Running(running) if running.ask.is_none() && step.children.is_none() => {
            clock_ms.saturating_sub(running.since_ms.max(run.tally.turn_ms))
        }
        _ => 0,
    };
    run.live_steps().map(elapsed).sum()
}

/// The largest number of steps that were under way at the same moment.
fn most_at_once(run: &Run, steps: &[StepId]) -> u32 {
    let mut edges: Vec<(u64, i32)> = Vec::new();
    for &id in steps {
        let step = run.step(id);
        let ran = step.started_ms > 0 && !step.reused && step.taken().is_none();
        if ran && step.children.is_none() {
            let end = if step.ended_ms > 0 { step.ended_ms } else { run.updated_ms };
            edges.extend([(step.started_ms, 1), (end.max(step.started_ms + 1), -1)]);
        }
    }
    edges.sort_unstable();
    let (mut now, mut most) = (0i32, 0i32);
    for (_, change) in edges {
        now += change;
        most = most.max(now);
    }
    most.max(0) as u32
}
