//! What a running step does now: the part of a run that is shown while it happens and is no fact of the journal.
//!
//! ```text
//! adapter -> Feed -> Writer --> <attempt>/activity.jsonl --> Reader   every entry, in order (logs, attach)
//! program -------------------> <attempt>/stdout.log    --> Glances  the newest one (tree, roster)
//! ```
//! What must stay true: one line is one entry; the file only grows, up to a limit; it belongs to one attempt and
//! disappears with its run; without it a step works as it does with it.

mod argument;
mod entry;
mod glance;
mod outcome;
mod prompt;
mod reader;
mod writer;

pub use argument::main_argument;
pub use entry::{Entry, What};
pub use glance::{Glances, now};
pub use outcome::outcome_line;
pub use prompt::Prompt;
pub use reader::Reader;
pub use writer::Writer;

/// In the directory of an attempt.
pub const FILE: &str = "activity.jsonl";
