//! MCP servers: their tools, for `tool` steps, for code and for people.
//!
//! ```text
//! call (tool steps) --> Hub --> Connection --> meeting (two lifecycles) --> program (stdio) or http (address)
//!                        |          +--> listener (progress, changes)
//!                        +--> pins (what is trusted), arguments (what fits)
//! ```
//! What must stay true: a workflow starts each server once, however many of its steps call it at once (R3); a
//! server never outlives this process; a call that nobody waits for any more is cancelled.

mod answer;
mod arguments;
mod bound;
mod call;
mod connection;
mod difference;
mod environment;
mod http;
mod hub;
mod listener;
mod meeting;
mod pins;
mod probe;
mod program;
mod server;
mod tool;
mod trial;
mod trouble;
mod wire;

pub use answer::{ToolAnswer, ToolFailure};
pub(crate) use call::run;
pub use hub::{Acquaintance, Hub, HubConfig, untrusted};
pub use listener::{OnProgress, ToolProgress};
pub use pins::Pin;
pub use server::{Lifecycle, McpServer, check_address};
pub use tool::Tool;
pub use trial::mcp_client_main;
