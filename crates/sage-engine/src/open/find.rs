//! Finding a feature's run and reading it, without owning it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::latest::is_passing;
use super::{Engine, Fold, OpenError, Snapshot};
use crate::blobs::Blobs;
use crate::checkpoint::{self, CheckpointError, Loaded};
use crate::journal::{self, Head, JournalError, Sealing};
use crate::lock;

impl Engine {
    pub fn blobs(&self, run: &str) -> Arc<Blobs> {
        Arc::new(Blobs::new(self.vfs.clone(), self.project.run_dir(run).join("blobs")))
    }

    /// How the journal of a run is sealed.
    pub(crate) fn sealing(&self, run: &str) -> Sealing {
        Sealing::new(self.key.as_ref(), run).accepting_foreign(self.accepts_foreign)
    }

    /// A checkpoint that is not ours says nothing about our journal.
    pub(super) fn own_checkpoint(&self, feature: &str) -> Result<Option<Loaded>, OpenError> {
        let ours = |loaded: &Loaded| self.accepts_foreign || loaded.is_sealed(self.key.as_ref(), feature);
        Ok(self.load_checkpoint(feature)?.filter(ours))
    }

    /// The checkpoint if it can be used. One of a newer sage is refused: going on without it would undo its work. So is
    /// one that cannot be read for the moment.
    pub(super) fn load_checkpoint(&self, feature: &str) -> Result<Option<Loaded>, OpenError> {
        match checkpoint::load(self.vfs.as_ref(), &self.project.checkpoint(feature)) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(error @ CheckpointError::NewerVersion { .. }) => Err(OpenError::Checkpoint(error)),
            Err(error) if error.io().is_some_and(is_passing) => Err(OpenError::Checkpoint(error)),
            Err(_) => Ok(None),
        }
    }

    /// Reads a feature's run without touching it, also while its owner writes.
    pub fn read(&self, feature: &str) -> Result<Snapshot, OpenError> {
        self.load_checkpoint(feature)?;
        let run = self.last_run(feature)?;
        self.snapshot_of(feature, &run)
    }

    /// The same of a run that is known to be the feature's newest.
    pub fn snapshot_of(&self, feature: &str, run: &str) -> Result<Snapshot, OpenError> {
        // The checkpoint first: a journal that is read later can only be ahead of it.
        let loaded = self.own_checkpoint(feature)?;
        let dir = self.project.run_dir(run);
        let mut fold = Fold::default();
        let watermark = watermark(loaded.as_ref(), run);
        let checked =
            journal::check(self.vfs.as_ref(), &dir, watermark, |record| fold.take::<OpenError>(record));
        let checked = checked.map_err(|error| match self.blame(feature, run, error) {
            OpenError::Journal(journal) if journal.is_damage() => {
                OpenError::Damaged { feature: feature.into(), journal }
            }
            other => other,
        })?;
        let owner = lock::peek(&self.project.lock(feature));
        let owner = owner.filter(|owner| owner.run == run || owner.run.is_empty());
        let detached = self.records().get(feature).filter(|record| record.run == run);
        let is_foreign = !self.sealing(run).holds(checked.sealed.as_ref());
        if is_foreign && self.vouches(feature, run) {
            let journal = JournalError::Foreign { path: dir.join(journal::FILE_NAME) };
            return Err(OpenError::Damaged { feature: feature.into(), journal });
        }
        Ok(Snapshot { run: fold.finish()?, dir, owner, head: checked.head, is_foreign, detached })
    }
}

pub(super) fn text(doc: &Map<String, Value>, field: &str) -> Option<String> {
    doc.get(field)?.as_str().map(str::to_string)
}

/// The last record of the run that is known to be acknowledged.
pub(crate) fn watermark(loaded: Option<&Loaded>, run: &str) -> Option<Head> {
    let doc = &loaded.filter(|loaded| text(&loaded.doc, "runId").as_deref() == Some(run))?.doc;
    serde_json::from_value(doc.get("journal")?.clone()).ok()
}
