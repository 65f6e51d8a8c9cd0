//! What a running attempt reports that the journal must have: its process, its session, its target's limits.
//!
//! Progress is a courtesy and is dropped when the loop is behind. These are not: they wait beside the channel until
//! the loop handles the attempt's next input, its end at the latest.

use std::sync::{Arc, Mutex, PoisonError};

use sage_core::port::Progress;
use sage_core::run::StepId;

use super::{LoopError, RunLoop};

/// The reports of one attempt. Clones are the same list; an attempt makes a handful of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<Vec<Progress>>>);

impl Reports {
    /// Keeps what must not be lost. Gives what the channel carries: the report's arrival, or the progress itself.
    pub fn keep(&self, progress: Progress) -> Progress {
        if matches!(progress, Progress::Alive | Progress::Usage(_)) {
            return progress;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(progress);
        Progress::Alive
    }

    fn take(&self) -> Vec<Progress> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RunLoop {
    /// Called before any other input of the attempt is handled.
    pub(super) fn take_reports(&mut self, id: StepId, attempt: u32) -> Result<(), LoopError> {
        let reports = self.live.get(&(id, attempt)).map(|live| live.reports.take());
        for report in reports.into_iter().flatten() {
            match report {
                Progress::Spawned { pid, start_time } => self.spawned(id, attempt, pid, start_time)?,
                other => self.progress(id, attempt, other)?,
            }
        }
        Ok(())
    }

    /// Of all attempts: the channel may have been too full to announce some.
    pub(super) fn take_all_reports(&mut self) -> Result<(), LoopError> {
        let mut live: Vec<(StepId, u32)> = self.live.keys().copied().collect();
        live.sort_unstable();
        live.into_iter().try_for_each(|(id, attempt)| self.take_reports(id, attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R5, S3
    #[test]
    fn only_signs_of_life_and_usage_may_be_dropped() {
        let reports = Reports::default();
        let session = Progress::Session { id: "s".into(), continuity: sage_core::port::Continuity::New };
        let spawned = Progress::Spawned { pid: 7, start_time: 1 };
        let quota = Progress::Quota(Default::default());
        for kept in [spawned, session, quota] {
            assert!(matches!(reports.keep(kept), Progress::Alive));
        }
        for dropped in [Progress::Alive, Progress::Usage(Default::default())] {
            assert_eq!(format!("{dropped:?}"), format!("{:?}", reports.keep(dropped)));
        }
        let kept = reports.take();
        assert!(matches!(
            kept.as_slice(),
            [Progress::Spawned { pid: 7, .. }, Progress::Session { .. }, Progress::Quota(_)]
        ));
        assert!(reports.take().is_empty());
    }
}
