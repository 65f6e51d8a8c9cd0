//! The roster: every open run with who has it and what is at work in it, as all doors show it (S7).

use serde::{Deserialize, Serialize};

use crate::run::{Run, State, StepId};
use crate::wire::{self, AskView, Progress, rfc3339, shown_cost};

/// One open run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RosterRow {
    pub feature: String,
    pub title: String,
    pub workflow_id: String,
    pub template: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// `foreground`, `background`, `foreign` (not written by this user: nobody may own it), or none.
    pub owner_kind: Option<String>,
    pub owner: Option<u32>,
    /// It would go on by itself if its owner had not died.
    #[serde(default)]
    pub abandoned: bool,
    pub progress: Progress,
    pub started_at: String,
    pub last_updated_at: String,
    /// `metrics.totalTime` of its status.
    pub elapsed_ms: u64,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
    /// The cost, or a part of it, comes from the price table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
    /// Steps that are at work.
    pub working: Vec<Working>,
    /// Steps that wait for a person.
    pub asking: Vec<String>,
    /// What their agents ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<StepAsk>,
}

/// A question of a step's agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAsk {
    pub step: String,
    #[serde(flatten)]
    pub ask: AskView,
}

/// A step that is at work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Working {
    pub path: String,
    /// The agent, or the kind of step where there is none.
    pub agent: String,
    pub attempt: u32,
    /// `elapsedMs` of its status: its active time, in all attempts.
    pub elapsed_ms: u64,
    /// Since it was last seen to do something.
    pub idle_ms: u64,
    /// Its agent's current tool or the end of its last message; of others the last line of their output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Of all its attempts so far.
    pub tokens: u64,
    #[serde(default)]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
}

/// What can be seen of a running attempt from outside.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When it last did something, in ms since the epoch.
    pub at_ms: Option<u64>,
    pub activity: Option<String>,
}

impl RosterRow {
    /// Its status for people, as `wire::word` says.
    pub fn word(&self) -> &str {
        let driven = !self.abandoned && self.owner_kind.as_deref() != Some("foreign");
        if !driven && self.status == "running" { "interrupted" } else { &self.status }
    }

    /// `see` looks at the newest attempt of a step. Times count up to `clock_ms`.
    pub fn of(run: &Run, clock_ms: u64, see: &dyn Fn(StepId) -> Seen) -> RosterRow {
        let (pause_reason, until) = wire::pause(run);
        let usage = run.usage();
        RosterRow {
            feature: run.feature.clone(),
            title: run.title.clone(),
            workflow_id: run.id.clone(),
            template: run.plan().template.name.clone(),
            status: run.status.name().into(),
            pause_reason,
            until,
            owner_kind: None,
            owner: None,
            abandoned: false,
            progress: Progress::of(run),
            started_at: rfc3339(run.started_ms),
            last_updated_at: rfc3339(run.updated_ms),
            elapsed_ms: run.elapsed_at(clock_ms),
            tokens: usage.total(),
            cost_usd: shown_cost(&usage),
            cost_estimated: usage.cost_estimated,
            working: run.step_ids().filter_map(|id| Working::of(run, id, clock_ms, see)).collect(),
            asking: run
                .step_ids()
                .filter(|&id| run.waits_for_person(id))
                .map(|id| run.step(id).path.to_string())
                .collect(),
            asks: run
                .asks
                .iter()
                .map(|open| StepAsk { step: run.step(open.step).path.to_string(), ask: AskView::of(open) })
                .collect(),
        }
    }
}

impl Working {
    fn of(run: &Run, id: StepId, clock_ms: u64, see: &dyn Fn(StepId) -> Seen) -> Option<Working> {
        let step = run.step(id);
        let State::Running(running) = &step.state else { return None };
        if run.waits_for_person(id) || step.children.is_some() {
            return None;
        }
        let Seen { at_ms, activity } = see(id);
        let seen = at_ms.unwrap_or(0).max(running.since_ms);
        let usage = run.usage_of(id);
        Some(Working {
            path: step.path.to_string(),
            agent: run.agent_of(id).unwrap_or(run.kind(id).name()).to_string(),
            attempt: step.attempts,
            elapsed_ms: run.step_ms(id, clock_ms),
            idle_ms: clock_ms.saturating_sub(seen),
            activity,
            tokens: usage.total(),
            cost_usd: shown_cost(&usage),
            cost_estimated: usage.cost_estimated,
        })
    }
}
