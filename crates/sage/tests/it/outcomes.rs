//! The outcome tables of the real agents: one row for each way in which an agent, its model or its machine can end a
//! step.
//!
//! ```text
//! Row (script of the endpoint, step, what happens meanwhile) --play--> Seen --> equal to what the row wants?
//! ```
//! Each row is a project of its own with one step, run by the binary with a real agent, whose model is a scripted
//! endpoint. Every row states verdict, class, attempts, requests at the endpoint, tokens by class, cost, failures that
//! count against the provider; and nothing may be left running. `--no-capture` shows the table. An agent that is not
//! installed is skipped with a reason.

mod agent;
mod claude;
mod claude_acp;
mod claude_asks;
mod codex;
mod codex_acp;
mod gemini;
mod llm;
mod opencode;
mod play;
mod qwen;
mod row;
mod stand_in;
