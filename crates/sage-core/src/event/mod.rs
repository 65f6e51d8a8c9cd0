//! What happened: the journal's vocabulary. Everything a run is, is a fold of these.
//!
//! A record's `kind` and `data` are here; sequence, time and hashes belong to the journal. Events name steps
//! by path, not by number, so that a journal stays readable and survives an edited template.
//! Adding a kind or an optional field is compatible; anything else raises `CORE_VERSION`.

mod agents;
mod cache;
mod calls;
mod counts;
mod limits;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use agents::*;
pub use cache::*;
pub use calls::*;
pub use counts::*;
pub use limits::*;
pub use run::*;

use crate::budget::Amount;
use crate::digest::Digest;
use crate::policy::{Cause, FailureClass};
use crate::port::Usage;

/// Version of the fold; the first event of a run carries the one that wrote it. Since 2, scripts and workflows
/// try again as a whole.
pub const CORE_VERSION: u32 = 2;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        #[derive(Clone, Debug)]
        pub enum Event { $($(#[$doc])* $name($name),)* }

        impl Event {
            pub const KINDS: &[&str] = &[$($kind),*];

            pub fn kind(&self) -> &'static str {
                match self { $(Event::$name(_) => $kind,)* }
            }

            pub fn parse(kind: &str, data: &str) -> Result<Event, EventError> {
                match kind {
                    $($kind => serde_json::from_str(data).map(Event::$name)
                        .map_err(|source| EventError::Data { kind: $kind, source }),)*
                    _ => Err(EventError::Kind(kind.to_string())),
                }
            }
        }

        impl Serialize for Event {
            /// The `data` of the record.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Event::$name(data) => data.serialize(serializer),)* }
            }
        }

        $(impl From<$name> for Event {
            fn from(data: $name) -> Event { Event::$name(data) }
        })*
    };
}

events! {
    /// First event of every journal.
    RunStarted = "run.started",
    /// An owner took the run: at its start and at each resume.
    RunOpened = "run.opened",
    /// The template or the inputs were replaced; finished steps with equal keys will be reused.
    RunEdited = "run.edited",
    /// A step and all that depends on it shall run again.
    RunRewound = "run.rewound",
    /// What comes before is another run's: from here on it goes its own way, from a step on.
    RunForked = "run.forked",
    /// A person took over a run that another user, or another machine, had written.
    RunAdopted = "run.adopted",
    /// What was finished and is told by no record before: taken over from a checkpoint, or from records after damage.
    RunImported = "run.imported",
    RunPaused = "run.paused",
    /// The time that the run waited for has come; its owner never left.
    RunContinued = "run.continued",
    /// Limits of a running run are others now: a person or the machine said so.
    LimitsChanged = "limits.changed",
    /// What has not begun is given up; what runs may finish.
    RunCleared = "run.cleared",
    RunCancelled = "run.cancelled",
    RunFinished = "run.finished",
    /// The intent: from here on the step may have had effects.
    StepStarted = "step.started",
    StepSpawned = "step.spawned",
    StepFinished = "step.finished",
    StepSkipped = "step.skipped",
    StepReused = "step.reused",
    /// An earlier run has its result (`cache`), or one that stands in for it (`fallback: cache`).
    StepCached = "step.cached",
    StepExpanded = "step.expanded",
    StepCalled = "step.called",
    StepRecalled = "step.recalled",
    StepReturned = "step.returned",
    StepNoted = "step.noted",
    StepRetried = "step.retried",
    /// Its result is gone from the disk: it runs again, and what depends on it if that gives another one.
    StepLost = "step.lost",
    /// The project is not what a check has seen: it is made again, and what depends on it keeps what it has.
    StepRechecked = "step.rechecked",
    /// A person decided about an approval or an unknown outcome.
    StepAnswered = "step.answered",
    /// The target refused the attempt: the step waits for the target, and its tries are not touched.
    StepParked = "step.parked",
    /// A second attempt beside a slow one: from here on it may have had effects, too.
    StepHedged = "step.hedged",
    /// An attempt beside the one that counts has ended: what it cost is paid.
    StepCharged = "step.charged",
    /// A running attempt may spend more than it had reserved.
    StepReserved = "step.reserved",
    /// What a running attempt has used so far: known even if its owner is killed.
    StepUsed = "step.used",
    /// What an attempt that was cut off with its owner had used, from its agent's own records.
    StepRecovered = "step.recovered",
    /// The step goes on by its next alternative.
    StepFellBack = "step.fellBack",
    /// A running agent asks for permission / has got its answer.
    StepAsked = "step.asked",
    StepPermitted = "step.permitted",
    /// A person said something to a running agent.
    StepMessaged = "step.messaged",
    /// The session that an attempt belongs to.
    StepSession = "step.session",
    /// A running agent makes way for urgent work.
    StepPreempted = "step.preempted",
    /// How much of an account's allowance is used.
    AccountUsed = "account.used",
    /// No progress for too long.
    StepStalled = "step.stalled",
    /// A target takes no calls for now.
    TargetParked = "target.parked",
    TargetReleased = "target.released",
    BudgetRaised = "budget.raised",
    /// All members of a phase run again: the last rung of progressive retry.
    PhaseRestarted = "phase.restarted",
    /// A phase goes round again (`repeat`), or is done with it.
    PhaseRepeated = "phase.repeated",
}

