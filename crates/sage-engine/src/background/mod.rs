//! Runs in the background: each has a record on disk and, while it goes on, an owner that no terminal holds.
//!
//! ```text
//!  sage run --detach ---- record ----> .sage/state/detached/<feature>.json <---- supervisor looks, 5 times a second
//!        \-- starts the first owner         (who shall go on)                         \-- starts the next owner
//!                      \-------> the run's lock: held by whoever owns it <------------/   when nobody holds the lock
//! ```
//! What must stay true: the record is written before a run is left to others, and removed only when the run is
//! over or a person took it; who owns a run is decided by its lock alone, so owners outlive their supervisor,
//! any supervisor can watch any owner, and two of either do no harm.

mod look;
mod record;
mod restart;
mod supervisor;

pub use look::Look;
pub use record::{Over, Record, Records};
pub use supervisor::{Supervisor, Told, is_needed};
