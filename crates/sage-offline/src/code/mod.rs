//! Code, read with real parsers: what a project does everywhere, and where it does something else.
//!
//! ```text
//! Tree -> survey -> FileFacts per file -> patterns, quality, performance, security, ... -> Report
//! ```
//!
//! A fact is something that stands in the text. What a report makes of it says how sure it is.

mod accessibility;
mod bug;
mod coverage;
mod extract;
mod facts;
mod grammar;
mod imports;
mod issue;
mod look;
mod names;
mod near;
mod patterns;
mod performance;
mod qa;
mod quality;
mod security;
mod survey;

use serde_json::Value;

use crate::request::{Request, Trouble};

pub(crate) use facts::Note;
pub use facts::{Constant, Errors, FileFacts, Function, Import, Span, Todo, Type};
pub use survey::{Survey, survey};

/// Does one of the operations on code.
pub(crate) fn perform(request: &Request) -> Result<Value, Trouble> {
    match request.operation.as_str() {
        "patterns.extract" => patterns::extract(request),
        "analyze.code" => bug::analyze(request),
        "quality.review" => quality::review(request),
        "performance.profile" | "audit.performance" => performance::audit(request),
        "audit.security" => security::audit(request),
        "audit.accessibility" => accessibility::audit(request),
        "qa.backend" => qa::check(request, qa::Side::Backend),
        "qa.frontend" => qa::check(request, qa::Side::Frontend),
        other => Err(Trouble::UnknownOperation(other.to_string())),
    }
}

#[cfg(test)]
mod tests;
