//! Starting a run.

use std::sync::Arc;

use sage_core::event::{CORE_VERSION, Event, OpenMode, RunCancelled, RunOpened, RunStarted};
use sage_core::run::Run;

use super::{Engine, Fold, Notice, OpenError, Owned, StartRequest};
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
        self.keep_garbled(&request.feature)
            .map_err(|source| OpenError::Io { what: "keep the damaged checkpoint", source })?;
        self.close_previous(&request)?;
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
        };
        // Folded first: a plan that does not compile leaves nothing behind.
        let run = Run::start(&started, now)?;
        let file = JournalFile::create(&self.vfs, &dir)?;
        let mut journal = Journal::new(&sealing);
        let started = Event::from(started);
        journal.append(started.kind(), now, &started)?;
        Ok(Begun { run, journal, file, lock, notices })
    }

    /// An open run of the same feature is a conflict, unless the caller gives it up.
    fn close_previous(&self, request: &StartRequest) -> Result<(), OpenError> {
        let Some(run) = self.latest(&request.feature) else { return Ok(()) };
        let dir = self.project.run_dir(&run);
        let mut fold = Fold::default();
        // A damaged or missing journal is no open run; it stays where it is for `sage verify`.
        if journal::check(self.vfs.as_ref(), &dir, None, |record| fold.take::<OpenError>(record)).is_err() {
            return Ok(());
        }
        let Ok(run) = fold.finish() else { return Ok(()) };
        // Nor is one that this user did not write.
        if self.is_foreign(&run.feature, &run.id) {
            return Ok(());
        }
        if run.status.open() && !request.replace {
            return Err(OpenError::Open { feature: request.feature.clone(), status: run.status.name() });
        }
        if run.status.open() {
            self.gone(&dir, &run.id, &mut Vec::new())?;
            let mut fold = Fold::default();
            let sealing = self.sealing(&run.id);
            let recovered =
                journal::recover(&self.vfs, &dir, None, &sealing, |record| fold.take::<OpenError>(record))?;
            let (mut journal, mut file) = (recovered.journal, recovered.file);
            let cancelled = Event::from(RunCancelled { resumable: true, signal: None });
            journal.append(cancelled.kind(), self.clock.now_ms(), &cancelled)?;
            if let Some(batch) = journal.take_batch() {
                file.commit(&batch)?;
            }
        }
        Ok(())
    }
}
