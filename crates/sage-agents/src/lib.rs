//! Everything that a Sage step can call: child processes, shell steps, the `command` and `fake` agents.
//!
//! ```text
//! engine --StepCall--> Executor --+-- shell    a script or a program
//!        <-StepOutcome-           +-- command  any program as an agent: prompt in, text or JSON out
//!                                 +-- fake     the scripted agent, a real process with real faults
//!                                 +-- offline  no model: analysis of the project, a process of our own
//!                                 +-- mcp      tools of servers, which stay for the whole workflow
//!                                        each of them: process::run -> keeper -> program -> ...
//! ```
//! What must stay true: an attempt that is over, stopped, dropped or orphaned leaves no process behind,
//! and only a checked outcome is a success.

mod acp;
pub mod activity;
pub mod agent;
mod attempt;
pub mod changes;
mod claude;
mod codex;
mod command;
mod complaint;
mod evaluator;
mod executor;
mod fake;
pub mod fake_llm;
mod fake_mcp;
mod footprint;
mod foreign;
mod https;
mod json_text;
mod lines;
pub mod llm;
pub mod mcp;
mod measure;
mod note;
mod offline;
mod outcome;
mod params;
mod process;
mod prompt_files;
mod secrets;
pub mod session;
mod shell;
mod synthesize;
mod talk;
pub mod text_file;
mod told_time;
pub mod worktree;

pub use agent::AgentConfig;
pub use evaluator::{EVALUATE_ARG, Evaluators, worker_main as evaluate_main};
pub use executor::{Executor, ExecutorConfig, Untrusted, own_executable};
pub use fake::{FAULTS, fake_agent_main};
pub use fake_mcp::fake_mcp_main;
pub use footprint::look;
pub use mcp::McpServer;
pub use offline::{Answer as OfflineAnswer, OFFLINE_ARG};
pub use process::{
    Above, KEEPER_ARG, Report, Said, Silent, Spec, Swept, above, accompany, ask, ask_aside, begin, keep_with,
    keeper_main, lock_holders, start_time, sweep,
};
