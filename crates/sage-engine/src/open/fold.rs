//! Records in, a run out: what recovery, reading and following a journal share.

use sage_core::event::{Event, EventError};
use sage_core::run::{FoldError, Run};

use crate::journal::Record;

/// A run in the making.
#[derive(Debug, Default)]
pub struct Fold {
    run: Option<Run>,
}

impl Fold {
    pub fn take<E: From<EventError> + From<FoldError>>(&mut self, record: Record<'_>) -> Result<(), E> {
        let event = Event::parse(record.kind, record.data)?;
        self.apply(&event, record.ts_ms)?;
        Ok(())
    }

    pub fn apply(&mut self, event: &Event, ts_ms: u64) -> Result<(), FoldError> {
        match (&mut self.run, event) {
            (Some(run), event) => run.apply(event, ts_ms),
            (None, Event::RunStarted(started)) => {
                self.run = Some(Run::start(started, ts_ms)?);
                Ok(())
            }
            (None, other) => Err(FoldError::First(other.kind().into())),
        }
    }

    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    pub fn run_mut(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    pub fn finish(self) -> Result<Run, FoldError> {
        self.run.ok_or_else(|| FoldError::First("nothing".into()))
    }
}
