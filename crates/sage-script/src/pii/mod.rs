//! What must not reach a model: addresses, numbers of people and accounts, secrets. At the border to the sandbox
//! each becomes a token, `[EMAIL_1]`; code can compare, group and pass tokens on, and what leaves for a tool gets
//! its value back.
//!
//! ```text
//! tool's result --hide--> code, console, returned value      tool's arguments <--show-- code
//! ```
//! The same value is the same token for a session. Text that looks like a token is hidden itself, so that a server
//! cannot make code send somebody's address by writing `[EMAIL_1]`. IP addresses are not hidden: in the results of
//! developers' tools they are nearly always machines. Names of people cannot be told from other words.

mod account;
mod email;
mod find;
mod phone;
mod secret;
#[cfg(test)]
mod tests;
mod vault;

pub use find::{Kind, find};
pub use vault::Vault;
