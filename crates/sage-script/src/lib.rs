//! Sandboxed TypeScript: code mode and code-first workflows.

pub mod pii;
pub mod tools;
pub mod typing;
