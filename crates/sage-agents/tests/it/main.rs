//! Everything here starts real processes under real keepers. Nothing sleeps to synchronise: conditions are
//! polled with a deadline, and every bench checks at its end that none of its processes is left.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

mod acp;
mod acp_real;
mod bench;
mod command;
mod ending;
mod fake;
mod fake_llm;
mod foreign;
mod nudge;
mod output;
mod owner;
mod server;
mod shell;
mod tree;
mod worktree;
