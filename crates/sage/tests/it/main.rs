//! Integration tests of the binary and of the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod approvals;
mod asks;
mod background;
mod breakers;
mod budget_cli;
mod budgets;
mod calls;
mod children;
mod conflict;
mod damage;
mod dsl;
mod edits;
mod foreign;
mod handoff;
mod hedges;
mod help;
mod hostile;
mod inbox;
mod limits_cli;
mod names;
mod place;
mod quota;
mod real_agents;
mod sequential;
mod shared;
mod signals;
mod storm;
mod tidy;
mod told;
mod wake_storm;
mod wire;
mod worktree;
