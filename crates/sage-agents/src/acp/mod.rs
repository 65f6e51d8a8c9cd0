//! Every agent that speaks the Agent Client Protocol: JSON-RPC over the program's standard input and output.
//!
//! ```text
//! turn.rs   the program under its keeper, the pipes, how both come to an end
//!   wire.rs     lines of the program <-> frames of the protocol
//!   dialog.rs   initialize, log in, open the session, settings, prompt, cancel
//!   hear.rs     what the agent says and does: messages, tool calls, usage
//!   permit.rs   what it asks for         files.rs  what it reads and writes through us
//!   elicit.rs   what it wants to know    content.rs  files of the prompt
//!   names.rs    its tools under the names of other agents
//!   verdict.rs  how the turn ended       failure.rs  what an error means
//! ```
//! One program per turn: the conversation goes on by its id, in another process.

mod auth;
mod content;
mod dialog;
mod elicit;
mod failure;
mod files;
mod hear;
mod message;
mod names;
mod permit;
mod probe;
mod servers;
mod settings;
mod tool;
mod turn;
mod usage;
mod verdict;
mod wire;

use sage_core::port::BoxFuture;

use crate::agent::{Agent, AgentConfig, Capabilities, Feed, Order, Probe, Turn};
use crate::attempt::Attempt;

/// What an agent can do is known only when it has been asked, at the start of each turn.
#[derive(Clone, Copy, Debug)]
pub struct Acp;

impl Agent for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
            asks: true,
            questions: true,
            plans: true,
            effort: true,
            mcp: true,
            ..Capabilities::default()
        }
    }

    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        Box::pin(probe::probe(config))
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(turn::take(attempt, order, feed))
    }
}
