//! Sandboxed TypeScript: code mode and code-first workflows.
//!
//! ```text
//!  review.ts --strip--> JavaScript of the same length --isolate--> a value, or what went wrong and where
//! ```
//! `strip` takes the types away without moving anything, so positions need no map. `isolate` is one QuickJS
//! with limits and without files, network, clock or chance.

pub mod isolate;
pub mod strip;
