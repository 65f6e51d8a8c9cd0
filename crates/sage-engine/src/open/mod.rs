//! Taking a run: starting one, resuming one, delivering a signal to one that nobody owns, and just reading one.
//!
//! What must stay true: a run has one owner (the OS lock decides); "started" is said only after the first
//! events are durable; no second copy of a step starts while a child of a dead owner may still live.

mod adopt;
mod deliver;
mod detach;
mod earlier;
mod find;
mod fold;
mod fork;
pub mod history;
mod index;
mod latest;
mod mend;
mod numbers;
mod own;
mod preview;
mod refresh;
mod repair;
mod resume;
mod stand_by;
mod start;
mod unknown;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::event::{EventError, Frozen, RunEdited, Settings};
use sage_core::price::PriceTable;
use sage_core::run::{FoldError, Run, Unowned};
use sage_core::seal::Key;
use serde_json::{Map, Value};

use crate::background::Record;
use crate::blobs::BlobError;
use crate::cache::Cache;
use crate::checkpoint::CheckpointError;
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::journal::{Head, JournalError};
use crate::limits::Limits;
use crate::lock::{FeatureLock, LockError, Owner};
use crate::project::{Project, ProjectError};
use crate::registry;
use crate::repair::Repaired;
use crate::run_loop::{Affinity, CommitMode, RunLoop};
use crate::trouble::Trouble;
use crate::vfs::Vfs;
pub use deliver::answered;
pub(crate) use find::watermark;
pub use fold::Fold;
pub use fork::ForkRequest;
pub use index::{Index, Newest};
pub use numbers::SHORT_ID_CHARS;
pub use preview::Kept;
pub use repair::Repair;
pub use walk::Walked;

