//! The MCP door: Sage's tools for any client that speaks the Model Context Protocol. It holds no decisions.
//!
//! ```text
//! client -> transport -> SageServer -> tools/<one file each> -> the engine, as the command line calls it
//!                             |
//!                             +-> resources: runs, one run, the roster
//! ```
//! What must stay true: a run is never tied to a client. It is started in the background and owned by a process
//! of its own; a call only waits for it. Every call answers within 45 seconds, whatever hangs.

mod answer;
mod args;
mod call;
#[cfg(debug_assertions)]
pub mod conformance;
pub mod definitions;
mod error;
mod progress;
mod resources;
mod server;
mod tools;
pub mod transport;
mod wait;
mod workshop;

pub use server::SageServer;
