//! Leaving a run to the background: all that could fail has been tried, and what must be known is on disk.

use super::start::Begun;
use super::{Engine, Notice, OpenError, Owned, StartRequest, register};
use crate::background::{Record, Records};
use crate::run_loop::CommitMode;

impl Engine {
    pub fn records(&self) -> Records {
        Records::new(&self.project.state(), self.key.as_ref())
    }

    /// Starts a run and leaves it to whoever takes it next: nobody has owned it yet.
    pub fn start_detached(&self, request: StartRequest) -> Result<(Record, Vec<Notice>), OpenError> {
        // Its record could not be sealed.
        if self.key.is_none() {
            return Err(OpenError::NoKey);
        }
        let no_wait = request.no_wait;
        let Begun { run, mut journal, mut file, lock, notices } = self.begin(request)?;
        if let Some(batch) = journal.take_batch() {
            file.commit(&batch)?;
        }
        let record = Record::new(&run.feature, &run.id, no_wait, self.clock.now_ms());
        self.records().put(&record).map_err(not_recorded)?;
        register(&self.project.state(), &run, 0);
        drop(lock);
        Ok((record, notices))
    }

    /// Leaves a run that was resumed to whoever takes it next.
    pub fn detach(&self, owned: Owned, no_wait: bool) -> Result<Record, OpenError> {
        let Owned { run_loop, lock, .. } = owned;
        let run = run_loop.leave();
        let record = Record::new(&run.feature, &run.id, no_wait, self.clock.now_ms());
        let settled = run.tally.settled;
        let record = Record { settled, ..record };
        self.records().put(&record).map_err(not_recorded)?;
        register(&self.project.state(), &run, 0);
        drop(lock);
        Ok(record)
    }

    /// A person has the run now: it is no longer the background's. Called with the run's lock.
    pub(super) fn take_from_background(&self, feature: &str) -> Result<(), OpenError> {
        if self.commit == CommitMode::Inline {
            return Ok(());
        }
        self.records().remove(feature).map_err(not_recorded)
    }
}

fn not_recorded(source: std::io::Error) -> OpenError {
    OpenError::Io { what: "note that the run is in the background", source }
}
