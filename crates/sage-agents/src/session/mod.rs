//! Sessions: named, durable conversations with agents, so that nobody has to be told everything again.
//!
//! ```text
//! .sage/sessions/<id>/session.json   what is known about it (record.rs)
//!                     turn-<n>.json  what was asked and answered, kept for people and for a broken conversation;
//!                                    a torn session.json is put together from these (rebuild.rs)
//!                     handoff.json   what was known when a conversation could not go on
//!                     lock           held while a turn runs; freed by death
//! ```
//! A step without `session` has one of its own, named by run, step and key: killed in the middle of a turn it
//! goes on where it was. What the agent itself remembers is the agent's; its id is in the record.

mod choose;
mod chosen;
mod fork;
mod opened;
mod rebuild;
mod record;
mod recover;
mod store;
mod take;
#[cfg(test)]
mod tests;
mod words;

pub use choose::{choose, new_id};
pub use chosen::Chosen;
pub use fork::fork;
pub use record::{Parent, Record, TurnRecord, TurnState};
pub use recover::used_by;
pub use store::{SessionError, Store, check_id, now_ms};
pub use words::{message as message_text, with_feedback};
