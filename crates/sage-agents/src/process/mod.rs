//! Child processes that cannot outlive their owner.
//!
//! ```text
//! owner (run.rs) ===lifeline=== keeper (keeper.rs) ---> program ---> whatever it starts
//!    ^                          subreaper of the whole tree                |
//!    +------------------- stdout, stderr (pipes) --------------------------+
//! ```
//! The lifeline is a socket pair: the keeper reports on it, and its end of file tells the keeper that the
//! owner is gone or has lost patience. If the keeper itself is killed, the owner sweeps the tree by the
//! marker variables in the environment (sweep.rs); after the owner's death, whoever resumes the run does.
//! Programs outside of runs (ask.rs) have a keeper as well. Nothing else in the product starts a program.

mod above;
mod ask;
mod capture;
mod counters;
mod crowd;
mod keeper;
mod mark;
mod meter;
mod orphan;
mod report;
mod resident;
mod run;
mod signal;
mod spawn;
mod sweep;
mod tree;

pub use above::{Above, above, begin};
pub(crate) use ask::ask_at_length;
pub use ask::{Said, Silent, accompany, ask, ask_aside, keep_with};
pub use capture::Captured;
pub use keeper::{KEEPER_ARG, is_passing, keeper_main};
pub use orphan::{OWNER_VARIABLE, owner_mark, sweep_orphans};
pub use report::Report;
pub use resident::Resident;
pub use run::{End, Finished, Limits, Sinks, run};
pub use signal::signal_name;
pub use spawn::Spec;
pub(crate) use spawn::hold_spawns;
pub use sweep::{Marker, Swept, lock_holders, sweep};
pub use tree::start_time;
