//! Code mode against the real process.

mod attacks;
mod code;
mod desk;
