//! The second door: MCP, for agents that use Sage as their tool.

pub mod transport;

mod placeholder;

pub use placeholder::SageServer;
