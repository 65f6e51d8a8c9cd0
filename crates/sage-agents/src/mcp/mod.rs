//! `tool` steps: calls of tools of MCP servers.
//!
//! ```text
//! step a --+                       one process and one connection per server,
//! step b --+--> Servers --> Connection ==stdio== server     started on first use, kept until the end,
//! step c --+                       started again only after it has died
//! ```
//! What must stay true: a workflow starts each server once, however many of its steps call it at once (R3); a
//! server never outlives this process; a call that nobody waits for any more is cancelled.

mod call;
mod connection;
mod listener;
mod server;
mod servers;
mod verdict;

pub use call::run;
pub use server::McpServer;
pub use servers::Servers;
