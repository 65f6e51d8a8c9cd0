//! Events about limits: targets, budgets, and attempts that were refused, hedged, stalled or replaced.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Crowded, Payload};
use crate::budget::{Amount, Cap};
use crate::policy::{FailureClass, Rung};
use crate::port::Usage;
use crate::target::HoldReason;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunContinued {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsChanged {
    /// At most so many at once; `None`: as many as the run's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Pools with another size than the settings say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, u32>,
    pub why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCleared {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepParked {
    pub step: Arc<str>,
    pub attempt: u32,
    pub class: FailureClass,
    pub message: String,
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// What the attempt had done until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Payload>,
    /// What was spent where the agent did not say: its reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Amount>,
    /// What it lost by other attempts that ran at the same time; only where that is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<Crowded>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepHedged {
    pub step: Arc<str>,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Amount>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCharged {
    pub step: Arc<str>,
    pub attempt: u32,
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// Why it ended, if it was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Amount>,
    /// What it lost by other attempts that ran at the same time; only where that is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<Crowded>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReserved {
    pub step: Arc<str>,
    pub attempt: u32,
    /// All that it may spend from now on.
    pub reserve: Amount,
}

/// All that a running attempt has used so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepUsed {
    pub step: Arc<str>,
    pub attempt: u32,
    pub usage: Usage,
}

/// What an attempt that was cut off with its owner had used: it replaces what was known of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecovered {
    pub step: Arc<str>,
    pub attempt: u32,
    pub usage: Usage,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepFellBack {
    pub step: Arc<str>,
    /// Which alternative, from 0.
    pub to: u32,
    pub name: String,
    pub why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStalled {
    pub step: Arc<str>,
    pub attempt: u32,
    pub rung: Rung,
    pub idle_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetParked {
    pub target: String,
    pub reason: HoldReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    pub message: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetReleased {
    pub target: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetRaised {
    /// `run`, or a node of the tree: `phase:research`, `step:research/market`, `agent:claude`.
    pub node: String,
    pub cap: Cap,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}
