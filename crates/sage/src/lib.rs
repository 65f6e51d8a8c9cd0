//! The doors of Sage. They hold no decisions: all of them call the same engine and show the same wire types.

#[macro_use]
mod say;

pub mod cli;
pub mod code;
pub mod command_line;
pub mod display;
pub mod file_limit;
pub mod graph;
pub mod mcp;
pub mod out;
pub mod trust;
