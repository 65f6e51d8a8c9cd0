//! State that this user did not write: a repository or a copied directory brought it. It is shown, and continued only
//! after a person has adopted it.

use sage_core::event::{Event, RunAdopted};

use super::{Engine, Fold, OpenError};
use crate::checkpoint;
use crate::journal::{self, JournalError, Origin};

impl Engine {
    /// Whether a run of a feature was written by another user, or on another machine. A run that our own checkpoint
    /// names is ours: if its journal is not, that is damage.
    pub fn is_foreign(&self, feature: &str, run: &str) -> bool {
        match self.origin(run) {
            Ok(Origin::Own) => false,
            Ok(Origin::Foreign) => !self.vouches(feature, run),
            // Its checkpoint is all there is of it, or all that can be read.
            Ok(Origin::Empty) | Err(_) => {
                let loaded = self.load_checkpoint(feature).ok().flatten();
                loaded.is_some_and(|loaded| !loaded.is_sealed(self.key.as_ref(), feature))
            }
        }
    }

    /// Whether a checkpoint of ours names the run.
    pub(super) fn vouches(&self, feature: &str, run: &str) -> bool {
        let loaded = self.load_checkpoint(feature).ok().flatten();
        loaded.is_some_and(|loaded| {
            loaded.doc.get("runId").and_then(|id| id.as_str()) == Some(run)
                && loaded.is_sealed(self.key.as_ref(), feature)
        })
    }

    /// What is wrong with a journal that cannot be folded: if it does not end with a record of ours, although the run
    /// is, others have added to it.
    pub(crate) fn blame(&self, feature: &str, run: &str, error: OpenError) -> OpenError {
        let dir = self.project.run_dir(run);
        let added = || matches!(self.origin(run), Ok(Origin::Foreign));
        match error {
            OpenError::Fold(_) | OpenError::Event(_) if added() && self.vouches(feature, run) => {
                JournalError::Foreign { path: dir.join(journal::FILE_NAME) }.into()
            }
            error => error,
        }
    }

    /// Refuses a run that is not ours, before anything is written or any process is looked for.
    pub(super) fn refuse_foreign(&self, feature: &str, run: &str) -> Result<(), OpenError> {
        match self.accepts_foreign || !self.is_foreign(feature, run) {
            true => Ok(()),
            false => Err(OpenError::Foreign(feature.into())),
        }
    }

    /// Makes the newest run of a feature this user's, because a person said so. Starts nothing.
    pub fn adopt(&self, feature: &str, by: &str) -> Result<(), OpenError> {
        if self.key.is_none() {
            return Err(OpenError::NoKey);
        }
        let id = self.find_latest(feature)?.ok_or_else(|| OpenError::Unknown(feature.into()))?;
        self.project.prepare(self.vfs.as_ref())?;
        let _lock = self.lock(feature, &mut Vec::new())?;
        self.adopt_journal(&id, by)?;
        self.adopt_checkpoint(feature)?;
        // It would start the run by itself; only `sage resume` does that.
        self.records().discard(feature).map_err(|source| OpenError::Io { what: "remove its record", source })
    }

    /// A record of ours at its end vouches for all before it.
    fn adopt_journal(&self, id: &str, by: &str) -> Result<(), OpenError> {
        let (dir, sealing) = (self.project.run_dir(id), self.sealing(id).accepting_foreign(true));
        let mut fold = Fold::default();
        let recovered =
            journal::recover(&self.vfs, &dir, None, &sealing, |record| fold.take::<OpenError>(record));
        let recovered = match recovered {
            Ok(recovered) => recovered,
            // Its checkpoint is what is left to go on from.
            Err(OpenError::Journal(JournalError::Missing { .. } | JournalError::Corrupt { .. })) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (mut journal, mut file) = (recovered.journal, recovered.file);
        let adopted = Event::from(RunAdopted { by: by.into() });
        journal.append(adopted.kind(), self.clock.now_ms(), &adopted)?;
        if let Some(batch) = journal.take_batch() {
            file.commit(&batch)?;
        }
        Ok(())
    }

    fn adopt_checkpoint(&self, feature: &str) -> Result<(), OpenError> {
        let Some(loaded) = self.load_checkpoint(feature)? else { return Ok(()) };
        let key = checkpoint::scoped(self.key.as_ref(), feature);
        let bytes = checkpoint::seal(loaded.doc, key.as_ref()).map_err(OpenError::Checkpoint)?;
        checkpoint::save(self.vfs.as_ref(), &self.project.checkpoint(feature), &bytes)
            .map_err(OpenError::Checkpoint)
    }
}
