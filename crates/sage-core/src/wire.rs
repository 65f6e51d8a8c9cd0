//! The wire: what doors show, with the fields of the MCP tools of the same name. Built from a run, never stored
//! as truth.

mod asks;
mod compare;
mod metrics;
mod money;
mod monitor;
mod notices;
mod outputs;
mod progress;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::policy::Cause;
use crate::run::{Judgement, Output, PhaseId, Run, State, Status, StepId, Unowned, Wait};
use crate::template::Kind;
use crate::verdict::Verdict;
pub use asks::AskView;
pub use compare::{Comparison, is_reached, is_sequential_run_of};
pub use metrics::{BudgetView, EstimatedTokens, PhaseMetrics, SavedBy, TokensByClass, WorkflowMetrics};
pub use money::shown_cost;
pub use monitor::{Told, told};
pub use notices::{AllowanceView, allowance_text, asides, notices, unpriced, unpriced_text};
pub use outputs::outputs;
pub use progress::{Progress, counts, current_phase};

/// `2026-11-15T21:46:00.123Z`
pub fn rfc3339(ms: u64) -> String {
    // Beyond the year 9999 the format has no name for it.
    const LAST_MS: u64 = 253_402_300_799_000;
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms.min(LAST_MS));
    humantime::format_rfc3339_millis(time).to_string()
}

/// `820 bytes`, `7.9 KB`, `180 KB`
pub fn size_text(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..99_950 => format!("{:.1} KB", bytes as f64 / 1e3),
        99_950..999_500 => format!("{:.0} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    pub path: String,
    pub state: String,
    pub reused: bool,
    /// An earlier run made its result, so long ago.
    #[serde(default)]
    pub cached: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cached_age_ms: Option<u64>,
    /// The result is too old and only stands in for one.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<String>,
    pub attempts: u32,
    /// Its active time, in all attempts (`Run::step_ms`).
    pub elapsed_ms: u64,
    pub tokens: u64,
    /// What its agent told, else what the price table says; null where neither knows.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The cost, or a part of it, comes from the price table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
    /// The model as its agent names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What can be done about the error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<crate::event::Ask>,
    /// It failed, and the script that called it went on without it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub handled: bool,
    /// It did not succeed, and a later round of its phase lacks nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub replaced: bool,
    /// What its agent asks for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asks: Vec<AskView>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
}

/// The text of a wait reason: `slot(global)`, `dependency`, ...
pub fn wait_text(wait: &Wait) -> String {
    match wait {
        Wait::Dependency => "dependency".into(),
        Wait::Slot(pool) => format!("slot({pool})"),
        Wait::Quota(target, until) => until_text("quota", target, *until),
        Wait::Breaker(target, until) => until_text("breaker", target, *until),
        Wait::Budget => "budget".into(),
        Wait::Retry(at) => format!("retry({})", rfc3339(*at)),
        Wait::Approval => "approval".into(),
        Wait::Unknown => "unknown".into(),
        Wait::Preempted => "preempted".into(),
        Wait::Paused => "paused".into(),
    }
}

fn until_text(what: &str, target: &str, until: Option<u64>) -> String {
    match until {
        Some(until) => format!("{what}({target}, {})", rfc3339(until)),
        None => format!("{what}({target})"),
    }
}

/// What a person can do about a failed agent.
pub fn hint(run: &Run, id: StepId) -> Option<&'static str> {
    let failed = matches!(run.step(id).state, State::Failed) && run.kind(id) == Kind::Agent;
    let failure = run.step(id).failure.as_ref().filter(|_| failed)?;
    failure.cause.and_then(Cause::hint).or_else(|| failure.class.hint())
}