/// The local engine: one project, everything that can be done with its runs.
#[derive(Clone)]
pub struct Engine {
    pub project: Project,
    pub vfs: Arc<dyn Vfs>,
    /// The user's key (`user_key`). Without one, state is not sealed and nothing on disk counts as ours.
    pub key: Option<Key>,
    /// A person said that state which is not sealed may be continued.
    pub accepts_foreign: bool,
    pub executor: Arc<dyn sage_core::port::StepExecutor>,
    pub clock: Clock,
    pub commit: CommitMode,
    pub limits: Limits,
    pub affinity: Arc<[Affinity]>,
    pub prices: Arc<PriceTable>,
    /// With less free memory than this, one step runs at a time; 0 does not look.
    pub min_free_bytes: u64,
    /// How questions of agents are answered where no person does.
    pub approvals: Arc<crate::approvals::Approvals>,
    /// Where runs tell that something ended or waits; `None` tells nobody.
    pub wakes: Option<Inbox>,
    /// Results that later runs may take; `None` takes and keeps none.
    pub cache: Option<Cache>,
    /// Where expressions are evaluated that must be stopped at a limit.
    pub evaluator: Arc<dyn sage_core::port::Evaluator>,
    /// Who runs workflows in code; `None` runs none.
    pub scripts: Option<Arc<dyn sage_core::port::script::ScriptHost>>,
    pub script_limits: sage_core::port::script::ScriptLimits,
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
    /// Its last run is not known to have ended, and cannot be read.
    #[error("the open run of `{feature}` cannot be read (`{run}`): {cause}")]
    Obscured { feature: String, run: String, cause: Box<OpenError> },
    #[error("`{0}` is the name of a feature already")]
    Taken(String),
    #[error("cannot make the fork ready: {0}")]
    Fork(String),
    #[error("no run of `{0}`")]
    Unknown(String),
    /// Not sealed with this user's key.
    #[error("the state of `{0}` was not written by this user on this machine")]
    Foreign(String),
    #[error("state cannot be sealed: there is no user key")]
    NoKey,
    #[error("the last run of `{feature}` was cancelled without a checkpoint and cannot be resumed")]
    NotResumable { feature: String, template: Box<Frozen> },
    #[error("no step `{step}` in `{feature}`{}", near_text(.near))]
    NoStep { feature: String, step: String, near: Option<String> },
    #[error("step `{step}` does not wait for an answer; it is {state}")]
    NoQuestion { step: String, state: &'static str },
    #[error("step `{step}` takes no messages: {why}")]
    NotListening { feature: String, step: String, why: String },
    #[error("the question of step `{step}` was already answered{}", answer_text(.answer))]
    Answered { feature: String, step: String, answer: Option<String> },
    #[error("`{choice}` is not a choice of step `{step}`: {choices}")]
    NoChoice { step: String, choice: String, choices: String },
    #[error("no budget is called `{node}`; there are: {known}")]
    NoBudget { node: String, known: String },
    #[error("`{feature}` is {status}: nothing to {what}")]
    NotOpen { feature: String, status: &'static str, what: &'static str },
    #[error("step `{0}` has an unknown outcome that a person must judge before the template may change")]
    Unanswered(String),
    #[error("`{0}` does not go on by itself: it has ended, waits for a person, or is another run now")]
    NotAlone(String),
    #[error("processes of an earlier owner are still alive: {what}")]
    Children { what: String, pids: Vec<u32> },
    #[error("{} did not answer in time", owner_text(.0))]
    Deaf(Option<Owner>),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{journal}")]
    Damaged { feature: String, journal: JournalError },
    #[error("the journal does not fold: {0}")]
    Fold(#[from] FoldError),
    #[error("the journal has an event that cannot be read: {0}")]
    Event(#[from] EventError),
    #[error("{journal}; the checkpoint of `{feature}` cannot replace it: {checkpoint}")]
    Lost { feature: String, journal: String, checkpoint: String },
    #[error("the state of `{feature}` is damaged and names no run: {what}")]
    Garbled { feature: String, what: String },
    #[error("{why}; recovering it would run finished steps again: {lost}")]
    NeedsRepair { feature: String, why: String, lost: u64 },
    #[error(transparent)]
    Checkpoint(CheckpointError),
    #[error("cannot lock: {0}")]
    Lock(LockError),
    /// It is not known to be lost: the step need not run again.
    #[error("cannot read the result of `{step}`: {source}")]
    Result { step: String, source: BlobError },
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: std::io::Error },
}

fn near_text(near: &Option<String>) -> String {
    near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

fn answer_text(answer: &Option<String>) -> String {
    answer.as_ref().map_or(String::new(), |answer| format!(": {answer}"))
}

fn owner_text(owner: &Option<Owner>) -> String {
    match owner {
        Some(owner) if owner.is_suspended() => format!("process {}, which is suspended", owner.pid),
        Some(owner) if owner.pid != 0 => format!("process {}", owner.pid),
        _ => "another process".into(),
    }
}

impl OpenError {
    /// The process that owns the run, if it is suspended: it goes on when it is continued, not by waiting.
    pub fn suspended(&self) -> Option<u32> {
        match self {
            OpenError::Owned { owner: Some(owner), .. } | OpenError::Deaf(Some(owner)) => {
                owner.is_suspended().then_some(owner.pid)
            }
            _ => None,
        }
    }

    /// The machine's own trouble, if it is that: worth another try later.
    pub fn trouble(&self) -> Option<Trouble> {
        let cause = self.to_string();
        match self {
            OpenError::Journal(error) => Trouble::of_journal(error),
            OpenError::Io { source, .. }
            | OpenError::Lock(LockError::Io { source, .. })
            | OpenError::Result { source: BlobError::Io { source, .. }, .. }
            | OpenError::Unreadable { source, .. }
            | OpenError::Project(ProjectError::Unwritable { source, .. }) => Trouble::of_state(source, cause),
            _ => None,
        }
    }

    /// With the nearest name that there is.
    fn no_step(run: &Run, feature: &str, step: &str) -> OpenError {
        let phases = run.plan().template.phases.iter().map(|phase| phase.id.as_str());
        let names = run.live_steps().map(|step| step.path.as_ref()).chain(phases);
        let near = sage_core::diagnostic::nearest(step, names).map(str::to_string);
        OpenError::NoStep { feature: feature.into(), step: step.into(), near }
    }
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
    /// The journal was damaged or gone, and was put together from what was left.
    Repaired(Box<Repaired>),
    /// The checkpoint was missing or damaged, and was written anew.
    CheckpointWritten(String),
    /// Results of these steps are gone from the disk: they run again.
    ResultsLost(Vec<String>),
    /// Results can neither be taken from nor kept in the cache: the run does without.
    NoCache(String),
    /// The project changed since these checks passed: they are made again.
    Rechecked(Vec<String>),
    /// What these finished steps were made from has changed since.
    Drifted {
        feature: String,
        steps: Vec<String>,
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
    lock: Arc<FeatureLock>,
    engine: Engine,
    no_wait: bool,
}

/// What resuming found.
#[derive(Debug)]
pub enum Resumed {
    Owned(Box<Owned>),
    /// There is nothing left to do.
    Complete {
        run: Box<Run>,
        notices: Vec<Notice>,
    },
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
    /// Only this run, and only if it goes on by itself: nobody is here who asked for it.
    pub unattended: Option<String>,
    /// Also if its last owner was interrupted: the machine was restarted since.
    pub after_reboot: bool,
    /// Finished steps with `cache` whose agent or declared files are others now run again.
    pub refresh: bool,
}

/// A run as its journal tells it, without owning it.
#[derive(Debug)]
pub struct Snapshot {
    pub run: Run,
    pub dir: PathBuf,
    pub owner: Option<Owner>,
    pub head: Head,
    /// Its journal is not sealed with this user's key: it came from elsewhere, and is only shown.
    pub is_foreign: bool,
    /// Its record, if it runs in the background.
    pub detached: Option<Record>,
}

impl Snapshot {
    /// Somebody owns it, or will without anybody's doing.
    pub fn is_alive(&self) -> bool {
        let goes_on =
            |record: &Record| record.over.is_none() && self.run.unowned(record.no_wait) == Unowned::GoesOn;
        !self.is_foreign && (self.owner.is_some() || self.detached.as_ref().is_some_and(goes_on))
    }

    /// A process drives it, or will without anybody's doing.
    pub fn is_driven(&self) -> bool {
        self.owner.is_some() || self.is_alive()
    }

    /// The time up to which a reader counts at `now_ms`.
    pub fn clock_ms(&self, now_ms: u64) -> u64 {
        self.run.clock_ms(now_ms, self.is_driven())
    }
}
