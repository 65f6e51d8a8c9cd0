//! Tools of MCP servers as typed functions: what a model reads before it writes code, and what an editor checks.
//!
//! ```text
//! ToolDef --declare--> servers/<server>/<function>.ts   types with comments, and the function
//!         --signature-> github.listIssues(input: { owner: string; ... }): Promise<...>
//! catalogue --servers--> which function is which tool
//! ```

mod doc;
mod file;
mod name;
mod schema;
#[cfg(test)]
mod tests;

pub use doc::sentence;
pub use file::{declare, index, script, signature};
pub use name::{Function, Server, function_name, servers};
