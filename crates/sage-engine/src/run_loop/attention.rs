//! How the loop spends its time (S1): free to take the next input, or not. Told when the run stands still or ends.

use std::time::Duration;

use sage_core::event::{Event, LoopTime};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Attention {
    begun: Option<Instant>,
    free: Duration,
    free_since: Option<Instant>,
}

impl Attention {
    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// Nothing is left to do but to wait for an input.
    pub fn free(&mut self) {
        self.free_since = Some(Instant::now());
    }

    /// An input is here.
    pub fn taken(&mut self) {
        self.free += self.free_since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    fn time(&self) -> Option<LoopTime> {
        let total = self.begun?.elapsed();
        let busy = total.saturating_sub(self.free);
        Some(LoopTime { busy_us: busy.as_micros() as u64, total_us: total.as_micros() as u64 })
    }

    pub fn stamp(&self, event: &mut Event) {
        match event {
            Event::RunPaused(paused) => paused.loop_time = self.time(),
            Event::RunFinished(finished) => finished.loop_time = self.time(),
            _ => {}
        }
    }
}
