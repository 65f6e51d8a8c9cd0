//! The plan as a picture: text for terminals, Mermaid and DOT for everything else. Of a run, each step is
//! marked with its state.

mod dot;
mod label;
mod mermaid;
#[cfg(test)]
mod tests;
mod text;

pub use dot::{dot, dot_run};
pub use mermaid::{mermaid, mermaid_run};
pub use text::{text, text_run};
