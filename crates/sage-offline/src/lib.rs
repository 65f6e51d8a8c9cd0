//! What can be said about a project without a model: real analysis of its files, documents and history.
//!
//! One function, `perform`: the name of an operation and what earlier steps found in, JSON out. It reads the
//! project and writes nothing. What it cannot know it says, as open questions; it never invents code or facts.
//! It runs in a process of its own, so that a file that breaks a parser cannot break a run.

pub mod code;
mod draft;
mod finding;
mod git;
mod history;
mod logs;
mod parts;
mod plain;
mod request;
pub mod research;
mod shell;
mod verify;
mod walk;
mod words;

pub use finding::{Claim, Finding, Report};
pub use request::{Before, Request, Trouble};
pub use verify::{Baseline, Executed, Stretch, uncommitted};
pub use walk::{File, Tree};
pub use words::{share, terms};

use serde_json::Value;

/// Does one operation.
pub fn perform(request: &Request) -> Result<Value, Trouble> {
    match request.operation.as_str() {
        name if research::OPERATIONS.contains(&name) => research::perform(request),
        name if draft::OPERATIONS.contains(&name) => draft::perform(request),
        name if verify::OPERATIONS.contains(&name) => verify::perform(request),
        "patterns.extract"
        | "analyze.code"
        | "quality.review"
        | "performance.profile"
        | "audit.performance"
        | "audit.security"
        | "audit.accessibility"
        | "qa.backend"
        | "qa.frontend" => code::perform(request),
        other => Err(Trouble::UnknownOperation(other.to_string())),
    }
}
