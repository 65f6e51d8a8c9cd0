//! A template as its author meant it: phases of operations, typed, with positions for error messages.
//!
//! Made by `read` from JSON or YAML and checked by `check`; nothing else builds one.
//! Whatever the author left out has its default here, so later code never asks "was it given?"
//! unless the answer matters.

use serde_json::Value;

use crate::budget::Cap;
use crate::inputs::Inputs;
use crate::policy::{
    CachePolicy, Fallback, Hedge, Join, OnBudget, OnFailure, OnJoin, OnUnknown, Retry, RetryBudget,
    StallPolicy, Tolerate,
};
use crate::role::Role;

/// Byte offsets into the template's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// A name together with the place where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub span: Span,
}

/// An expression or text as written; compiled by `check`, evaluated by the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Template {
    pub name: String,
    pub description: Option<String>,
    pub timeout_ms: Option<u64>,
    pub inputs: Inputs,
    pub budget: Option<Cap>,
    pub on_budget: OnBudget,
    pub retry_budget: Option<RetryBudget>,
    /// P0 to P3: of all its steps that have none of their own.
    pub priority: Option<u8>,
    pub phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
pub struct Phase {
    pub id: String,
    pub name: String,
    pub span: Span,
    pub join: Join,
    pub on_join: OnJoin,
    pub on_failure: OnFailure,
    pub dependencies: Vec<Named>,
    pub operations: Vec<Operation>,
    pub timeout_ms: Option<u64>,
    pub repeat: Option<Repeat>,
    pub budget: Option<Cap>,
}

#[derive(Clone, Debug)]
pub struct Repeat {
    pub from: Named,
    pub while_: Source,
    pub max: u32,
}

/// Where an operation works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In the project itself.
    #[default]
    None,
    /// In a git worktree and on a branch of its own.
    Worktree,
}

impl Isolation {
    pub fn name(self) -> &'static str {
        match self {
            Isolation::None => "none",
            Isolation::Worktree => "worktree",
        }
    }
}

/// What an operation does, with the parameters that only this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Shell,
    Sleep,
    Agent,
    Tool,
    Script,
    Approval,
    Workflow,
    Verify,
    Synthesize,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Shell,
        Kind::Sleep,
        Kind::Agent,
        Kind::Tool,
        Kind::Script,
        Kind::Approval,
        Kind::Workflow,
        Kind::Verify,
        Kind::Synthesize,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Shell => "shell",
            Kind::Sleep => "sleep",
            Kind::Agent => "agent",
            Kind::Tool => "tool",
            Kind::Script => "script",
            Kind::Approval => "approval",
            Kind::Workflow => "workflow",
            Kind::Verify => "verify",
            Kind::Synthesize => "synthesize",
        }
    }

    /// Sleeping, waiting for a person and holding other steps occupy no slot.
    pub fn holds_slot(self) -> bool {
        !matches!(self, Kind::Sleep | Kind::Approval | Kind::Workflow | Kind::Script)
    }
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub id: String,
    pub span: Span,
    pub kind: Kind,
    /// `type` as written: the kind itself, or the named operation it came from.
    pub type_name: String,
    /// `params` merged with the shorthand fields; strings in it may be Jinja (see `expr::render_params`).
    pub params: serde_json::Map<String, Value>,
    /// True if any rendered string of `params` or `prompt` has Jinja in it.
    pub dynamic: bool,
    pub needs: Vec<Named>,
    pub when: Option<Source>,
    pub foreach: Option<Source>,
    pub max_parallel: Option<u32>,
    pub tolerate: Option<Tolerate>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub role: Option<Role>,
    /// A named conversation to go on with; may be Jinja.
    pub session: Option<Source>,
    pub isolation: Isolation,
    pub prompt: Option<Source>,
    pub schema: Option<Value>,
    /// The filter as one jq program (`top` and `minRelevance` are compiled to jq).
    pub filter: Option<Source>,
    /// What the filter lets through has at most so many tokens; the least relevant goes first.
    pub max_tokens: Option<u32>,
    pub output: Option<Source>,
    pub expect: Option<Value>,
    pub retry: Retry,
    /// Of one attempt.
    pub timeout_ms: Option<u64>,
    /// Of all attempts together, active time.
    pub step_timeout_ms: Option<u64>,
    pub idle_timeout_ms: Option<u64>,
    /// How long it may wait for its turn once it is ready.
    pub queue_timeout_ms: Option<u64>,
    /// Pools and how many units of each one attempt takes.
    pub pools: Vec<(String, u32)>,
    /// Targets that it depends on besides its agent and model: `host:api.example.com`.
    pub targets: Vec<String>,
    pub priority: Option<u8>,
    pub fallback: Option<Fallback>,
    pub hedge: Option<Hedge>,
    pub stall: StallPolicy,
    pub budget: Option<Cap>,
    pub cache: Option<CachePolicy>,
    pub on_unknown: OnUnknown,
}
