//! The `Agent` port: one turn of a conversation with a coding agent or a model, whatever program it is.
//!
//! ```text
//! agent::run --Order--> Agent::turn (claude, codex, acp, llm) --> program or endpoint
//!     |      <--Turn--        |
//!  session                    +--Feed--> text, tools, usage, quota, questions, the conversation's own id
//! ```
//! What must stay true: an adapter never decides about retries, money or permissions; success is only what the
//! agent's own terminal event says, never an exit code; after `turn` nothing of the agent is left running.

mod asks;
mod config;
pub mod effort;
mod feed;
mod fingerprint;
mod inquire;
mod named_servers;
mod order;
mod program;
mod project;
mod reach;
mod recover;
mod run;
mod turn;
mod version;

use std::path::Path;

use sage_core::port::BoxFuture;
use serde::Serialize;
use serde_json::Value;

pub use asks::describe;
pub use config::AgentConfig;
pub use feed::{Feed, News, OnNews};
pub use inquire::{ASK_TOOL, PLAN_TOOL, answered};
pub use named_servers::NamedServers;
pub use order::{Conversation, Order};
pub use program::{on_path, search_path};
pub use project::{ProjectPart, TrustedParts};
pub use reach::Reach;
pub use recover::{CutTurn, Recovered};
pub use run::run;
pub use turn::Turn;
pub(crate) use version::question;
pub use version::{Fit, Tested};

use crate::acp::Acp;
use crate::attempt::Attempt;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::foreign::Foreign;
use crate::llm::Llm;

/// Everything that speaks this port, by the adapter's name.
pub fn adapter(name: &str) -> Option<&'static dyn Agent> {
    ADAPTERS.iter().copied().find(|adapter| adapter.name() == name)
}

static ADAPTERS: &[&dyn Agent] = &[&Claude, &Codex, &Acp, &Llm, &Foreign];

/// One kind of agent. Stateless: everything it needs to know comes with the order.
pub trait Agent: Send + Sync {
    /// The adapter's name: `claude`.
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Whether it is there, which version it is and whether it is logged in. Costs no tokens.
    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe>;

    /// Whether a new conversation gets the id that the order proposes; else the agent tells its own.
    fn chooses_id(&self) -> bool {
        false
    }

    /// Whether a conversation can go on, as far as that can be told without asking the agent.
    fn knows(&self, _config: &AgentConfig, _conversation: &str, _cwd: &Path) -> bool {
        true
    }

    /// Whether the agent's own record of the conversation has this prompt: killed before its first event, it may
    /// have heard it all the same.
    fn has_heard(&self, _config: &AgentConfig, _conversation: &str, _prompt: &str) -> bool {
        false
    }

    /// The agent's own command, word by word, with which a person goes on with a conversation.
    fn resume_command(&self, _config: &AgentConfig, _conversation: &str) -> Option<Vec<String>> {
        None
    }

    /// Why it cannot use an MCP server that it would be given, as far as its definition tells.
    fn refuses_server(&self, _name: &str, _server: &Value) -> Option<String> {
        None
    }

    /// What a turn has used that was cut off with its owner, as the agent's own records of the conversation tell.
    fn used(&self, _config: &AgentConfig, _conversation: &str, _cut: &CutTurn<'_>) -> Option<Recovered> {
        None
    }

    /// When it takes in what a person says while it works.
    fn hears(&self) -> Hears {
        Hears::AfterTurn
    }

    /// Says the order's prompt and works until the agent has answered.
    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn>;
}

/// What an agent can do, beyond answering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// A conversation can go on later, in another process.
    pub resume: bool,
    pub fork: bool,
    /// Asks before it uses a tool.
    pub asks: bool,
    /// Sees to it itself that an answer fits a schema.
    pub schema: bool,
    /// Tells what it uses while it works, not only at its end.
    pub live_usage: bool,
    /// Ends by itself at a number of turns.
    pub max_turns: bool,
    /// Ends by itself at an amount of money.
    pub max_budget: bool,
    /// Can ask a person something.
    pub questions: bool,
    /// Can make a plan first, and work when it is approved.
    pub plans: bool,
    /// Can be told how much to think.
    pub effort: bool,
    /// Has agents of its own that a step can name.
    pub agent_types: bool,
    /// Has settings, skills and agents of the project that a step can switch on.
    pub project: bool,
    /// Can be given MCP servers by name.
    pub mcp: bool,
}

/// When an agent takes in what a person says while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// With its next request to the model.
    Now,
    /// When its turn is over, in another one.
    AfterTurn,
    Never,
}

/// `sessions`: whether conversations can go on in another process.
pub fn hears(config: &AgentConfig, sessions: bool) -> Hears {
    match (config.adapter.as_str(), adapter(&config.adapter)) {
        // Where its script says so.
        ("fake", _) => Hears::Now,
        ("acp", Some(_)) => Hears::AfterTurn,
        (_, Some(agent)) if agent.hears() == Hears::Now => Hears::Now,
        (_, Some(agent)) if sessions && agent.capabilities().resume => Hears::AfterTurn,
        _ => Hears::Never,
    }
}

/// What is known about an agent on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Where its program is; an endpoint has its address here.
    pub found: Option<String>,
    pub version: Option<String>,
    pub auth: Auth,
    /// What to do about what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Auth {
    #[default]
    Unknown,
    Missing,
    Ready,
}
