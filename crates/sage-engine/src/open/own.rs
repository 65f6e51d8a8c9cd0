//! Owning a run: the lock, the event that says so, and the certainty that no earlier owner's child is alive.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{Event, OpenMode, RunOpened};
use sage_core::run::Run;

use super::{Engine, Notice, OpenError, Owned, history, register};
use crate::cache::Cache;
use crate::journal::{Home, Journal, JournalFile};
use crate::lock::{self, FeatureLock, LockError, Owner, Stale};
use crate::orchestration::OrchestrationLog;
use crate::output::Outputs;
use crate::run_loop::{CommitMode, EarlierResults, Options, RunLoop, Surroundings};

/// A dead owner's children are gone within milliseconds; this is for loaded machines.
const CHILDREN_GONE: Duration = Duration::from_secs(5);

impl Engine {
    pub(super) fn lock(
        &self,
        feature: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<Arc<FeatureLock>, OpenError> {
        let owner = Owner::current("", self.clock.now_ms());
        match FeatureLock::acquire(&self.project.lock(feature), owner) {
            Ok(acquired) => {
                notices.extend(acquired.previous.map(|(owner, stale)| took_over(&owner, stale)));
                Ok(Arc::new(acquired.lock))
            }
            Err(LockError::Held(owner)) => Err(OpenError::Owned { feature: feature.into(), owner }),
            Err(error) => Err(OpenError::Lock(error)),
        }
    }

    /// Journals that this process owns the run; durable when this returns, but for a new run: nothing was done in it
    /// yet, and its first step syncs it.
    pub(super) fn open_event(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        mut file: JournalFile,
        opened: RunOpened,
        now: u64,
    ) -> Result<JournalFile, OpenError> {
        let is_new = opened.mode == OpenMode::Start;
        let opened = Event::from(opened);
        run.apply(&opened, now)?;
        journal.append(opened.kind(), now, &opened)?;
        let batch = if is_new { journal.take_unsynced() } else { journal.take_batch() };
        if let Some(batch) = batch {
            file.commit(&batch)?;
        }
        Ok(file)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what makes an owned run; each caller has all of it at hand"
    )]
    pub(super) fn own(
        &self,
        run: Run,
        journal: Journal,
        file: JournalFile,
        lock: Arc<FeatureLock>,
        mut notices: Vec<Notice>,
        no_wait: bool,
        deliver_only: bool,
    ) -> Result<Owned, OpenError> {
        let run_dir = self.project.run_dir(&run.id);
        let blobs = self.blobs(&run.id);
        let path = self.project.checkpoint(&run.feature);
        let around = Surroundings {
            vfs: self.vfs.clone(),
            key: self.key.clone(),
            executor: self.executor.clone(),
            clock: self.clock.clone(),
            blobs,
            project: self.project.root.clone(),
            outputs: self.outputs_of(&run),
            children_lock: self.children_lock(&run_dir)?,
            run_dir,
            checkpoint: path,
            limits: self.limits.clone(),
            affinity: self.affinity.clone(),
            prices: self.prices.clone(),
            min_free_bytes: self.min_free_bytes,
            approvals: self.approvals.clone(),
            wakes: self.wakes.clone(),
            log: (self.commit == CommitMode::Thread).then(|| OrchestrationLog::new(&self.project.logs())),
            earlier: self.earlier(),
            cache: self.cache_for(&run, &mut notices),
            evaluator: self.evaluator.clone(),
            scripts: self.scripts.clone(),
            script_limits: self.script_limits,
        };
        let member =
            self.limits.join(&run.id).map_err(|source| OpenError::Io { what: "join the limits", source })?;
        let real = self.commit == CommitMode::Thread;
        let history = if real { history::load(&self.project.state()) } else { Default::default() };
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
        let file = if real {
            file.at_home(Home::new(self.vfs.clone(), self.project.clone(), lock.clone()))
        } else {
            file
        };
        let run_loop = RunLoop::new(around, options, run, journal, file, member, history);
        Ok(Owned {
            run_loop,
            notices,
            run_dir,
            head,
            lock,
            engine: self.clone(),
            no_wait: no_wait || deliver_only,
        })
    }

    /// A fork keeps away from the files of the run that it was made of.
    fn outputs_of(&self, run: &Run) -> Arc<Outputs> {
        let fork = run.forked_from().map(|_| run.feature.clone());
        Arc::new(Outputs::new(&self.project.root, &self.project.state(), fork))
    }

    /// A cache that cannot be used is told once, and done without (R15).
    fn cache_for(&self, run: &Run, notices: &mut Vec<Notice>) -> Option<Cache> {
        let cache = self.cache.clone().filter(|_| run.caches())?;
        match cache.check() {
            Ok(()) => Some(cache),
            Err(why) => {
                notices.push(Notice::NoCache(why));
                None
            }
        }
    }

    fn earlier(&self) -> Arc<EarlierResults> {
        let engine = self.clone();
        Arc::new(move |feature, run, path| engine.earlier_result(feature, run, path))
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
    pub(super) fn gone(&self, dir: &Path, run: &str, notices: &mut Vec<Notice>) -> Result<(), OpenError> {
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
            return Err(OpenError::Children { what: format!("{left:?} cannot be ended"), pids: left });
        }
        if first.is_err() {
            lock::wait_gone(&path, CHILDREN_GONE).map_err(|still| held(&path, &still))?;
        }
        Ok(())
    }
}

/// Names those who keep the run's files: a person may end them, sage may not.
fn held(path: &Path, still: &lock::StillAlive) -> OpenError {
    let holders = lock::holders(path);
    let names: Vec<String> = holders.iter().map(|it| format!("{} (`{}`)", it.pid, it.name)).collect();
    let by = if names.is_empty() { String::new() } else { format!(" by process {}", names.join(", ")) };
    OpenError::Children { what: format!("{still}{by}"), pids: holders.iter().map(|it| it.pid).collect() }
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
