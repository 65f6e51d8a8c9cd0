//! Starting a run.

use std::path::Path;
use std::sync::Arc;

use sage_core::event::{CORE_VERSION, Event, OpenMode, RunCancelled, RunOpened, RunStarted};
use sage_core::run::Run;

use super::find::{text, watermark};
use super::{Engine, Fold, Notice, OpenError, Owned, StartRequest};
use crate::checkpoint::Loaded;
use crate::journal::{self, Journal, JournalFile};
use crate::lock::FeatureLock;

/// A new run, not yet on disk.
pub(super) struct Begun {
    pub run: Run,
    pub journal: Journal,
    pub file: JournalFile,
    pub lock: Arc<FeatureLock>,
    pub notices: Vec<Notice>,
}

impl Engine {
    pub fn start(&self, request: StartRequest) -> Result<Owned, OpenError> {
        let no_wait = request.no_wait;
        let Begun { mut run, mut journal, file, lock, notices } = self.begin(request)?;
        self.take_from_background(&run.feature)?;
        let (now, opened) = (run.started_ms, RunOpened::new(OpenMode::Start, std::process::id()));
        let file = self.open_event(&mut run, &mut journal, file, opened, now)?;
        self.own(run, journal, file, lock, notices, no_wait, false)
    }

    pub(super) fn begin(&self, request: StartRequest) -> Result<Begun, OpenError> {
        self.project.prepare(self.vfs.as_ref())?;
        let mut notices = Vec::new();
        let lock = self.lock(&request.feature, &mut notices)?;
        self.load_checkpoint(&request.feature)?;
        self.close_previous(&request)?;
        self.keep_garbled(&request.feature)
            .map_err(|source| OpenError::Io { what: "keep the damaged checkpoint", source })?;
        let number = Some(self.next_number(&request.feature)?);
        let id = self.new_run_id(&request.feature)?;
        let (dir, sealing) = (self.project.run_dir(&id), self.sealing(&id));
        let now = self.clock.now_ms();
        let started = RunStarted {
            core: CORE_VERSION,
            run: id,
            feature: request.feature,
            title: request.title,
            template: request.template,
            templates: request.templates,
            inputs: request.inputs,
            settings: request.settings,
            number,
        };
        // Folded first: a plan that does not compile leaves nothing behind.
        let run = Run::start(&started, now)?;
        let file = JournalFile::create(&self.vfs, &dir)?;
        let mut journal = Journal::new(&sealing);
        let started = Event::from(started);
        journal.append(started.kind(), now, &started)?;
        Ok(Begun { run, journal, file, lock, notices })
    }

    /// An open run of the same feature is a conflict, unless the caller gives it up. So is one that cannot be read and
    /// may be open: a second run beside it would do all of its work again.
    fn close_previous(&self, request: &StartRequest) -> Result<(), OpenError> {
        let feature = &request.feature;
        let Some(id) = self.find_latest(feature)? else {
            return match self.garbled(feature).filter(|_| !request.replace) {
                Some(what) => Err(OpenError::Garbled { feature: feature.clone(), what }),
                None => Ok(()),
            };
        };
        if self.ended(feature, &id) {
            return Ok(());
        }
        let dir = self.project.run_dir(&id);
        // What this user did not write is left alone. An open run may still be the user's own, with another key.
        if self.is_foreign(feature, &id) {
            let is_open = || self.fold_in(&dir).ok().flatten().is_some_and(|run| run.status.open());
            return match !request.replace && is_open() {
                true => Err(OpenError::Foreign(feature.clone())),
                false => Ok(()),
            };
        }
        let run = match self.fold_in(&dir) {
            Ok(Some(run)) if run.status.open() => run,
            Ok(_) => return Ok(()),
            Err(_) if self.is_known_closed(feature, &id) => return Ok(()),
            // It stays where it is, for `sage verify`.
            Err(_) if request.replace => return self.gone(&dir, &id, &mut Vec::new()),
            Err(cause) => {
                let (feature, run, cause) = (feature.clone(), id, Box::new(cause));
                return Err(OpenError::Obscured { feature, run, cause });
            }
        };
        if !request.replace {
            return Err(OpenError::Open { feature: feature.clone(), status: run.status.name() });
        }
        self.gone(&dir, &id, &mut Vec::new())?;
        let (mut fold, sealing) = (Fold::default(), self.sealing(&id));
        let recovered =
            journal::recover(&self.vfs, &dir, None, &sealing, |record| fold.take::<OpenError>(record))?;
        let (mut journal, mut file) = (recovered.journal, recovered.file);
        let cancelled = Event::from(RunCancelled { resumable: true, signal: None });
        journal.append(cancelled.kind(), self.clock.now_ms(), &cancelled)?;
        if let Some(batch) = journal.take_batch() {
            file.commit(&batch)?;
        }
        Ok(())
    }

    /// The run in `dir`; `None` if nothing of it was recorded yet.
    fn fold_in(&self, dir: &Path) -> Result<Option<Run>, OpenError> {
        let mut fold = Fold::default();
        journal::check(self.vfs.as_ref(), dir, None, |record| fold.take::<OpenError>(record))?;
        Ok(fold.finish().ok())
    }

    /// Whether the run has ended, without folding its journal: our checkpoint says so and shows its last record.
    fn ended(&self, feature: &str, id: &str) -> bool {
        let closed = self.closed_checkpoint(feature, id);
        let last = || journal::last_head(self.vfs.as_ref(), &self.project.run_dir(id));
        closed.is_some_and(|loaded| watermark(Some(&loaded), id).is_some_and(|head| Some(head) == last()))
    }

    /// Whether our checkpoint says that the run has ended.
    fn is_known_closed(&self, feature: &str, id: &str) -> bool {
        self.closed_checkpoint(feature, id).is_some()
    }

    fn closed_checkpoint(&self, feature: &str, id: &str) -> Option<Loaded> {
        let loaded = self.own_checkpoint(feature).ok().flatten()?;
        let status =
            text(&loaded.doc, "status").filter(|_| text(&loaded.doc, "runId").as_deref() == Some(id))?;
        (!matches!(status.as_str(), "running" | "paused")).then_some(loaded)
    }
}
