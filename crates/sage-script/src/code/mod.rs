//! Code mode: a model writes TypeScript that calls tools; only what the code returns comes back to the model.
//!
//! ```text
//!  CodeSession (parent)                              sage __script (a process of its own, per run)
//!    code, input          -------start------------>   types off, imports asked for, one QuickJS isolate
//!    modules of servers   <------need / modules--->
//!    Tools::call, at once <------call / answer---->   await search({..}): at most 16 at a time
//!      results: PII hidden, arguments: PII shown
//!    handles, counts      <------done / failed-----   value over the cap stays with the session
//! ```
//! The process has no files, network, environment, clock or children, little memory and little time, and is killed at
//! its limit whatever it does. What a kernel can add to that (Landlock, seccomp) is not here yet.

mod advice;
mod answer;
mod handles;
mod limits;
mod modules;
mod process;
mod session;
mod talk;
mod wire;
mod worker;

pub use answer::{CodeAnswer, CodeFailure, Console, Counts, FailureKind};
pub use limits::{CodeLimits, MAX_MESSAGE_BYTES};
pub use modules::{NoSkills, Skills};
pub use session::{CodeRun, CodeSession, Tools};
pub use worker::worker;

/// Types of what code can import from `sage`, for editors.
pub const DECLARATIONS: &str = include_str!("code.d.ts");

/// The first argument of the process that runs code.
pub const SCRIPT_ARG: &str = "__script";
