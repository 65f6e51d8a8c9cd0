//! Everything here starts real processes under real keepers. Nothing sleeps to synchronise: conditions are
//! polled with a deadline, and every bench checks at its end that none of its processes is left.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

mod acp;
mod acp_real;
mod bench;
mod claude;
mod claude_desk;
mod claude_mcp;
mod claude_prices;
mod claude_sessions;
mod claude_stand_in;
mod claude_tools;
mod codex;
mod codex_bench;
mod codex_faults;
mod command;
mod ending;
mod evaluator;
mod fake;
mod fake_llm;
mod fence;
mod foreign;
mod llm;
mod mcp;
mod mcp_conformance;
mod mcp_http;
mod mcp_hub;
mod mcp_pins;
mod mcp_real;
mod nudge;
mod output;
mod owner;
mod server;
mod shell;
mod shell_reading;
mod tree;
mod worktree;
