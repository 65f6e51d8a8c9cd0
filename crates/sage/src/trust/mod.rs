//! Trust: what belongs to this user, and what only came with a project.
//!
//! ```text
//! project: sage.toml, .mcp.json ----> Definition --by hash--> Trust ($XDG_STATE_HOME/sage/trust.json)
//! answers for all time: `Kept` ($XDG_STATE_HOME/sage/allowed.json)
//! project: .sage/state, cache, ... -> seals of `user::key` ($XDG_STATE_HOME/sage/key)
//! ```
//! What must stay true: programs that a project defines start, and `${VARIABLES}` are filled in, only for definitions
//! that a person has trusted; nothing here starts anything, and nothing here prints.

pub mod agent_files;
pub mod definition;
pub mod foreign;
pub mod kept;
mod launcher;
pub mod open;
pub mod owner;
mod per_project;
pub mod person;
pub mod powers;
pub mod programs;
pub mod shown;
pub mod store;
pub mod user;
pub mod workflow;

pub use definition::Definition;
pub use kept::Kept;
pub use person::Door;
pub use shown::{MANY, brief};
pub use store::Trust;
