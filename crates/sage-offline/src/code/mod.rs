//! Code, read with real parsers: what a project does everywhere, and where it does something else.
//!
//! ```text
//! Tree -> survey -> FileFacts per file -> patterns, quality, performance, security, ... -> Report
//! ```
//!
//! A fact is something that stands in the text. What a report makes of it says how sure it is.

mod extract;
mod facts;
mod grammar;
mod survey;

pub use facts::{Constant, Errors, FileFacts, Function, Import, Span, Todo, Type};
pub use survey::{Survey, survey};
