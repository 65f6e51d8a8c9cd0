//! Finding a feature's run and reading it, without owning it.

use std::sync::Arc;

use sage_core::event::Event;
use serde_json::{Map, Value};

use super::{Engine, Fold, OpenError, Snapshot};
use crate::blobs::Blobs;
use crate::checkpoint::{self, CheckpointError, Loaded};
use crate::journal::{self, Head, JournalError, Origin, Record, Sealing};
use crate::lock;

const RUN_PREFIX: &str = "run_";

impl Engine {
    pub fn blobs(&self, run: &str) -> Arc<Blobs> {
        Arc::new(Blobs::new(self.vfs.clone(), self.project.run_dir(run).join("blobs")))
    }

    /// How the journal of a run is sealed.
    pub(crate) fn sealing(&self, run: &str) -> Sealing {
        Sealing::new(self.key.as_ref(), run).accepting_foreign(self.accepts_foreign)
    }

    /// The newest run of a feature. The checkpoint names it; a run that died before its first checkpoint is
    /// found by its journal. One that this user wrote comes before all others, whatever their ids say.
    pub fn latest(&self, feature: &str) -> Option<String> {
        let loaded = self.load_checkpoint(feature).ok().flatten();
        let named = loaded.and_then(|loaded| text(&loaded.doc, "runId"));
        let mut runs = self.vfs.list(&self.project.runs()).unwrap_or_default();
        runs.sort_unstable();
        let of_feature =
            |run: &String| named.as_ref() == Some(run) || self.feature_of(run).as_deref() == Some(feature);
        self.newest(named.clone(), runs.into_iter().rev().filter(of_feature))
    }

    /// `named` is the run of the checkpoint, `runs` are those of the feature, newest first.
    pub(super) fn newest(&self, named: Option<String>, runs: impl Iterator<Item = String>) -> Option<String> {
        let mut foreign = None;
        for run in runs {
            if self.is_own(&run) {
                return Some(run);
            }
            foreign.get_or_insert(run);
        }
        foreign.or(named)
    }

    fn is_own(&self, run: &str) -> bool {
        let (dir, sealing) = (self.project.run_dir(run), self.sealing(run));
        journal::origin(self.vfs.as_ref(), &dir, &sealing) == Origin::Own
    }

    /// A checkpoint that is not ours says nothing about our journal.
    pub(super) fn own_checkpoint(&self, feature: &str) -> Result<Option<Loaded>, OpenError> {
        let ours = |loaded: &Loaded| self.accepts_foreign || loaded.is_sealed(self.key.as_ref(), feature);
        Ok(self.load_checkpoint(feature)?.filter(ours))
    }

    /// The id of a new run. It sorts after those of all runs so far, whatever the clock says: the order of ids is the
    /// order of runs, also when the clock was set back between two of them.
    pub(super) fn new_run_id(&self, feature: &str) -> Result<String, OpenError> {
        let listed = match self.vfs.list(&self.project.runs()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|source| OpenError::Io { what: "list the runs", source })?,
        };
        let named = self.load_checkpoint(feature)?.and_then(|loaded| text(&loaded.doc, "runId"));
        let newest = listed.iter().chain(&named).filter_map(|run| run_time_ms(run)).max();
        let ms = self.clock.now_ms().max(newest.map_or(0, |newest| newest + 1));
        let random = ulid::Ulid::generate().random();
        Ok(format!("{RUN_PREFIX}{}", ulid::Ulid::from_parts(ms, random)))
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
        self.load_checkpoint(feature)?;
        let run = self.latest(feature).ok_or_else(|| self.unknown(feature))?;
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

/// When a run began by its id. A time that leaves no room for later ones is of no run that we made.
fn run_time_ms(run: &str) -> Option<u64> {
    let id = ulid::Ulid::from_string(run.strip_prefix(RUN_PREFIX)?).ok()?;
    Some(id.timestamp_ms()).filter(|&ms| ms < ulid::Ulid::max().timestamp_ms())
}

pub(super) fn text(doc: &Map<String, Value>, field: &str) -> Option<String> {
    doc.get(field)?.as_str().map(str::to_string)
}

/// The last record of the run that is known to be acknowledged.
pub(crate) fn watermark(loaded: Option<&Loaded>, run: &str) -> Option<Head> {
    let doc = &loaded.filter(|loaded| text(&loaded.doc, "runId").as_deref() == Some(run))?.doc;
    serde_json::from_value(doc.get("journal")?.clone()).ok()
}
