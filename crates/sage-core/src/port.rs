//! The ports: what the engine asks of the parts that do the work. Traits and plain data only.
//!
//! `StepExecutor` is implemented once (sage-agents) and hosted by any engine. Every call may be made
//! twice with the same key; an executor that can notice (an agent's session) should.

mod ask;
mod crowd;
mod evaluator;
mod fork;
mod message;
mod prompt_file;
pub mod script;
mod usage;
mod wakes;
mod watch;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use ask::{AskKind, Asks, Nobody, Permission, PermissionAsk, Questions, Workplace};
pub use crowd::Crowd;
pub use evaluator::{Evaluator, NoValue, Unguarded};
pub use fork::Fork;
pub use message::{Message, Messages};
pub use prompt_file::{FileKind, PromptFile};
pub use usage::Usage;
pub use wakes::{Report, ReportKind, Wakes};
pub use watch::{Changes, Head, Watch};

use crate::approval::Mode;
use crate::digest::Digest;
use crate::policy::{Cause, FailureClass};
use crate::price::PriceTable;
use crate::role::Role;
use crate::template::{Isolation, Kind};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One attempt of one step, fully rendered: nothing in it is an expression any more.
#[derive(Clone, Debug)]
pub struct StepCall {
    pub run: String,
    pub feature: String,
    /// `phase/operation`, with `[index]` in a fan-out.
    pub path: String,
    pub kind: Kind,
    /// `type` as the template has it: the kind, or a named operation (`research.market`).
    pub operation: String,
    pub attempt: u32,
    /// The step's key in hex: the idempotency key of at-least-once steps.
    pub key: String,
    /// Rendered `params` of the kind (DESIGN §3), with `prompt` and `system` for agents.
    pub params: Map<String, Value>,
    /// Files of the project that belong to the prompt.
    pub files: Vec<PromptFile>,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// What the agent may do; without one there are no limits of this sort.
    pub role: Option<Role>,
    /// How much an agent that does not ask may do.
    pub allow: Mode,
    /// The name of the conversation to go on with.
    pub session: Option<String>,
    pub isolation: Isolation,
    pub schema: Option<Value>,
    /// What `SAGE_INPUT` shall contain: `{params, inputs, steps, item?, index?}`.
    pub input: Value,
    pub timeout_ms: Option<u64>,
    pub idle_timeout_ms: Option<u64>,
    /// The attempt before this one was lost: it may have finished without anybody knowing.
    pub unknown: bool,
    /// It was asked to run again although it had an answer: an earlier one shall not be taken.
    pub fresh: bool,
    /// Why the answer of an attempt before this one was not good enough. Other troubles are not told.
    pub feedback: Option<String>,
    /// What people have said to its agent so far, in earlier attempts of the same work: each is told if the
    /// conversation does not know it.
    pub messages: Vec<Message>,
    /// A program's whole output is wanted, also what is too long for a result: it is kept in `stdout.log` of the
    /// scratch directory, and `stdoutBytes` of the result says how long it is.
    pub keep_output: bool,
}

/// Where an attempt works and how it is told to stop.
#[derive(Clone)]
pub struct StepCx {
    /// Default working directory: the project.
    pub project: PathBuf,
    /// A private, existing directory of this attempt (input file, logs); 0700.
    pub scratch: PathBuf,
    /// Inherited by every child process on purpose: as long as one of them lives, nobody resumes the run.
    pub children_lock: Option<Arc<std::fs::File>>,
    /// Inherited as well: what the attempt holds of shared limits is not free while one of them lives.
    pub proofs: Vec<Arc<std::fs::File>>,
    pub stop: StopSignal,
    /// The step seems stuck and is reminded to go on; an adapter that cannot do that ignores it.
    pub nudge: Nudge,
    /// Where an agent asks for permission.
    pub questions: Questions,
    /// What people say to its agent while it works.
    pub messages: Messages,
    /// Where it is told what a successful attempt did to the project, if somebody wants to know.
    pub watch: Option<Watch>,
    /// What its programs lose by others that run at the same time.
    pub crowd: Crowd,
    /// What models cost, for agents that do not say so themselves.
    pub prices: Arc<PriceTable>,
    /// A budget limits the attempt: where the agent allows it, no request begins before the engine has counted the last
    /// response.
    pub capped: bool,
    pub progress: Arc<dyn Fn(Progress) + Send + Sync>,
}

