//! What git remembers: commits near a problem, what was taken back, and files that change together.
//!
//! ```text
//!   git log --name-only (bounded, with a deadline) ──▶ commits ──▶ near the title? a fix? a revert? hot files?
//! ```
//! Names of people are shown, their addresses never.

mod log;
mod similar;

pub(crate) use log::{Commit, commits};
pub(crate) use similar::similar;
