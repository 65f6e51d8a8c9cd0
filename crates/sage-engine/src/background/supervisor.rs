//! One process per project that gives detached runs their next owner. It holds nothing that would be lost with it.

use std::collections::HashMap;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::look::Look;
use super::record::{Over, Record};
use crate::lock::{self, FeatureLock, LockError, Owner};
use crate::open::Engine;

/// A supervisor with nothing to watch stays this long: the next run often comes soon.
const IDLE: Duration = Duration::from_secs(5);

/// After a look that failed: the disk is full, or a record cannot be written.
const TROUBLE: Duration = Duration::from_secs(5);

/// Whether a run in the background has nobody to look after it. Cheap where there is none.
pub fn is_needed(engine: &Engine) -> bool {
    let records = engine.records().list();
    records.iter().any(|record| engine.goes_on(record)) && lock::peek(&engine.project.supervisor()).is_none()
}

/// What a supervisor has to say about a run.
#[derive(Debug)]
pub enum Told {
    Started { feature: String, pid: u32 },
    Ended { feature: String, pid: u32, how: ExitStatus },
    Looked { feature: String, look: Look },
    Failed { feature: String, why: io::Error },
}

/// Starts the next owner of a run.
pub type Starts = Box<dyn FnMut(&Record) -> io::Result<Child>>;

pub struct Supervisor {
    engine: Engine,
    starts: Starts,
    lock: Option<FeatureLock>,
    children: Vec<(String, Child)>,
    /// Not to be looked at again before this time, whatever becomes of the clock on the wall.
    later: HashMap<String, Instant>,
    busy: Instant,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("children", &self.children).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// None if the project has one already.
    pub fn take(engine: Engine, starts: Starts) -> Result<Option<Supervisor>, LockError> {
        let Some(lock) = acquire(&engine)? else { return Ok(None) };
        let (children, later) = (Vec::new(), HashMap::new());
        Ok(Some(Supervisor { engine, starts, lock: Some(lock), children, later, busy: Instant::now() }))
    }

    /// Looks at every run once. Cheap while nothing has happened.
    pub fn look(&mut self) -> Vec<Told> {
        let mut told = self.reap();
        for record in self.engine.records().list() {
            let feature = record.feature.clone();
            if !self.engine.goes_on(&record) {
                continue;
            }
            self.busy = Instant::now();
            let owned = lock::peek(&self.engine.project.lock(&feature)).is_some();
            let later = self.later.get(&feature).is_some_and(|&at| Instant::now() < at);
            if owned || later {
                continue;
            }
            self.later.remove(&feature);
            match self.engine.look_after(&feature) {
                Ok(Look::Start(record)) => told.push(self.start(record)),
                Ok(Look::Later(at)) => {
                    let left = at.saturating_sub(self.engine.clock.now_ms());
                    self.later.insert(feature, Instant::now() + Duration::from_millis(left));
                }
                Ok(Look::Owned(_)) => {}
                Ok(look) => told.push(Told::Looked { feature, look }),
                Err(why) => {
                    self.later.insert(feature.clone(), Instant::now() + TROUBLE);
                    told.push(Told::Failed { feature, why });
                }
            }
        }
        told
    }

    fn start(&mut self, record: Record) -> Told {
        let feature = record.feature.clone();
        match (self.starts)(&record) {
            Ok(child) => {
                let pid = child.id();
                self.children.push((feature.clone(), child));
                Told::Started { feature, pid }
            }
            Err(why) => {
                // The machine's trouble, not the run's: it is tried again later, however often.
                let _ = self.engine.not_started(&feature);
                self.later.insert(feature.clone(), Instant::now() + TROUBLE);
                Told::Failed { feature, why }
            }
        }
    }

    fn reap(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        self.children.retain_mut(|(feature, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(how)) => {
                told.push(Told::Ended { feature: feature.clone(), pid: child.id(), how });
                false
            }
            Err(_) => false,
        });
        told
    }

    /// Whether it may end: nothing to watch for a while, and nobody who counts on it. Whoever writes a record
    /// looks for a supervisor after that; so the lock is let go first, and the records are read after that.
    pub fn may_end(&mut self) -> Result<bool, LockError> {
        if self.busy.elapsed() < IDLE || !self.children.is_empty() {
            return Ok(false);
        }
        self.lock = None;
        if !is_needed(&self.engine) {
            return Ok(true);
        }
        self.lock = acquire(&self.engine)?;
        // Somebody else has taken over: that is an end, too.
        Ok(self.lock.is_none())
    }

    /// The project was removed, or its state: there is nothing to come back to.
    pub fn is_homeless(&self) -> bool {
        !self.engine.project.supervisor().exists()
    }

    /// A person wants it to end: owners pause their runs, and nobody starts them again until they are resumed.
    /// Gives those that are still there; called again, it is more urgent.
    pub fn stop(&mut self) -> Vec<Owner> {
        let records = self.engine.records();
        for record in records.list().into_iter().filter(|record| self.engine.goes_on(record)) {
            let stopped = |record: Option<Record>| {
                (record.map(|record| Record { over: Some(Over::Stopped), ..record }), ())
            };
            // Its owner's pause says the same, unless it dies of it.
            let _ = records.change(&record.feature, stopped);
        }
        let owners = self.owners();
        for owner in owners.iter().filter(|owner| owner.is_alive()) {
            if let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
        }
        owners
    }

    /// Owners of runs in the background.
    pub fn owners(&mut self) -> Vec<Owner> {
        self.reap();
        let records = self.engine.records().list();
        let owner = |record: &Record| lock::peek(&self.engine.project.lock(&record.feature));
        records.iter().filter_map(owner).filter(|owner| owner.pid != 0).collect()
    }
}

fn acquire(engine: &Engine) -> Result<Option<FeatureLock>, LockError> {
    let owner = Owner::current("supervisor", engine.clock.now_ms());
    match FeatureLock::acquire(&engine.project.supervisor(), owner) {
        Ok(acquired) => Ok(Some(acquired.lock)),
        Err(LockError::Held(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
