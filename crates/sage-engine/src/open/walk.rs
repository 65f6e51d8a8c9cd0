//! Reading one run event by event, with what the run had become by then.

use sage_core::event::Event;
use sage_core::run::Run;

use super::{Engine, Fold, OpenError};
use crate::journal;

/// A run that was read to its last record.
#[derive(Debug)]
pub struct Walked {
    pub run: Run,
    /// Its journal is not sealed with this user's key.
    pub is_foreign: bool,
}

impl Engine {
    /// Calls `each` for every event of a run, after it was folded.
    pub fn walk(&self, run: &str, each: &mut dyn FnMut(&Event, u64, &Run)) -> Result<Walked, OpenError> {
        let mut fold = Fold::default();
        let dir = self.project.run_dir(run);
        let checked = journal::check(self.vfs.as_ref(), &dir, None, |record| -> Result<(), OpenError> {
            let event = Event::parse(record.kind, record.data)?;
            fold.apply(&event, record.ts_ms)?;
            if let Some(run) = fold.run() {
                each(&event, record.ts_ms, run);
            }
            Ok(())
        })?;
        let is_foreign = !self.sealing(run).holds(checked.sealed.as_ref());
        Ok(Walked { run: fold.finish()?, is_foreign })
    }
}
