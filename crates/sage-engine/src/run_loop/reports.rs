//! What a running attempt reports that must not be lost: its process, its session, its usage, its target's limits.
//!
//! Signs of life are a courtesy and are dropped when the loop is behind. These are not: they wait beside the channel until
//! the loop handles the attempt's next input, its end at the latest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sage_core::port::{Progress, Stage, Usage};
use sage_core::run::StepId;

use super::{LoopError, RunLoop};

/// The reports of one attempt. Clones are the same list; an attempt makes a handful of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    reports: Vec<Progress>,
    /// The newest one counts; that another request follows is not forgotten.
    usage: Option<(Usage, Stage)>,
}

impl Reports {
    /// Keeps what must not be lost. Gives what the channel carries: a sign of life, and so the report's arrival.
    pub fn keep(&self, progress: Progress) -> Progress {
        let mut kept = self.kept();
        match progress {
            Progress::Alive => {}
            Progress::Usage(usage, stage) => {
                let before = kept.usage.take().map_or(stage, |(_, before)| before);
                kept.usage = Some((usage, stage.max(before)));
            }
            report => kept.reports.push(report),
        }
        Progress::Alive
    }

    fn take(&self) -> Vec<Progress> {
        let mut kept = self.kept();
        let mut reports = std::mem::take(&mut kept.reports);
        reports.extend(kept.usage.take().map(|(usage, stage)| Progress::Usage(usage, stage)));
        reports
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    // covers: R5, S3, R18
    #[test]
    fn only_signs_of_life_may_be_dropped() {
        let reports = Reports::default();
        let session = Progress::Session { id: "s".into(), continuity: sage_core::port::Continuity::New };
        let spawned = Progress::Spawned { pid: 7, start_time: 1 };
        let quota = Progress::Quota(Default::default());
        let used =
            |input: u64, stage| Progress::Usage(Usage { input: Some(input), ..Usage::default() }, stage);
        for report in
            [spawned, session, used(1, Stage::GoesOn), Progress::Alive, quota, used(2, Stage::Answering)]
        {
            assert!(matches!(reports.keep(report), Progress::Alive));
        }
        let kept = reports.take();
        assert!(matches!(
            kept.as_slice(),
            [
                Progress::Spawned { pid: 7, .. },
                Progress::Session { .. },
                Progress::Quota(_),
                Progress::Usage(Usage { input: Some(2), .. }, Stage::GoesOn)
            ]
        ));
        assert!(reports.take().is_empty());
    }
}