impl std::fmt::Debug for StepCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepCx").field("scratch", &self.scratch).finish_non_exhaustive()
    }
}

/// What a running attempt tells while it works. Never blocks.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A process was started for this attempt: journaled, so that a resume can make sure it is gone.
    Spawned { pid: u32, start_time: u64 },
    /// Something moved (output, tokens, a tool call): feeds the idle timeout.
    Alive,
    /// All of this attempt so far, not what is new, and what comes next.
    Usage(Usage, Stage),
    /// What an earlier attempt of the step had used when its owner was killed, as the agent's own records tell.
    Lost { attempt: u32, usage: Usage },
    /// What the target says about its limits while it works.
    Quota(QuotaSignal),
    /// How much of its account's allowance is used.
    Allowance(Allowance),
    /// Which session an agent's attempt belongs to, and what it knows of it.
    Session { id: String, continuity: Continuity },
}

/// Where a model is with its answer when usage is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It has begun to answer: this response is paid for whatever happens.
    Answering,
    /// It has answered; that may have been its last response.
    #[default]
    Answered,
    /// It has answered, and another request follows by itself.
    GoesOn,
}

/// What an agent still knows when it begins to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Continuity {
    /// Nothing was there before.
    New,
    /// Everything: the same conversation goes on.
    Resumed,
    /// Everything, in a copy of another conversation.
    Forked,
    /// Nothing: the conversation could not go on, and what it had been told is told again (R3).
    Reloaded,
}

/// What a refusal says about trying again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Refusal {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// When a used-up quota is filled again, in ms since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at_ms: Option<u64>,
}

/// Limits per minute as a target's answers state them, and what is left of them now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuotaSignal {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Level>,
}

/// How much of a subscription's allowance is used in one of its windows, as an agent tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allowance {
    /// `5-hour`, `7-day`
    pub window: String,
    pub used_percent: u32,
    /// In ms since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at_ms: Option<u64>,
    /// The agent itself warns that little is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
}

impl Allowance {
    /// From here on people are told without asking.
    const NEAR_PERCENT: u32 = 75;

