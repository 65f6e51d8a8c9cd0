//! The second door: MCP, for agents that use Sage as their tool.

#[cfg(debug_assertions)]
pub mod conformance;
pub mod transport;

mod placeholder;

pub use placeholder::SageServer;
