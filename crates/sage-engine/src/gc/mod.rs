//! Clean-up: what is old, over and nobody's any more goes; what can still go on stays.
//!
//! ```text
//! run is over, old enough ---> checkpoint removed --sync--> run's folder renamed into trash/ --sync--> removed
//! ```
//! What must stay true: a run that is running, paused or owned is never touched, nor is the newest run of a
//! feature that could be resumed and is younger than the age; killed at any point, every run that is left can
//! be read as before, and no feature is half there. One clean-up at a time.

mod blobs;
mod files;
mod report;
mod runs;
mod size;
mod trash;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::lock::lock_within;
use crate::open::Engine;
use crate::project::ProjectError;
use crate::vfs::{self, Vfs};
pub use report::{Category, Item, Report};
pub use size::tree_bytes;

/// What nobody has finished writing by then was left by somebody who died.
const ABANDONED_MS: u64 = 24 * 3_600_000;
/// When the automatic clean-up last looked.
const STAMP: &str = "gc.stamp";

/// What goes.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub older_than_ms: u64,
    /// So many of the newest runs stay, however old they are.
    pub keep: usize,
    /// The oldest runs go until all together are not larger; `None` does not look.
    pub max_bytes: Option<u64>,
    /// Also what cannot be read.
    pub force: bool,
    /// Say it, do nothing.
    pub dry_run: bool,
    /// Also look for what crashes left behind in what stays.
    pub thorough: bool,
}

/// Whether something that belongs to a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// There is no such run (any more).
    Gone,
    Closed {
        ended_ms: u64,
    },
    /// It can go on, or nobody can say.
    Open,
}

#[derive(Debug, thiserror::Error)]
pub enum GcError {
    #[error("another clean-up is at work")]
    Busy,
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: std::path::PathBuf, source: io::Error },
}

/// A clean-up under way.
#[derive(Debug)]
pub struct Gc<'a> {
    engine: &'a Engine,
    policy: Policy,
    now_ms: u64,
    pub report: Report,
    /// Runs that are gone, or would be.
    gone: BTreeSet<String>,
    _lock: Option<File>,
}

impl<'a> Gc<'a> {
    pub fn begin(engine: &'a Engine, policy: Policy) -> Result<Gc<'a>, GcError> {
        let gc = |lock| Gc {
            engine,
            policy,
            now_ms: engine.clock.now_ms(),
            report: Report::default(),
            gone: BTreeSet::new(),
            _lock: lock,
        };
        engine.project.refuse_strange()?;
        let state = engine.project.state();
        // Looking makes nothing, also where there is nothing.
        if policy.dry_run || !state.is_dir() {
            return Ok(gc(None));
        }
        let path = state.join("gc.lock");
        match lock_within(&path, Duration::ZERO) {
            Ok(lock) => Ok(gc(Some(lock))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(GcError::Busy),
            Err(source) => Err(GcError::Io { op: "lock", path, source }),
        }
    }

    /// Everything that the engine itself keeps.
    pub fn sweep(&mut self) {
        self.empty_trash();
        self.sweep_runs();
        if self.policy.thorough {
            self.sweep_blobs();
            self.sweep_leftovers();
            self.sweep_forks();
        }
        self.sweep_logs();
        self.sweep_inbox();
        self.sweep_handoffs();
        self.sweep_cache();
    }

    /// What is known of a run now. In a dry run, those that would be gone are.
    pub fn fate(&self, run: &str) -> Fate {
        if self.is_gone(run) {
            return Fate::Gone;
        }
        match self.engine.read_run(run) {
            Some(run) if !run.status.open() => Fate::Closed { ended_ms: run.updated_ms },
            _ => Fate::Open,
        }
    }

    pub fn is_gone(&self, run: &str) -> bool {
        let dir = self.engine.project.run_dir(run);
        self.gone.contains(run) || !self.engine.vfs.exists(&dir).unwrap_or(true)
    }

    pub fn is_old(&self, at_ms: u64) -> bool {
        self.now_ms.saturating_sub(at_ms) >= self.policy.older_than_ms
    }

    /// Keeps everybody from opening the feature's newest run. `None` if somebody has it.
    pub fn hold(&self, feature: &str) -> Option<File> {
        lock_within(&self.engine.project.lock(feature), Duration::ZERO).ok()
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn age_ms(&self, at_ms: u64) -> u64 {
        self.now_ms.saturating_sub(at_ms)
    }

    fn vfs(&self) -> &'a dyn Vfs {
        self.engine.vfs.as_ref()
    }

    /// When a file was last changed; `None` if that is not known.
    fn modified_ms(&self, path: &Path) -> Option<u64> {
        since_epoch_ms(self.vfs().metadata(path).ok()?.modified?)
    }

    /// What is in a directory of the project. Nothing where there is a link on the way: what it leads to is not
    /// ours to clean up, and a clone may have brought it.
    fn names(&self, dir: &Path) -> Vec<String> {
        self.vfs().list(dir).unwrap_or_default()
    }

    /// Nobody has written to it for a day.
    fn is_abandoned(&self, path: &Path) -> bool {
        self.modified_ms(path).is_some_and(|at| self.now_ms.saturating_sub(at) > ABANDONED_MS)
    }

    /// Files that only the age decides about.
    fn remove_file(&mut self, category: Category, path: &Path) {
        let Ok(meta) = self.vfs().metadata(path) else { return };
        let bytes = meta.len;
        let age_ms = self.modified_ms(path).map(|at| self.now_ms.saturating_sub(at));
        let name = self.shown(path);
        let removed = if self.policy.dry_run { Ok(()) } else { self.vfs().remove_file(path) };
        match removed {
            Ok(()) => self.report.removed(Item { category, name, bytes, age_ms, feature: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report.failed(category, name, error),
        }
    }

    /// As seen from `.sage`.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.engine.project.dir).unwrap_or(path).display().to_string()
    }
}

fn since_epoch_ms(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Whether the automatic clean-up has not looked for `every_ms`; if so, this look is the next one.
pub fn is_due(engine: &Engine, every_ms: u64) -> bool {
    let path = engine.project.state().join(STAMP);
    let now = engine.clock.now_ms();
    let last = engine.vfs.read(&path, 64).ok().and_then(|text| String::from_utf8(text).ok());
    let last: Option<u64> = last.and_then(|text| text.trim().parse().ok());
    // A time in the future is of a clock that went wrong.
    if last.is_some_and(|last| last <= now && now - last < every_ms) {
        return false;
    }
    vfs::replace(engine.vfs.as_ref(), &path, format!("{now}\n").as_bytes()).is_ok()
}
