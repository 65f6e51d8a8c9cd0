//! Clients that others wrote, each calling every tool of a running `sage mcp`: the official SDKs in Python and
//! TypeScript, the Inspector, Claude Code and Codex.
//!
//! All of them play the same story. In it a run is longer than the client's patience: one call times out at the
//! client, the run does not care, and its result arrives by asking for the status.

mod agents;
mod inspector;
mod sdk;
mod story;
