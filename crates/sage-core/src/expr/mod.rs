//! The two languages of a template: jq for data, Jinja for prose. Nothing is evaluated while loading.
//!
//! Both see one context: `feature, title, inputs, run, steps["phase/operation"].{result, full, pointer,
//! state, artifacts}` and, in a fan-out, `item` and `index`. Compiling and evaluating are apart, and both are plain
//! functions. Neither reads a clock, the environment or a file, so an equal context gives an equal value. What is
//! not tame (`Order::is_tame`) may never end, so the engine has it evaluated where it can be stopped.

mod brief;
mod jinja;
mod jq;
mod mention;
mod order;
mod prelude;
mod result_schema;
mod tame;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

pub use jinja::{Jinja, is_dynamic, is_rendered_dynamic, render, render_params};
pub use jq::{Jq, is_true};
pub use mention::{Language, Mention, inputs_of, mentions, references};
pub use order::Order;
pub use result_schema::ResultSchema;

/// What both languages can name.
pub const CONTEXT: [&str; 7] = ["feature", "title", "inputs", "run", "steps", "item", "index"];

/// Why an expression does not compile or has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    pub message: String,
    /// Bytes of the expression's own text that are meant, if known.
    pub range: Option<Range<usize>>,
    pub hint: Option<String>,
}

impl ExprError {
    pub(crate) fn new(message: impl Into<String>) -> ExprError {
        ExprError { message: message.into(), range: None, hint: None }
    }

    pub(crate) fn at(mut self, range: Range<usize>) -> ExprError {
        self.range = Some(range);
        self
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExprError {}