    pub fn is_near(&self) -> bool {
        self.warning || self.used_percent >= Allowance::NEAR_PERCENT
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Level {
    pub limit: u64,
    pub left: u64,
    /// When it is full again, in ms from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_after_ms: Option<u64>,
}

/// A number that only grows and can be awaited, whatever the runtime.
#[derive(Debug, Default)]
struct Rising {
    value: std::sync::atomic::AtomicU32,
    wakers: std::sync::Mutex<Vec<std::task::Waker>>,
}

impl Rising {
    fn get(&self) -> u32 {
        self.value.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn wakers(&self) -> std::sync::MutexGuard<'_, Vec<std::task::Waker>> {
        self.wakers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn raise(&self, change: impl FnOnce(&std::sync::atomic::AtomicU32)) {
        change(&self.value);
        self.wakers().drain(..).for_each(std::task::Waker::wake);
    }

    async fn reached(&self, least: u32) {
        std::future::poll_fn(|cx| {
            if self.get() >= least {
                return std::task::Poll::Ready(());
            }
            let mut wakers = self.wakers();
            if !wakers.iter().any(|w| w.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            drop(wakers);
            // Raised between the check and the push: look again.
            if self.get() >= least { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

/// Counts reminders; cloned into the attempt, which looks or waits for the next one.
#[derive(Clone, Debug, Default)]
pub struct Nudge(Arc<Rising>);

impl Nudge {
    pub fn give(&self) {
        self.0.raise(|count| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        });
    }

    pub fn count(&self) -> u32 {
        self.0.get()
    }

    /// Resolves as soon as there were more than `seen` reminders.
    pub async fn after(&self, seen: u32) {
        self.0.reached(seen.saturating_add(1)).await;
    }
}

/// How an attempt is told to stop: `Graceful` (SIGTERM, then SIGKILL after the grace) or `Now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    No,
    Graceful,
    Now,
}

/// A cloneable stop flag that can be awaited.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<Rising>);

impl StopSignal {
    pub fn set(&self, stop: Stop) {
        self.0.raise(|level| {
            level.fetch_max(stop as u32, std::sync::atomic::Ordering::SeqCst);
        });
    }

    pub fn get(&self) -> Stop {
        match self.0.get() {
            0 => Stop::No,
            1 => Stop::Graceful,
            _ => Stop::Now,
        }
    }

    /// Resolves as soon as the signal is at least `level`.
    pub async fn reached(&self, level: Stop) {
        self.0.reached(level as u32).await;
    }
}

/// How an attempt ended. There is no "probably": whatever is not a checked success is a failure or a stop.
#[derive(Clone, Debug)]
pub enum StepOutcome {
    Succeeded {
        result: Value,
        usage: Usage,
    },
    Failed {
        class: FailureClass,
        /// What it is about, where the class alone does not say it.
        cause: Option<Cause>,
        message: String,
        partial: Option<Value>,
        usage: Usage,
        /// Of a rate limit or a used-up quota: when it is worth trying again.
        refusal: Option<Refusal>,
    },
    /// Stopped because the engine asked for it; its processes are gone.
    Stopped {
        usage: Usage,
    },
}

/// What a tool said of itself when it was used before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Another text when its description or its schemas are others.
    pub definition: String,
    /// Calling it twice is as good as once.
    pub repeatable: bool,
}

/// An attempt that was cut off because its owner was killed.
#[derive(Clone, Copy, Debug)]
pub struct CutAttempt<'a> {
    pub run: &'a str,
    pub step: &'a str,
    pub attempt: u32,
    pub agent: &'a str,
    /// The session that it belonged to.
    pub session: &'a str,
    pub prices: &'a PriceTable,
}

pub trait StepExecutor: Send + Sync {
    /// Runs one attempt to its end. Dropping the future also ends its processes.
    fn execute(&self, cx: StepCx, call: StepCall) -> BoxFuture<'static, StepOutcome>;

    /// An attempt has ended, and what is kept of its result is written: what it changed can be noted.
    fn ended(&self, _cx: StepCx, _call: StepCall) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// A run is about to be forked: what its steps have outside of the journal is made ready for the fork. Gives
    /// the session that stands for each one that the source has used, by the name that steps call it.
    fn fork(&self, _fork: &Fork) -> Result<BTreeMap<String, String>, String> {
        Ok(BTreeMap::new())
    }

    /// Ends what outlives single attempts, and gives it time to do so in order.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// What a person should know and was not told yet.
    fn take_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether an agent that was stopped goes on where it was, instead of beginning again.
    fn resumes(&self, _agent: &str) -> bool {
        false
    }

    /// Whether an agent that is told why its answer did not fit may give another one.
    fn reconsiders(&self, _agent: &str) -> bool {
        true
    }

    /// Whether an agent shows that it is at work: of one that prints only its answer, silence says nothing.
    fn shows_progress(&self, _agent: &str) -> bool {
        true
    }

    /// Who it is that would do an agent's step: another text when its program or its settings are others. What one
    /// gave is not taken for the other's. May look at files.
    fn fingerprint(&self, agent: &str, _project: &std::path::Path) -> String {
        agent.to_string()
    }

    /// How the files of the project look, for checks that are about them: another digest when one is another.
    fn look(&self, _project: &std::path::Path) -> Option<Digest> {
        None
    }

    /// What is known of a tool without asking its server. May look at files.
    fn known_tool(&self, _server: &str, _tool: &str) -> Option<KnownTool> {
        None
    }

    /// What an attempt had used that was cut off with its owner, as far as its agent's own records tell. May look at
    /// files.
    fn used_by(&self, _cut: &CutAttempt<'_>) -> Option<Usage> {
        None
    }

    /// Whether an agent tells what it used, as far as it knows it. What others use is estimated.
    fn tells_usage(&self, _agent: &str) -> bool {
        true
    }
}
