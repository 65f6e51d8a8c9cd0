//! Finding a feature's run and reading it, without owning it.

use std::sync::Arc;

use sage_core::event::Event;
use serde_json::{Map, Value};

use super::{Engine, Fold, OpenError, Snapshot};
use crate::blobs::Blobs;
use crate::checkpoint::{self, CheckpointError, Loaded};
use crate::journal::{self, Head, JournalError, Record};
use crate::lock;

impl Engine {
    pub fn blobs(&self, run: &str) -> Arc<Blobs> {
        Arc::new(Blobs::new(self.vfs.clone(), self.project.run_dir(run).join("blobs")))
    }

    /// The newest run of a feature. The checkpoint names it; a run that died before its first checkpoint is
    /// found by its journal.
    pub fn latest(&self, feature: &str) -> Option<String> {
        let loaded = self.load_checkpoint(feature).ok().flatten();
        let named = loaded.and_then(|loaded| text(&loaded.doc, "runId"));
        let mut runs = self.vfs.list(&self.project.runs()).unwrap_or_default();
        runs.sort_unstable();
        let newer = runs.into_iter().rev().take_while(|run| named.as_ref().is_none_or(|named| run > named));
        let mut newer = newer.filter(|run| self.feature_of(run).as_deref() == Some(feature));
        newer.next().or(named)
    }

    /// The checkpoint if it can be used. One of a newer sage is refused: going on without it would undo its work.
    pub(super) fn load_checkpoint(&self, feature: &str) -> Result<Option<Loaded>, OpenError> {
        match checkpoint::load(self.vfs.as_ref(), &self.project.checkpoint(feature)) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(error @ CheckpointError::NewerVersion { .. }) => Err(OpenError::Checkpoint(error)),
            Err(_) => Ok(None),
        }
    }

    /// The feature that a run's first record names.
    pub fn feature_of(&self, run: &str) -> Option<String> {
        const FIRST_RECORD_BYTES: u64 = 64 << 20;
        let path = self.project.run_dir(run).join(journal::FILE_NAME);
        let mut reader = journal::Reader::new();
        let mut feature = None;
        let mut piece_bytes = 16 << 10;
        while feature.is_none() && piece_bytes <= FIRST_RECORD_BYTES {
            let piece = self.vfs.read_from(&path, reader.next_offset(), piece_bytes).ok()?;
            if piece.is_empty() {
                break;
            }
            let found = reader.feed(&piece, &mut |record: Record<'_>| -> Result<(), JournalError> {
                if feature.is_none()
                    && let Ok(Event::RunStarted(started)) = Event::parse(record.kind, record.data)
                {
                    feature = Some(started.feature);
                }
                Ok(())
            });
            if found.is_err() {
                break;
            }
            piece_bytes *= 4;
        }
        feature
    }

    /// Reads a feature's run without touching it, also while its owner writes.
    pub fn read(&self, feature: &str) -> Result<Snapshot, OpenError> {
        // The checkpoint first: a journal that is read later can only be ahead of it.
        let loaded = self.load_checkpoint(feature)?;
        let run = self.latest(feature).ok_or_else(|| OpenError::Unknown(feature.into()))?;
        let dir = self.project.run_dir(&run);
        let mut fold = Fold::default();
        let watermark = watermark(loaded.as_ref(), &run);
        let checked =
            journal::check(self.vfs.as_ref(), &dir, watermark, |record| fold.take::<OpenError>(record))?;
        let owner = lock::peek(&self.project.lock(feature));
        let owner = owner.filter(|owner| owner.run == run || owner.run.is_empty());
        let detached = self.records().get(feature).filter(|record| record.run == run);
        Ok(Snapshot { run: fold.finish()?, dir, owner, head: checked.head, detached })
    }
}

fn text(doc: &Map<String, Value>, field: &str) -> Option<String> {
    doc.get(field)?.as_str().map(str::to_string)
}

/// The last record of the run that is known to be acknowledged.
pub(super) fn watermark(loaded: Option<&Loaded>, run: &str) -> Option<Head> {
    let doc = &loaded.filter(|loaded| text(&loaded.doc, "runId").as_deref() == Some(run))?.doc;
    serde_json::from_value(doc.get("journal")?.clone()).ok()
}
