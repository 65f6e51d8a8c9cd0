//! Taking a run: starting one, resuming one, delivering a signal to one that nobody owns, and just reading one.
//!
//! What must stay true: a run has one owner (the OS lock decides); "started" is said only after the first
//! events are durable; no second copy of a step starts while a child of a dead owner may still live.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::event::*;
use sage_core::run::{FoldError, Run, State, Status};
use serde_json::{Map, Value};

use crate::blobs::Blobs;
use crate::checkpoint::{self, Loaded};
use crate::clock::Clock;
use crate::control::{self, Signal};
use crate::journal::{self, Head, Journal, JournalError, JournalFile, Record};
use crate::lock::{self, FeatureLock, LockError, Owner, Stale};
use crate::project::{Project, ProjectError};
use crate::registry;
use crate::run_loop::{CommitMode, LoopError, Options, RunLoop, Surroundings};
use crate::vfs::Vfs;

/// A dead owner's children are gone within milliseconds; this is for loaded machines.
const CHILDREN_GONE: Duration = Duration::from_secs(5);
/// Time for a living owner to take a signal: it looks every 50 ms, and commits before it acknowledges.
const SIGNAL_TAKEN: Duration = Duration::from_secs(10);

/// The local engine: one project, everything that can be done with its runs.
#[derive(Clone)]
pub struct Engine {
    pub project: Project,
    pub vfs: Arc<dyn Vfs>,
    pub executor: Arc<dyn sage_core::port::StepExecutor>,
    pub clock: Clock,
    pub commit: CommitMode,
    /// Kills what is left of a run's processes; gives the pids of those it ended and of those it could not.
    pub sweep: fn(&str) -> (Vec<u32>, Vec<u32>),
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("project", &self.project).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{feature}` is being run by {}", owner_text(.owner))]
    Owned { feature: String, owner: Option<Owner> },
    #[error("`{feature}` has an open run ({status})")]
    Open { feature: String, status: &'static str },
    #[error("no run of `{0}`")]
    Unknown(String),
    #[error("the last run of `{0}` was cancelled without a checkpoint and cannot be resumed")]
    NotResumable(String),
    #[error("no step `{step}` in `{feature}`")]
    NoStep { feature: String, step: String },
    #[error("step `{step}` does not wait for an answer; it is {state}")]
    NoQuestion { step: String, state: &'static str },
    #[error("`{choice}` is not a choice of step `{step}`: {choices}")]
    NoChoice { step: String, choice: String, choices: String },
    #[error("`{feature}` is {status}: nothing to {what}")]
    NotOpen { feature: String, status: &'static str, what: &'static str },
    #[error("step `{0}` has an unknown outcome that a person must judge before the template may change")]
    Unanswered(String),
    #[error("processes of an earlier owner are still alive: {0}")]
    Children(String),
    #[error("the owner did not take the signal in time")]
    Deaf,
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal does not fold: {0}")]
    Fold(#[from] FoldError),
    #[error("the journal has an event that cannot be read: {0}")]
    Event(#[from] EventError),
    #[error("{journal}; and there is no checkpoint to go on from: {checkpoint}")]
    Lost { journal: JournalError, checkpoint: String },
    #[error("cannot lock: {0}")]
    Lock(LockError),
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: std::io::Error },
}

fn owner_text(owner: &Option<Owner>) -> String {
    owner.as_ref().map_or("another process".into(), |owner| format!("process {}", owner.pid))
}

/// Things worth telling that are no errors.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    TookOver {
        pid: u32,
        why: &'static str,
    },
    TornTail {
        bytes: u64,
        saved_to: PathBuf,
    },
    Killed(Vec<u32>),
    CheckpointFromBackup(String),
    /// The journal was lost; these phases came from the checkpoint and the rest runs again.
    Imported {
        why: String,
        phases: Vec<String>,
        kept: PathBuf,
    },
}

/// A run that this process now owns. Dropping it gives the run back.
#[derive(Debug)]
pub struct Owned {
    pub run_loop: RunLoop,
    pub notices: Vec<Notice>,
    pub run_dir: PathBuf,
    /// What was durable when the run was taken: everything after it is new.
    pub head: Head,
    lock: FeatureLock,
    state: PathBuf,
}

impl Owned {
    /// Runs to the end or a pause, keeps the registry true, and gives the run back.
    pub async fn drive(self) -> Result<Run, LoopError> {
        let Owned { run_loop, lock, state, .. } = self;
        let result = run_loop.drive().await;
        if let Ok(run) = &result {
            register(&state, run, 0);
        }
        drop(lock);
        result
    }
}

/// Enters a run in the readable registry. The registry is for people: the run goes on without it.
fn register(state: &Path, run: &Run, pid: u32) {
    let _ = registry::update(state, |entries| {
        entries.retain(|entry| entry.feature != run.feature);
        if run.status.open() {
            entries.push(registry::Entry {
                feature: run.feature.clone(),
                run_id: run.id.clone(),
                template: run.plan().template.name.clone(),
                status: run.status.name().into(),
                pid,
                started_at: sage_core::wire::rfc3339(run.started_ms),
                updated_at: sage_core::wire::rfc3339(run.updated_ms),
                other: Map::new(),
            });
        }
    });
}

#[derive(Clone, Debug)]
pub struct StartRequest {
    pub feature: String,
    pub title: String,
    pub template: Frozen,
    pub templates: Vec<Frozen>,
    pub inputs: Map<String, Value>,
    pub settings: Settings,
    /// Give up an open run of the same feature.
    pub replace: bool,
    pub no_wait: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    pub edit: Option<RunEdited>,
    pub from: Option<String>,
    pub settings: Option<Settings>,
    pub no_wait: bool,
}

/// A run as its journal tells it, without owning it.
#[derive(Debug)]
pub struct Snapshot {
    pub run: Run,
    pub dir: PathBuf,
    pub owner: Option<Owner>,
    pub head: Head,
}

impl Engine {
    pub fn blobs(&self, run: &str) -> Arc<Blobs> {
        Arc::new(Blobs::new(self.vfs.clone(), self.project.run_dir(run).join("blobs")))
    }

    /// The newest run of a feature. The checkpoint names it; a run that died before its first checkpoint is
    /// found by its journal.
    pub fn latest(&self, feature: &str) -> Option<String> {
        let named = self.load_checkpoint(feature).and_then(|loaded| text(&loaded.doc, "runId"));
        let mut runs = self.vfs.list(&self.project.runs()).unwrap_or_default();
        runs.sort_unstable();
        let newer = runs.into_iter().rev().take_while(|run| named.as_ref().is_none_or(|named| run > named));
        let mut newer = newer.filter(|run| self.feature_of(run).as_deref() == Some(feature));
        newer.next().or(named)
    }

    fn load_checkpoint(&self, feature: &str) -> Option<Loaded> {
        checkpoint::load(self.vfs.as_ref(), &self.project.checkpoint(feature)).ok()
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
                    && let Ok(Event::RunStarted(started)) = Event::parse(record.kind, record.data.get())
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
        let run = self.latest(feature).ok_or_else(|| OpenError::Unknown(feature.into()))?;
        let dir = self.project.run_dir(&run);
        let mut fold = Fold::default();
        let checked = journal::check(self.vfs.as_ref(), &dir, None, |record| fold.take::<OpenError>(record))?;
        let owner =
            lock::peek(&self.project.lock(feature)).filter(|owner| owner.run == run || owner.run.is_empty());
        Ok(Snapshot { run: fold.finish()?, dir, owner, head: checked.head })
    }

    fn lock(&self, feature: &str, notices: &mut Vec<Notice>) -> Result<FeatureLock, OpenError> {
        let owner = Owner::current("", self.clock.now_ms());
        match FeatureLock::acquire(&self.project.lock(feature), owner) {
            Ok(acquired) => {
                notices.extend(acquired.previous.map(|(owner, stale)| took_over(&owner, stale)));
                Ok(acquired.lock)
            }
            Err(LockError::Held(owner)) => Err(OpenError::Owned { feature: feature.into(), owner }),
            Err(error) => Err(OpenError::Lock(error)),
        }
    }

    pub fn start(&self, request: StartRequest) -> Result<Owned, OpenError> {
        self.project.prepare(self.vfs.as_ref())?;
        let mut notices = Vec::new();
        let lock = self.lock(&request.feature, &mut notices)?;
        self.close_previous(&request)?;
        let id = format!("run_{}", ulid::Ulid::generate());
        let dir = self.project.run_dir(&id);
        let now = self.clock.now_ms();
        let started = RunStarted {
            core: CORE_VERSION,
            run: id.clone(),
            feature: request.feature.clone(),
            title: request.title,
            template: request.template,
            templates: request.templates,
            inputs: request.inputs,
            settings: request.settings,
        };
        // Folded first: a plan that does not compile leaves nothing behind.
        let mut run = Run::start(&started, now)?;
        let file = JournalFile::create(&self.vfs, &dir)?;
        let mut journal = Journal::new();
        let started = Event::from(started);
        journal.append(started.kind(), now, &started)?;
        let file = self.open_event(&mut run, &mut journal, file, OpenMode::Start, None, now)?;
        self.own(run, journal, file, lock, notices, request.no_wait, false)
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
        if run.status.open() && !request.replace {
            return Err(OpenError::Open { feature: request.feature.clone(), status: run.status.name() });
        }
        if run.status.open() {
            self.gone(&dir, &run.id, &mut Vec::new())?;
            let mut fold = Fold::default();
            let recovered = journal::recover(&self.vfs, &dir, None, |record| fold.take::<OpenError>(record))?;
            let (mut journal, mut file) = (recovered.journal, recovered.file);
            let cancelled = Event::from(RunCancelled { resumable: true, signal: None });
            journal.append(cancelled.kind(), self.clock.now_ms(), &cancelled)?;
            if let Some(batch) = journal.take_batch() {
                file.commit(&batch)?;
            }
        }
        Ok(())
    }

    /// Journals that this process owns the run; durable when this returns.
    fn open_event(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        mut file: JournalFile,
        mode: OpenMode,
        settings: Option<Settings>,
        now: u64,
    ) -> Result<JournalFile, OpenError> {
        let opened = Event::from(RunOpened { mode, pid: std::process::id(), settings });
        run.apply(&opened, now)?;
        journal.append(opened.kind(), now, &opened)?;
        if let Some(batch) = journal.take_batch() {
            file.commit(&batch)?;
        }
        Ok(file)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what makes an owned run; each caller has all of it at hand"
    )]
    fn own(
        &self,
        run: Run,
        journal: Journal,
        file: JournalFile,
        lock: FeatureLock,
        notices: Vec<Notice>,
        no_wait: bool,
        deliver_only: bool,
    ) -> Result<Owned, OpenError> {
        let run_dir = self.project.run_dir(&run.id);
        let blobs = self.blobs(&run.id);
        let path = self.project.checkpoint(&run.feature);
        let image = crate::image::image(&run, file.head(), &blobs);
        let saved =
            checkpoint::seal(image).and_then(|bytes| checkpoint::save(self.vfs.as_ref(), &path, &bytes));
        saved.map_err(|error| OpenError::Io {
            what: "save the checkpoint",
            source: std::io::Error::other(error),
        })?;
        let around = Surroundings {
            vfs: self.vfs.clone(),
            executor: self.executor.clone(),
            clock: self.clock.clone(),
            blobs,
            project: self.project.root.clone(),
            children_lock: self.children_lock(&run_dir)?,
            run_dir,
            checkpoint: path,
        };
        let options = Options {
            commit: self.commit,
            no_wait,
            signals: self.commit == CommitMode::Thread,
            deliver_only,
        };
        if self.commit == CommitMode::Thread {
            register(&self.project.state(), &run, std::process::id());
        }
        let (run_dir, head) = (around.run_dir.clone(), file.head());
        let run_loop = RunLoop::new(around, options, run, journal, file);
        Ok(Owned { run_loop, notices, run_dir, head, lock, state: self.project.state() })
    }

    /// Simulations have no processes and so no lock for them.
    fn children_lock(&self, run_dir: &Path) -> Result<Option<Arc<std::fs::File>>, OpenError> {
        if self.commit == CommitMode::Inline {
            return Ok(None);
        }
        let lock =
            lock::ChildrenLock::open_shared(&run_dir.join("children.lock")).map_err(OpenError::Lock)?;
        Ok(Some(Arc::new(lock.into_file())))
    }

    /// Makes sure that no child of an earlier owner is alive.
    fn gone(&self, dir: &Path, run: &str, notices: &mut Vec<Notice>) -> Result<(), OpenError> {
        if self.commit == CommitMode::Inline {
            return Ok(());
        }
        let path = dir.join("children.lock");
        let first = lock::wait_gone(&path, CHILDREN_GONE);
        // Also when the lock is free: a child may have closed every file it inherited.
        let (killed, left) = (self.sweep)(run);
        if !killed.is_empty() {
            notices.push(Notice::Killed(killed));
        }
        if !left.is_empty() {
            return Err(OpenError::Children(format!("{left:?} cannot be ended")));
        }
        if first.is_err() {
            lock::wait_gone(&path, CHILDREN_GONE).map_err(|still| OpenError::Children(still.to_string()))?;
        }
        Ok(())
    }

    /// Owns the last run of a feature. `Ok(Err(run))`: it is complete and nothing was asked to change.
    pub fn resume(
        &self,
        feature: &str,
        request: ResumeRequest,
    ) -> Result<Result<Owned, Box<Run>>, OpenError> {
        self.project.prepare(self.vfs.as_ref())?;
        let mut notices = Vec::new();
        let lock = self.lock(feature, &mut notices)?;
        let id = self.latest(feature).ok_or_else(|| OpenError::Unknown(feature.into()))?;
        let dir = self.project.run_dir(&id);
        self.gone(&dir, &id, &mut notices)?;
        let (mut run, mut journal, file) = self.recover(feature, &id, &mut notices)?;
        match run.status {
            Status::Finished(
                sage_core::verdict::Verdict::Succeeded | sage_core::verdict::Verdict::Degraded,
            ) if request.edit.is_none() && request.from.is_none() => {
                return Ok(Err(Box::new(run)));
            }
            Status::Cancelled { resumable: false } => return Err(OpenError::NotResumable(feature.into())),
            _ => {}
        }
        let now = self.clock.now_ms();
        if let Some(edit) = request.edit {
            self.refuse_unanswered(&run)?;
            let edited = Event::from(edit);
            run.apply(&edited, now)?;
            journal.append(edited.kind(), now, &edited)?;
        }
        if let Some(from) = request.from {
            let step = self.find_step(&run, feature, &from)?;
            let rewound = Event::from(RunRewound { from: step });
            run.apply(&rewound, now)?;
            journal.append(rewound.kind(), now, &rewound)?;
        }
        let file = self.open_event(&mut run, &mut journal, file, OpenMode::Resume, request.settings, now)?;
        self.own(run, journal, file, lock, notices, request.no_wait, false).map(Ok)
    }

    /// A path, or a phase's id for its first step.
    fn find_step(&self, run: &Run, feature: &str, name: &str) -> Result<String, OpenError> {
        if run.find(name).is_some() {
            return Ok(name.to_string());
        }
        let member = run.find_phase(name).and_then(|phase| run.phase(phase).members.first().copied());
        let found = member.map(|id| run.step(id).path.to_string());
        found.ok_or_else(|| OpenError::NoStep { feature: feature.into(), step: name.into() })
    }

    fn refuse_unanswered(&self, run: &Run) -> Result<(), OpenError> {
        use sage_core::policy::OnUnknown;
        let asks = |id| {
            let lost = matches!(run.step(id).state, State::Unknown)
                || (matches!(run.step(id).state, State::Running(_)) && run.holds_slot(id));
            lost && run.operation(id).on_unknown == OnUnknown::Ask
        };
        match run.step_ids().find(|&id| asks(id)) {
            Some(id) => Err(OpenError::Unanswered(run.step(id).path.to_string())),
            None => Ok(()),
        }
    }

    fn recover(
        &self,
        feature: &str,
        id: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<(Run, Journal, JournalFile), OpenError> {
        let loaded = self.load_checkpoint(feature);
        if let Some(problem) = loaded.as_ref().and_then(|loaded| loaded.problem.as_ref()) {
            notices.push(Notice::CheckpointFromBackup(problem.to_string()));
        }
        let watermark =
            loaded.as_ref().filter(|l| text(&l.doc, "runId").as_deref() == Some(id)).and_then(watermark);
        let mut fold = Fold::default();
        match journal::recover(&self.vfs, &self.project.run_dir(id), watermark, |record| {
            fold.take::<OpenError>(record)
        }) {
            Ok(recovered) => {
                if let Some(torn) = &recovered.torn {
                    notices.push(Notice::TornTail { bytes: torn.bytes, saved_to: torn.saved_to.clone() });
                }
                Ok((fold.finish()?, recovered.journal, recovered.file))
            }
            Err(OpenError::Journal(
                error @ (JournalError::Missing { .. }
                | JournalError::Corrupt { .. }
                | JournalError::LostAcked { .. }),
            )) => crate::import::import(self, feature, id, error, loaded, notices),
            Err(error) => Err(error),
        }
    }

    /// Tells a run to pause, to end, or what a person decided. Works with and without a living owner.
    pub async fn deliver(&self, feature: &str, signal: Signal) -> Result<Run, OpenError> {
        let snapshot = self.read(feature)?;
        refuse_misfit(&snapshot.run, feature, &signal)?;
        let sent = control::send(self.vfs.as_ref(), &snapshot.dir, &signal)
            .map_err(|source| OpenError::Io { what: "send the signal", source })?;
        let mut notices = Vec::new();
        match self.lock(feature, &mut notices) {
            Err(OpenError::Owned { .. }) => {
                // The owner may end without looking; then the signal is ours to deliver.
                if !control::wait_taken(&sent, SIGNAL_TAKEN) {
                    return Err(OpenError::Deaf);
                }
                Ok(self.read(feature)?.run)
            }
            Err(error) => Err(error),
            Ok(lock) => self.deliver_alone(feature, lock, notices).await,
        }
    }

    async fn deliver_alone(
        &self,
        feature: &str,
        lock: FeatureLock,
        mut notices: Vec<Notice>,
    ) -> Result<Run, OpenError> {
        let id = self.latest(feature).ok_or_else(|| OpenError::Unknown(feature.into()))?;
        self.gone(&self.project.run_dir(&id), &id, &mut notices)?;
        let (mut run, mut journal, file) = self.recover(feature, &id, &mut notices)?;
        let now = self.clock.now_ms();
        let file = self.open_event(&mut run, &mut journal, file, OpenMode::Signal, None, now)?;
        let owned = self.own(run, journal, file, lock, notices, false, true)?;
        owned
            .drive()
            .await
            .map_err(|error| OpenError::Io { what: "deliver", source: std::io::Error::other(error) })
    }
}

fn refuse_misfit(run: &Run, feature: &str, signal: &Signal) -> Result<(), OpenError> {
    let not_open = |what| OpenError::NotOpen { feature: feature.into(), status: run.status.name(), what };
    match signal {
        Signal::Pause if run.status != Status::Running => Err(not_open("pause")),
        Signal::Cancel { .. } if !run.status.open() => Err(not_open("cancel")),
        Signal::Answer { step, choice, .. } => {
            let id = run
                .find(step)
                .ok_or_else(|| OpenError::NoStep { feature: feature.into(), step: step.clone() })?;
            match &run.step(id).state {
                State::Unknown => Ok(()),
                State::Running(running) => match &running.ask {
                    Some(ask) if choice == "reject" || ask.choices.contains(choice) => Ok(()),
                    Some(ask) => Err(OpenError::NoChoice {
                        step: step.clone(),
                        choice: choice.clone(),
                        choices: ask.choices.join(", "),
                    }),
                    None => Err(OpenError::NoQuestion { step: step.clone(), state: "running" }),
                },
                state => Err(OpenError::NoQuestion { step: step.clone(), state: state.name() }),
            }
        }
        _ => Ok(()),
    }
}

fn took_over(owner: &Owner, stale: Stale) -> Notice {
    let why = match stale {
        Stale::DeadPid => "it is dead",
        Stale::RecycledPid => "its process number belongs to another process now",
        Stale::Reboot => "the machine was restarted since",
        Stale::Unknown => "it is gone",
    };
    Notice::TookOver { pid: owner.pid, why }
}

fn text(doc: &Map<String, Value>, field: &str) -> Option<String> {
    doc.get(field)?.as_str().map(str::to_string)
}

fn watermark(loaded: &Loaded) -> Option<Head> {
    serde_json::from_value(loaded.doc.get("journal")?.clone()).ok()
}

/// Records in, a run out.
#[derive(Debug, Default)]
pub struct Fold {
    run: Option<Run>,
}

impl Fold {
    pub fn take<E: From<EventError> + From<FoldError>>(&mut self, record: Record<'_>) -> Result<(), E> {
        let event = Event::parse(record.kind, record.data.get())?;
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

    pub fn finish(self) -> Result<Run, FoldError> {
        self.run.ok_or_else(|| FoldError::First("nothing".into()))
    }
}
