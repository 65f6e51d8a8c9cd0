//! Events about the run itself: how it began, who owns it, why it stands still, how it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Payload;
use crate::budget::Cap;
use crate::digest::Digest;

/// A template as it was when the run took it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frozen {
    pub name: String,
    /// File it came from, relative to the project where it can be; built-in ones have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub format: crate::source::Format,
    pub text: String,
    /// The named operations that it uses, as their files were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, String>,
    /// The code that its `script` steps name by `file`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, FrozenProgram>,
}

/// Code as its files were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenProgram {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<crate::port::script::Module>,
}

impl Frozen {
    /// One that uses only kinds, and came from no file.
    pub fn new(name: impl Into<String>, format: crate::source::Format, text: impl Into<String>) -> Frozen {
        let (file, operations, programs) = (None, BTreeMap::new(), BTreeMap::new());
        Frozen { name: name.into(), file, format, text: text.into(), operations, programs }
    }
}

/// Limits that the fold needs to know to say why a step waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub parallel: u32,
    /// At once in all runs of the project together; a run that may do more by itself counts with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<u32>,
    #[serde(default)]
    pub sequential: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// P0 to P3, of steps that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cap>,
    /// The provider, with account, behind each agent that has one: whose limits its calls count in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, String>,
    /// What each agent may spend in this run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_budgets: BTreeMap<String, Cap>,
    /// Results of earlier runs are not taken; new ones are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// When people shall be alerted, where that is not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<crate::alert::Thresholds>,
    /// How much agents may do without a person, if a person said so for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<crate::approval::Mode>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    pub core: u32,
    pub run: String,
    pub feature: String,
    pub title: String,
    pub template: Frozen,
    /// Templates that `workflow` steps name, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Frozen>,
    pub inputs: Map<String, Value>,
    pub settings: Settings,
    /// Which run of its feature it is, from 1. Runs of older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OpenMode {
    Start,
    /// Failed, cancelled and blocked steps get another chance.
    Resume,
    /// Only to deliver a signal; nothing is started.
    Signal,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOpened {
    pub mode: OpenMode,
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// Nobody asked for it: it goes on after a crash or an answer, and what failed has had its chances.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

impl RunOpened {
    pub fn new(mode: OpenMode, pid: u32) -> RunOpened {
        RunOpened { mode, pid, settings: None, unattended: false }
    }
}

/// What an owner's loop did with its time, since it took the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopTime {
    /// Not ready to take the next input.
    pub busy_us: u64,
    pub total_us: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAdopted {
    pub by: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEdited {
    pub template: Frozen,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Frozen>,
    pub inputs: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRewound {
    pub from: String,
}

/// Another run goes on under this one's name. What it has found out is taken over; its money, its time and its
/// attempts stay with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunForked {
    pub from: ForkedFrom,
    /// Sessions that steps name, and what stands for each of them here: two runs never talk in one conversation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, String>,
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkedFrom {
    pub run: String,
    pub feature: String,
    /// This and everything after it runs again.
    pub step: String,
}

/// Who a run was before, as far as that matters: its chance and its sessions come from there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Been {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<ForkedFrom>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunImported {
    pub from: String,
    /// Phase id -> operation id -> result. Only whole, finished phases.
    pub phases: BTreeMap<String, BTreeMap<String, Payload>>,
    /// Of results that are put together from others: the digest of each step's, which is not that of its JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, Digest>,
    /// What those results do not say themselves, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub standing: BTreeMap<String, Standing>,
    /// Steps that had finished and whose results are gone: they run again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u32,
    /// Results that whatever has their key takes over. Many are told in several such events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<KeptResult>,
    /// Steps that had begun, whether they could begin twice without harm, and whose ends are told nowhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub been: Option<Been>,
    /// The last record that was known to be acknowledged when the journal was found damaged: what this event tells
    /// stands in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Acknowledged>,
}

/// What else is known of a finished step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Standing {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
    /// Checks are among the steps that it is made of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checks: bool,
    /// Whether it changed files, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// A record, by its number and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    pub seq: u64,
    pub sha: Digest,
}

/// A result that outlives its journal: whatever has the key, has the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptResult {
    pub key: Digest,
    /// The step that gave it last, where that is known: it is not to be run again for a request before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
    pub result: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Payload>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a run stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PauseReason {
    User,
    Interrupted,
    Approval,
    Unknown,
    Join,
    Timeout,
    /// A disk is full or cannot be written.
    Storage,
    /// The machine has no descriptors, processes or memory left.
    System,
    /// Only a known time is awaited and the caller did not want to wait for it.
    Sleep,
    /// An account has no quota left.
    Quota,
    /// A breaker is open.
    Breaker,
    /// What may be spent is used up.
    Budget,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPaused {
    pub reason: PauseReason,
    /// What is needed to go on, where that is more than the reason says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_time: Option<LoopTime>,
}

impl RunPaused {
    pub fn new(reason: PauseReason) -> RunPaused {
        RunPaused { reason, needs: None, until: None, signal: None, loop_time: None }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancelled {
    pub resumable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFinished {
    pub verdict: crate::verdict::Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_time: Option<LoopTime>,
}

impl RunFinished {
    pub fn new(verdict: crate::verdict::Verdict) -> RunFinished {
        RunFinished { verdict, loop_time: None }
    }
}
