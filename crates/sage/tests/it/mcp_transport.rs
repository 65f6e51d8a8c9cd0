//! How `sage mcp` and `sage serve` treat those who talk to them: strangers, hasty clients, broken ones.

mod http;
mod stdio;
