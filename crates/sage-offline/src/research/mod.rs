//! What the project's own documents, its dependencies' documents, its rules and its history say about a feature.
//!
//! No network and no model: everything found has a place in a file on this disk, and what only the world, a person
//! or a model can know is asked, not answered.

mod commands;
#[cfg(test)]
pub(crate) mod tests;

pub use commands::{Command, Commands, commands};
