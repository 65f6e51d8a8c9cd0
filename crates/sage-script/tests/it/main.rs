//! Code mode against the real process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod code;
mod desk;
