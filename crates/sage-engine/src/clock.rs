//! Wall-clock time for the journal. Timers run on the runtime's monotonic clock, so a jump of the wall clock
//! neither loses nor doubles one.

use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Simulation: a fixed start plus the (paused) runtime's time.
    Simulated {
        start_ms: u64,
        since: tokio::time::Instant,
    },
}

impl Clock {
    pub fn now_ms(&self) -> u64 {
        match self {
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64),
            Clock::Simulated { start_ms, since } => start_ms + since.elapsed().as_millis() as u64,
        }
    }
}
