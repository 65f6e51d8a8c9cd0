//! Integration tests of the binary and of the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod approvals;
mod budget_cli;
mod children;
mod conflict;
mod damage;
mod dsl;
mod edits;
mod help;
mod hostile;
mod limits_cli;
mod names;
mod place;
mod sequential;
mod signals;
mod storm;
mod tidy;
mod wire;
