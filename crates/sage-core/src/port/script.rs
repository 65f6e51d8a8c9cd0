//! The port to workflows in code: the engine runs their calls as steps, whoever runs the code only computes.
//!
//! ```text
//!  engine                                   the script, on a thread of its own
//!    start(program, input, recorded) ----->   runs from the beginning; calls with a record are answered from it,
//!    <----- Rests { taken, calls [..] }       in recorded order, without the engine
//!    settled (one at a time, journal order) ->
//!    <----- Ended(value or failure)
//! ```
//! A call is known by its identity (what it asks for) and its ordinal among equal ones, never by its position:
//! so an edited script, or one that comes another way, finds what was done already.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::policy::{Cause, FailureClass};

/// Whose words a script uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `export default async (sage, input) => ...`
    #[default]
    Sage,
    /// A workflow script of Claude Code: `export const meta`, globals, top-level `await` and `return`.
    Claude,
}

impl Dialect {
    /// By the first statement: Claude Code's scripts begin with `export const meta`, and export nothing else.
    pub fn of(text: &str) -> Dialect {
        let begins = |text: &str| {
            let mut words = text.split_whitespace();
            words.next() == Some("export")
                && words.next() == Some("const")
                && words.next().is_some_and(|word| word.split(['=', ':']).next() == Some("meta"))
        };
        let exports = text.lines().any(|line| line.trim_start().starts_with("export default"));
        if begins(without_comments(text)) && !exports { Dialect::Claude } else { Dialect::Sage }
    }
}

/// From the first statement on.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{FEFF}').trim_start();
    loop {
        let after = if let Some(line) = rest.strip_prefix("//") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(block) = rest.strip_prefix("/*") {
            block.split_once("*/").map_or("", |(_, after)| after)
        } else if let Some(line) = rest.strip_prefix("#!") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else {
            return rest;
        };
        rest = after.trim_start();
    }
}

/// A module of a workflow in code, as it was when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// As other modules import it, from the folder of the first: `./lib/rank.ts`.
    pub path: String,
    pub text: String,
}

impl Program {
    /// The step, and the phase, of a template that is one script.
    pub const STEP: &str = "script";
    pub const PHASE: &str = "main";
}

#[derive(Clone, Debug)]
pub struct Program {
    /// For messages: `review.ts`.
    pub name: String,
    pub dialect: Dialect,
    pub text: String,
    pub modules: Vec<Module>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    pub memory_bytes: u64,
    pub stack_bytes: u64,
    /// Thread CPU time between two calls that the script waits for, not wall time.
    pub cpu_ms: u64,
    /// Calls of one script.
    pub max_calls: u32,
    /// Agents that a script of Claude Code may call.
    pub max_agents: u32,
    /// Items of one list given to `parallel` or `pipeline`.
    pub max_items: u32,
    /// Scripts of a run that are in memory at once. It limits no work: one that only waits is put aside.
    pub max_living: u32,
}

impl Default for ScriptLimits {
    fn default() -> ScriptLimits {
        ScriptLimits {
            memory_bytes: 50 << 20,
            stack_bytes: 1 << 20,
            cpu_ms: 10_000,
            max_calls: 100_000,
            max_agents: 1_000,
            max_items: 4_096,
            max_living: 64,
        }
    }
}

/// JSON as text, here or in a blob that is read when it is needed.
#[derive(Clone, Debug)]
pub enum Text {
    Here(Arc<str>),
    Blob(Digest),
}

#[derive(Clone, Debug)]
pub enum CallOutcome {
    Value(Text),
    Failed {
        class: FailureClass,
        cause: Option<Cause>,
        message: String,
    },
    /// It was stopped or skipped by a person or the engine.
    Cancelled,
}

/// A call that has come to its end, in the order of the journal.
#[derive(Clone, Debug)]
pub struct Settled {
    pub number: u32,
    /// What the script's clock shows from now on.
    pub at_ms: u64,
    /// Tokens that the run has used up to here.
    pub spent: u64,
    pub outcome: CallOutcome,
}

/// A call of an earlier turn.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub number: u32,
    pub identity: Digest,
    pub ordinal: u32,
}

pub struct ScriptStart {
    pub program: Arc<Program>,
    pub input: Value,
    pub feature: String,
    pub title: String,
    /// What `Math.random` starts from.
    pub seed: u64,
    /// What the script's clock shows at first.
    pub now_ms: u64,
    /// Tokens that the run may use in all, for `budget`.
    pub budget: Option<u64>,
    pub limits: ScriptLimits,
    pub calls: Vec<Recorded>,
    /// Those of `calls` that have ended, in the order in which they did.
    pub settled: Vec<Settled>,
    /// Lines that were logged before: they are not said again.
    pub logged: u32,
    pub load: Arc<LoadText>,
    /// Whether an operation can be called at all; if not, why. Asked when a call without a record is made.
    pub check: Arc<CheckCall>,
}

pub type CheckCall = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// Reads a result that is kept in a blob.
pub type LoadText = dyn Fn(&Digest) -> Result<Arc<str>, String> + Send + Sync;

impl std::fmt::Debug for ScriptStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptStart").field("program", &self.program.name).finish_non_exhaustive()
    }
}

/// A call without a record. Its number is the next free one.
#[derive(Clone, Debug)]
pub struct NewCall {
    pub number: u32,
    pub identity: Digest,
    pub ordinal: u32,
    /// An operation as a template would have it, with `type`; nothing in it is an expression.
    pub operation: Value,
    /// What to call its step; made a slug by the engine.
    pub label: String,
    /// The group that was open when it was made: `phase("Review")`.
    pub group: Option<String>,
    /// Where it was made: `review.ts:12:9`.
    pub at: Option<String>,
}

#[derive(Clone, Debug)]
pub enum ScriptSays {
    /// It rests: it has taken `taken` live settlements in all (recorded ones do not count), nothing of its own is
    /// left to do, and these are the calls without a record that it made since it last rested, in order. Said
    /// after every turn that takes a live settlement, also without calls, and once after the start: the engine
    /// knows by it that nothing is computed any more.
    ///
    /// `again`: calls with a record that have not ended, and that it made since then.
    Rests {
        taken: u32,
        calls: Vec<NewCall>,
        again: Vec<u32>,
    },
    Log(String),
    Ended(Result<Value, ScriptFailure>),
}

/// Why a script ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFailure {
    /// It threw: its own verdict. `message` has the name, the text and where it was thrown.
    Threw { message: String },
    /// The cancellation went through to the end.
    Cancelled,
    /// A limit, a stuck script, a program that cannot be read: not the script's verdict, and worth another try.
    Broken { message: String },
}

pub trait ScriptRun: Send + Sync {
    /// Never blocks.
    fn settled(&self, settled: Settled);

    /// Pending calls reject, `catch` and `finally` run, later calls reject at once; `Ended` follows.
    fn cancel(&self);
}

pub trait ScriptHost: Send + Sync {
    /// Runs the program on a thread of its own; dropping the answer ends it at its next step. `say` never blocks.
    fn start(&self, start: ScriptStart, say: Arc<dyn Fn(ScriptSays) + Send + Sync>) -> Box<dyn ScriptRun>;
}
