//! What people and programs see of a run while it goes on, and when it has ended.
//!
//! Every view is a fold of the journal: a thread of its own follows the file, so it can neither block nor slow
//! the run, and shows the same in the owner's process (`sage run`) as in any other (`status --watch`, `logs -f`).
//! What a running step does at this moment is no event: it is read from the files of its attempt.
//!
//! ```text
//! journal.jsonl -> Tail (verify, fold) -> Tree  -> Screen   a terminal: stderr, painted over itself
//!                                      -> Lines | Json      stdout, one line per event
//! <attempt>/activity.jsonl, stdout.log -> Doing, Watched    beside both
//! ```

pub(crate) mod activity_lines;
mod allowance_lines;
mod cache_lines;
mod call_rows;
mod console;
mod doing;
mod estimate;
mod fan_rows;
mod figures;
mod frame;
mod json;
mod limit_lines;
mod line_edit;
mod lines;
mod mode;
mod next;
mod outcome;
mod phase_rows;
mod phase_text;
mod roster;
mod rows;
mod summary;
pub(crate) mod tail;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod text;
mod thread;
mod walk;
pub(crate) mod why;

pub(crate) use console::Console;
pub(crate) use doing::Doing;
pub use estimate::left_ms;
pub use frame::Size;
pub(crate) use frame::frame_text;
pub use json::summary_json;
pub(crate) use line_edit::Typed;
pub(crate) use lines::EventLines;
pub use mode::Mode;
pub use next::{anew, raise_command, template_name};
pub use roster::{RosterScreen, roster_text};
pub use summary::{reason_text, summary};
pub use text::Style;
pub use thread::{Display, Options, Voice};
