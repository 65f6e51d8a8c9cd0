//! Sandboxed TypeScript: code mode and code-first workflows.
//!
//! ```text
//!  review.ts --strip--> JavaScript of the same length --isolate--> a value, or what went wrong and where
//! ```
//! `strip` takes the types away without moving anything, so positions need no map. `isolate` is one QuickJS
//! with limits and without files, network, clock or chance. `code` runs what a model wrote, in a process of its own,
//! with the tools of MCP servers as functions (`typing`, `tools`) and without what belongs to people (`pii`).

pub mod code;
pub mod isolate;
pub mod pii;
pub mod strip;
pub mod tools;
pub mod typing;
pub mod workflow;

/// Types of `sage` and of the globals of Claude Code's scripts, for editors and `tsc`.
pub const DECLARATIONS: &str = include_str!("sage.d.ts");
