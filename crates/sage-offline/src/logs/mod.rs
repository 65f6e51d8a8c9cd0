//! Errors that already happened: stack traces and failed tests in what programs left behind, grouped and placed.
//!
//! ```text
//!   *.log, junit, pytest's last failures, a text that the user gave ──▶ traces ──▶ groups by message ──▶ findings
//! ```
//! The top frame that is a file of the project is the place to look. What looks like a secret is never shown.

mod files;
mod group;
mod reports;
mod secrets;
mod trace;
mod track;

pub(crate) use secrets::masked;
pub(crate) use track::track;
