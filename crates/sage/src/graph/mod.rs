//! The plan as a picture: text for terminals, Mermaid and DOT for everything else. Of a run, each step is
//! marked with its state.

mod dot;
mod label;
mod mermaid;
#[cfg(test)]
mod tests;
mod text;

use sage_core::run::Run;

pub use dot::{dot, dot_run};
pub use mermaid::{mermaid, mermaid_run};
pub use text::{text, text_run};

/// A run to draw. Times count up to `clock_ms`; `driven` says that a process owns it or will.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'a> {
    pub run: &'a Run,
    pub clock_ms: u64,
    pub driven: bool,
}