impl StepView {
    /// Times count up to a time of `Run::clock_ms`.
    pub fn of(run: &Run, id: StepId, clock_ms: u64) -> StepView {
        let step = run.step(id);
        let usage = run.usage_of(id);
        let question = match run.shown_state(id) {
            State::Running(running) => running.ask.as_deref().cloned(),
            _ => None,
        };
        StepView {
            path: step.path.to_string(),
            state: run.state_name(id).into(),
            reused: run.is_reused(id),
            cached: step.taken().is_some(),
            cached_age_ms: step.taken().map(|taken| taken.age_ms),
            stale: step.taken().is_some_and(|taken| taken.expires_in_ms.is_none()),
            wait_reason: run.wait_reason(id).map(|wait| wait_text(&wait)),
            attempts: step.attempts,
            elapsed_ms: run.step_ms(id, clock_ms),
            tokens: usage.total(),
            cost_usd: shown_cost(&usage),
            cost_estimated: usage.cost_estimated,
            model: usage.model,
            error: step
                .failure
                .as_ref()
                .map(|failure| format!("{}: {}", failure.class.name(), failure.message)),
            hint: hint(run, id).map(str::to_string),
            question,
            handled: run.is_handled(id),
            replaced: run.is_replaced(id),
            asks: run.asks_of(id).map(AskView::of).collect(),
            session: step.session.as_deref().map(str::to_string),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    pub feature: String,
    pub title: String,
    pub template: String,
    pub workflow_id: String,
    pub phase: Option<String>,
    pub status: String,
    pub verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What is needed to go on, where the reason does not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub needs: Option<String>,
    pub started_at: String,
    pub last_updated_at: String,
    pub progress: Progress,
    pub steps: Vec<StepView>,
    pub metrics: WorkflowMetrics,
    /// Files that its steps wrote, by `output`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub outputs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<String>,
    /// Why it is no plain success, beside errors.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reasons: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notices: Vec<String>,
    /// How much of their accounts' allowances agents have used, as far as they say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allowances: Vec<AllowanceView>,
}

impl StatusView {
    /// Times count up to a time of `Run::clock_ms`.
    pub fn of(run: &Run, clock_ms: u64) -> StatusView {
        let (pause_reason, until) = pause(run);
        StatusView {
            feature: run.feature.clone(),
            title: run.title.clone(),
            template: run.plan().template.name.clone(),
            workflow_id: run.id.clone(),
            phase: current_phase(run),
            status: run.status.name().into(),
            verdict: verdict_of(run).map(|v| v.name().into()),
            pause_reason,
            until,
            needs: run.needs.clone().filter(|_| matches!(run.status, Status::Paused { .. })),
            started_at: rfc3339(run.started_ms),
            last_updated_at: rfc3339(run.updated_ms),
            progress: Progress::of(run),
            steps: run.step_ids().map(|id| StepView::of(run, id, clock_ms)).collect(),
            metrics: WorkflowMetrics::at(run, clock_ms),
            outputs: outputs(run),
            errors: errors(run),
            reasons: reasons(run),
            notices: notices(run),
            allowances: AllowanceView::all(run),
        }
    }
}

/// Why a paused run stands still, by name, and until when, as far as that is known.
pub fn pause(run: &Run) -> (Option<String>, Option<String>) {
    let until = match run.status {
        Status::Paused { until, .. } => until.map(rfc3339),
        _ => None,
    };
    (run.pause_reason().and_then(|reason| serde_name(&reason)), until)
}

fn serde_name(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_string)
}

/// A run's status for people: its verdict once it has one, and `interrupted` if it runs by its journal and no process
/// drives it.
pub fn word(run: &Run, driven: bool) -> &'static str {
    match (verdict_of(run), run.status) {
        (Some(verdict), _) => verdict.name(),
        (None, Status::Running) if !driven => "interrupted",
        (None, status) => status.name(),
    }
}

/// A step's state for people: what ran when its run lost its owner is interrupted.
pub fn step_word(run: &Run, id: StepId, driven: bool) -> &'static str {
    match run.state_name(id) {
        "running" if !driven => "interrupted",
        name => name,
    }
}

/// The verdict, once there is one.
pub fn verdict_of(run: &Run) -> Option<Verdict> {
    match run.status {
        Status::Finished(verdict) => Some(verdict),
        Status::Cancelled { .. } => Some(Verdict::Cancelled),
        _ => None,
    }
}

/// Whether a step failed by itself, and not because of what it holds. A script fails by itself and says where, a workflow
/// by taking too long.
pub fn failed_by_itself(run: &Run, id: StepId) -> bool {
    let is_failed = |id: StepId| matches!(run.step(id).state, State::Failed);
    is_failed(id) && (run.calls(id).is_some() || !run.children(id).into_iter().any(is_failed))
}

/// Steps that failed by themselves, innermost first in plan order: those around them failed because of these. What a
/// script handled or a later round replaced is not among them.
pub fn failed_steps(run: &Run) -> Vec<StepId> {
    let failed = |&id: &StepId| failed_by_itself(run, id) && !run.is_handled(id) && !run.is_replaced(id);
    run.step_ids().filter(failed).collect()
}

/// What went wrong, one text for each step that failed by itself.
pub fn errors(run: &Run) -> Vec<String> {
    let text = |id: StepId| {
        let step = run.step(id);
        step.failure.as_ref().map(|f| format!("{}: {} ({})", step.path, f.message, f.class.name()))
    };
    failed_steps(run).into_iter().filter_map(text).collect()
}

