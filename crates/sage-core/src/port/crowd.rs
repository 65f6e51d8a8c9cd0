//! What an attempt lost because others of the same owner ran at the same time (R18).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Filled by whoever does the work, read by the engine when the attempt has ended. An attempt of which nobody says
/// anything used no processor of this machine, and lost nothing.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Arc<Mutex<Lost>>);

#[derive(Debug, Default)]
struct Lost {
    time: Duration,
    unknown: bool,
}

impl Crowd {
    /// One of its programs has ended; `None` if nobody knows what it lost.
    pub fn lost(&self, time: Option<Duration>) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lost.time += time.unwrap_or_default();
        lost.unknown |= time.is_none();
    }

    /// In all; `None` if that is not known.
    pub fn total(&self) -> Option<Duration> {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lost.unknown).then_some(lost.time)
    }
}
