//! Code, read with real parsers: what a project does everywhere, and where it does something else.
//!
//! ```text
//! Tree -> survey -> FileFacts per file -> patterns, quality, performance, security, ... -> Report
//! ```
//!
//! A fact is something that stands in the text. What a report makes of it says how sure it is.

mod coverage;
mod extract;
mod facts;
mod grammar;
mod imports;
mod look;
mod names;
mod near;
mod patterns;
mod survey;

use serde_json::Value;

use crate::request::{Request, Trouble};

pub use facts::{Constant, Errors, FileFacts, Function, Import, Span, Todo, Type};
pub use survey::{Survey, survey};

/// The operations on code; nothing for a name that is none of them.
pub(crate) fn perform(request: &Request) -> Option<Result<Value, Trouble>> {
    Some(match request.operation.as_str() {
        "patterns.extract" => patterns::extract(request),
        _ => return None,
    })
}