#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("event kind `{0}` is unknown to this version")]
    Kind(String),
    #[error("data of `{kind}` is not readable: {source}")]
    Data { kind: &'static str, source: serde_json::Error },
}

/// JSON in the journal, or a pointer to the blob that holds it. `sha` is of the canonical JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    pub sha: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Arc<RawValue>>,
    /// Size of the blob; its name is `sha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Payload {
    /// Where neither is given, the JSON is `null`: that is how an absent field and a null look alike in JSON.
    pub fn is_blob(&self) -> bool {
        self.bytes.is_some()
    }
}

/// What a key is made of, each part shortened: lets `sage explain` name the part that changed. Nobody else
/// looks, so it stays text until then.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parts(Box<RawValue>);

impl From<BTreeMap<String, String>> for Parts {
    fn from(parts: BTreeMap<String, String>) -> Parts {
        Parts(serde_json::value::to_raw_value(&parts).unwrap_or_default())
    }
}

impl Parts {
    pub fn read(&self) -> BTreeMap<String, String> {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStarted {
    pub step: Arc<str>,
    pub attempt: u32,
    pub key: Digest,
    pub parts: Parts,
    /// When a sleep ends or an approval takes its default, in ms since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// What it may spend: held until the attempt has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Amount>,
    /// The agent and model that do it, where a default or a fallback chose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where its result will be kept for later runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMiss>,
    /// Twice is known to be as good as once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
}

impl StepStarted {
    pub fn new(step: Arc<str>, attempt: u32, key: Digest, parts: BTreeMap<String, String>) -> StepStarted {
        let (until, ask, reserve, agent, model, cache) = (None, None, None, None, None, None);
        let parts = parts.into();
        StepStarted { step, attempt, key, parts, until, ask, reserve, agent, model, cache, repeatable: false }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    pub message: String,
    pub choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSpawned {
    pub step: Arc<str>,
    pub attempt: u32,
    pub pid: u32,
    pub start_time: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepFinished {
    pub step: Arc<str>,
    pub attempt: u32,
    pub end: End,
    /// Active time of the attempt.
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// What the attempt is charged with in the budgets; only where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Amount>,
    /// Only where its filter took something away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filtered: Option<Filtered>,
    /// Only where its agent told no usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What it lost by other attempts that ran at the same time; only where that is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<Crowded>,
    /// Only where its output is not where the template says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Aside>,
    /// Of a failure whose class alone does not say what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// How the project's files looked to a check that passed, or that had nothing to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<Digest>,
}

impl StepFinished {
    pub fn new(step: Arc<str>, attempt: u32, end: End, ms: u64, usage: Usage) -> StepFinished {
        StepFinished {
            step,
            attempt,
            end,
            ms,
            usage,
            spent: None,
            filtered: None,
            estimate: None,
            crowded: None,
            aside: None,
            cause: None,
            looked: None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    Succeeded {
        result: Payload,
        /// The whole result where `result` is a filtered one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<Payload>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<String>,
        /// Whether the project's files are others now; only where somebody looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<bool>,
    },
    /// It found out that there is nothing to do here.
    Skipped { result: Payload },
    Failed {
        class: FailureClass,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<Payload>,
    },
    /// Ended because we asked for it: a lost race, a pause, an interrupt. Nothing is known to be wrong with it.
    Stopped,
}

impl End {
    /// A result that is nothing but itself.
    pub fn succeeded(result: Payload) -> End {
        End::Succeeded { result, full: None, artifacts: Vec::new(), changed: None }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSkipped {
    pub step: Arc<str>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReused {
    pub step: Arc<str>,
    pub key: Digest,
    pub parts: Parts,
    /// Its files, where they had to be written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Aside>,
}

impl StepReused {
    pub fn new(step: Arc<str>, key: Digest, parts: BTreeMap<String, String>) -> StepReused {
        StepReused { step, key, parts: parts.into(), artifacts: None, aside: None }
    }
}

/// An output that is not where the template says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aside {
    pub wanted: String,
    pub written: String,
    pub why: AsideReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AsideReason {
    /// The file was changed since Sage wrote it.
    Changed,
    /// The file was not written by Sage.
    Foreign,
    /// The run is a fork: its source writes there.
    Fork,
}

impl std::fmt::Display for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Aside { wanted, written, why } = self;
        match why {
            AsideReason::Changed => {
                write!(f, "`{wanted}` was edited since Sage wrote it; wrote `{written}` instead")
            }
            AsideReason::Foreign => {
                write!(f, "`{wanted}` was not written by Sage; wrote `{written}` instead")
            }
            AsideReason::Fork => {
                write!(f, "`{wanted}` belongs to the run this one was forked from; wrote `{written}` instead")
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepExpanded {
    pub step: Arc<str>,
    pub into: Expansion,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expansion {
    /// A fan-out: one child per item. `ordinals[i]` counts the equal items before item i.
    Items { count: u32, items: Payload, digests: Vec<Digest>, ordinals: Vec<u32> },
    /// A sub-workflow, laid out in place.
    Scope { template: String, inputs: Payload },
    /// A script: what it calls becomes steps as it goes.
    Code { input: Payload, dialect: crate::port::script::Dialect },
}

/// How far back a retry goes (R7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryLevel {
    /// The same rendered call again.
    Attempt,
    /// Rendered anew from what is known now.
    Step,
    /// The whole phase: `phase.restarted` follows.
    Phase,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRetried {
    pub step: Arc<str>,
    pub attempt: u32,
    pub class: FailureClass,
    pub message: String,
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Amount>,
    /// When the next attempt may start, in ms since the epoch.
    pub at: u64,
    pub level: RetryLevel,
    /// What it lost by other attempts that ran at the same time; only where that is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<Crowded>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepLost {
    pub step: Arc<str>,
    pub why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRechecked {
    pub step: Arc<str>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAnswered {
    pub step: Arc<str>,
    pub choice: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// SHA-256 of the result `{choice, by, message}`: given, because the fold does not build JSON.
    pub result: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseRestarted {
    /// Path of the phase: its id, behind the path of the step that holds it if that is a sub-workflow.
    pub phase: Arc<str>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseRepeated {
    pub phase: Arc<str>,
    pub again: bool,
}