/// Why a run is no plain success, beside steps that failed: shortfalls once it has ended, and until then the checks that
/// wait for a person.
pub fn reasons(run: &Run) -> Vec<String> {
    let unchecked = |id: StepId| {
        let failure = run.step(id).failure.as_ref().filter(|_| run.is_unchecked(id))?;
        Some(format!("{} is unknown: {}", run.step(id).path, failure.message))
    };
    let mut reasons: Vec<String> = run.step_ids().filter_map(unchecked).collect();
    if !run.status.open() {
        reasons.extend(run.shortfalls());
    }
    reasons
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseResult {
    pub phase_id: String,
    pub status: String,
    pub results: Value,
    /// Operations of it that failed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed: Vec<String>,
    /// Operations of it that have no result and did not fail: pending, waiting, running, blocked or cancelled.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unfinished: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    pub metrics: PhaseMetrics,
}

impl PhaseResult {
    /// `value` turns an output into JSON; where results lie is not the core's affair. Times count up to `clock_ms`.
    pub fn of(run: &Run, id: PhaseId, clock_ms: u64, value: &dyn Fn(&Output) -> Value) -> PhaseResult {
        let phase = run.phase(id);
        let results = phase.members.iter().map(|&member| {
            let output = run.step(member).output.as_deref();
            (run.operation(member).id.clone(), output.map_or(Value::Null, value))
        });
        let is_failed = |id: StepId| matches!(run.step(id).state, State::Failed);
        let named = |wanted: &dyn Fn(StepId) -> bool| {
            let members = phase.members.iter().filter(|&&id| wanted(id));
            members.map(|&id| run.operation(id).id.clone()).collect()
        };
        let failures: Vec<String> = phase
            .members
            .iter()
            .filter(|&&id| is_failed(id))
            .filter_map(|&id| run.step(id).failure.as_ref().map(|f| (id, f)))
            .map(|(id, failure)| format!("{}: {}", run.step(id).path, failure.message))
            .collect();
        let time = |ms: u64| (ms > 0).then(|| rfc3339(ms));
        PhaseResult {
            phase_id: run.phase_path(id),
            status: phase_status(run, id).into(),
            results: Value::Object(results.collect::<Map<_, _>>()),
            failed: named(&is_failed),
            unfinished: named(&|id| !run.step(id).state.ok() && !is_failed(id)),
            error: (!failures.is_empty()).then(|| failures.join("; ")),
            started_at: time(phase.opened_ms),
            completed_at: time(phase.judged_ms),
            metrics: PhaseMetrics::at(run, id, clock_ms),
        }
    }
}

pub fn phase_status(run: &Run, id: PhaseId) -> &'static str {
    let phase = run.phase(id);
    match (phase.open, phase.judged) {
        (_, Some(Judgement::Reached | Judgement::Degraded)) => "completed",
        (_, Some(Judgement::Missed)) => "failed",
        (_, Some(Judgement::Blocked)) => "blocked",
        _ if !run.status.open() => "cancelled",
        (true, None) => "in_progress",
        (false, None) => "pending",
    }
}

/// The answer of `sage run` and `sage_workflow_execute`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Whether its verdict is `succeeded`; absent as long as it goes on by itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub success: Option<bool>,
    pub feature: String,
    pub workflow_id: String,
    pub status: String,
    pub verdict: Option<String>,
    #[serde(default)]
    pub phase: Option<String>,
    pub progress: Progress,
    pub results: Results,
    /// Files that its steps wrote, by `output`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub outputs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<String>,
    /// Why it is no plain success, beside errors: checks that were not made, nothing that was changed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reasons: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notices: Vec<String>,
    /// How much of their accounts' allowances agents have used, as far as they say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allowances: Vec<AllowanceView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    pub phases: Vec<PhaseResult>,
    pub metrics: WorkflowMetrics,
}

impl Summary {
    /// `driven`: a process owns it, or will without anybody's doing. Times count up to `clock_ms`.
    pub fn of(run: &Run, driven: bool, clock_ms: u64, value: &dyn Fn(&Output) -> Value) -> Summary {
        let verdict = verdict_of(run);
        let phases = run.scopes[0].phases.iter().map(|&p| PhaseResult::of(run, p, clock_ms, value)).collect();
        let goes_on = driven && run.unowned(false) == Unowned::GoesOn;
        Summary {
            success: (!goes_on).then_some(verdict == Some(Verdict::Succeeded)),
            feature: run.feature.clone(),
            workflow_id: run.id.clone(),
            status: run.status.name().into(),
            verdict: verdict.map(|v| v.name().into()),
            phase: current_phase(run),
            progress: Progress::of(run),
            results: Results { phases, metrics: WorkflowMetrics::at(run, clock_ms) },
            outputs: outputs(run),
            errors: errors(run),
            reasons: reasons(run),
            notices: notices(run),
            allowances: AllowanceView::all(run),
        }
    }
}
