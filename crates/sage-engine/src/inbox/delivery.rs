//! Delivery: takes wakes in their order and has each of them handled once.
//!
//! ```text
//! turn -> adopt drops -> for each, oldest first: take -> read -> known? -> handle -> ledger (many, one sync) -> remove
//!                                                         |         |
//!                                       only acknowledged <+         +-> failed: again later; five times: dead
//! ```
//! A wake that fails holds back its own sender and nobody else. A try counts when it failed, or when whoever
//! handled it died over it; a deliverer that is killed at any other moment costs no try.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dead::Reason;
use super::delivered::Delivered;
use super::drops::Seen;
use super::handler::Handler;
use super::ledger::{Handled, Ledger};
use super::name::{Name, is_unfinished};
use super::post::PostError;
use super::turn::{Doing, Turn};
use super::{GRACE, Inbox, Wake, gone_is_fine};
use crate::clock::Clock;
use crate::vfs::Vfs;

/// Tries of a wake before it is given up.
pub const TRIES: u32 = 5;
/// Before the second try; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Wakes that share one sync of the ledger.
const BATCH: usize = 64;
/// Whoever waits for a wake does not wait for a full batch.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// What a killed writer left aside was never acknowledged.
const LEFTOVER: Duration = Duration::from_secs(3_600);

#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    #[error(transparent)]
    Adopt(#[from] PostError),
    #[error("cannot {what} in `{}`: {source}", dir.display())]
    Io { what: &'static str, dir: PathBuf, source: io::Error },
}

/// One process's deliverer.
pub struct Delivery {
    inbox: Inbox,
    handler: Arc<dyn Handler>,
    ledger: Ledger,
    seen: Seen,
    /// When wakes that failed may be tried again.
    due: HashMap<u64, Instant>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery").field("inbox", &self.inbox.dir).finish_non_exhaustive()
    }
}

struct Entry {
    name: Name,
    path: PathBuf,
    /// Tries that failed; `None` while it is in `new`.
    tries: Option<u32>,
}

/// Handled, not yet recorded.
#[derive(Default)]
struct Batch {
    entries: Vec<Handled>,
    ids: HashSet<String>,
    files: Vec<PathBuf>,
    since: Option<Instant>,
}

impl Delivery {
    pub fn new(inbox: Inbox, handler: Arc<dyn Handler>) -> Delivery {
        let ledger = Ledger::new(&inbox.dir);
        Delivery { inbox, handler, ledger, seen: Seen::default(), due: HashMap::new() }
    }

    /// Delivers what can be delivered now.
    pub fn pass(&mut self) -> Result<Delivered, DeliverError> {
        self.turn(Duration::ZERO)
    }

    /// Delivers until nothing is left that only needs time, or the time is up.
    pub fn until_quiet(&mut self, within: Duration) -> Result<Delivered, DeliverError> {
        const LOOK: Duration = Duration::from_millis(20);
        let deadline = Instant::now() + within;
        let mut total = Delivered::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let pass = self.turn(left.min(Duration::from_millis(200)))?;
            total = total.then(pass);
            if (!pass.busy && pass.again.is_none()) || left.is_zero() {
                return Ok(total);
            }
            std::thread::sleep(pass.again.unwrap_or(LOOK).min(left));
        }
    }

    fn turn(&mut self, patience: Duration) -> Result<Delivered, DeliverError> {
        let mut delivered = Delivered::default();
        if self.is_empty().map_err(self.failed("look"))? {
            return Ok(delivered);
        }
        self.inbox.prepare().map_err(self.failed("make the inbox"))?;
        let Some((turn, doing)) = Turn::take(&self.inbox, patience).map_err(self.failed("take turns"))?
        else {
            delivered.busy = true;
            return Ok(delivered);
        };
        self.ledger.catch_up(&self.inbox.disk).map_err(self.failed("read the ledger"))?;
        self.after_a_death(doing, &mut delivered).map_err(self.failed("clear up"))?;
        turn.rest().map_err(self.failed("take turns"))?;
        let fresh = self.inbox.adopt(&mut self.seen)?;
        if fresh > 0 {
            delivered.left += fresh;
            delivered.again_in(GRACE / 4);
        }
        self.deliver(&turn, &mut delivered).map_err(self.failed("deliver"))?;
        self.ledger.compact_if_large(&self.inbox.disk).map_err(self.failed("compact the ledger"))?;
        Ok(delivered)
    }

    fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> DeliverError + use<> {
        let dir = self.inbox.dir.to_path_buf();
        move |source| DeliverError::Io { what, dir: dir.clone(), source }
    }

    /// Nothing to do: the usual case, and no lock is taken for it.
    fn is_empty(&self) -> io::Result<bool> {
        for dir in [self.inbox.new_dir(), self.inbox.taken_dir(), self.inbox.claimed_dir()] {
            if self.inbox.list(&dir)?.iter().any(|name| !is_unfinished(name)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the deliverer before left behind when it died.
    fn after_a_death(&mut self, doing: Doing, delivered: &mut Delivered) -> io::Result<()> {
        match doing {
            Doing::Nothing => {}
            Doing::Recording => drop(self.inbox.mend_log(BATCH)),
            Doing::Handling(name, tries) => {
                let path = self.inbox.taken_dir().join(name.taken(tries));
                if path.symlink_metadata().is_ok() {
                    let entry = Entry { name, path, tries: Some(tries) };
                    self.count_failure(&entry, tries, "whoever handled it died over it", delivered)?;
                }
            }
        }
        for left in self.inbox.list(&self.inbox.tmp_dir())? {
            let path = self.inbox.tmp_dir().join(left);
            let modified = self.inbox.disk.metadata(&path).ok().and_then(|meta| meta.modified);
            if modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LEFTOVER) {
                gone_is_fine(self.inbox.disk.remove_file(&path))?;
            }
        }
        Ok(())
    }

    /// Unhandled wakes in the order of their posts.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let (taken, new) = (self.inbox.taken_dir(), self.inbox.new_dir());
        let mut entries = Vec::new();
        for file in self.inbox.list(&taken)? {
            let found = Name::parse_taken(&file);
            entries.extend(found.map(|(name, tries)| Entry {
                name,
                path: taken.join(&file),
                tries: Some(tries),
            }));
        }
        for file in self.inbox.list(&new)? {
            entries.extend(Name::parse(&file).map(|name| Entry { name, path: new.join(&file), tries: None }));
        }
        entries.sort_by_key(|entry| entry.name.seq);
        Ok(entries)
    }

    fn deliver(&mut self, turn: &Turn, delivered: &mut Delivered) -> io::Result<()> {
        let entries = self.entries()?;
        let files: HashSet<String> = entries.iter().map(|entry| entry.name.file()).collect();
        let fresh_drops = self.inbox.list(&self.inbox.new_dir())?;
        self.seen.forget(|name| files.contains(name) || fresh_drops.iter().any(|drop| drop == name));
        self.due.retain(|seq, _| entries.iter().any(|entry| entry.name.seq == *seq));
        let mut batch = Batch::default();
        let result = self.attempt_all(turn, entries, &mut batch, delivered);
        // Also when something broke: what was handled is recorded.
        self.record(turn, batch).and(result)
    }

    fn attempt_all(
        &mut self,
        turn: &Turn,
        entries: Vec<Entry>,
        batch: &mut Batch,
        delivered: &mut Delivered,
    ) -> io::Result<()> {
        let mut held: HashSet<String> = HashSet::new();
        for entry in entries {
            if held.contains(&entry.name.sender) {
                delivered.left += 1;
                continue;
            }
            if let Some(wait) = self.attempt(turn, &entry, batch, delivered)? {
                held.insert(entry.name.sender);
                delivered.left += 1;
                delivered.again_in(wait);
            }
            if batch.is_due() {
                self.record(turn, std::mem::take(batch))?;
            }
        }
        Ok(())
    }

    /// One wake. `Some` if its sender has to wait that long.
    fn attempt(
        &mut self,
        turn: &Turn,
        entry: &Entry,
        batch: &mut Batch,
        delivered: &mut Delivered,
    ) -> io::Result<Option<Duration>> {
        let now = Instant::now();
        if let Some(wait) = self.due.get(&entry.name.seq).and_then(|due| due.checked_duration_since(now)) {
            return Ok(Some(wait));
        }
        let file = entry.name.file();
        let read = self.inbox.read_wake(&entry.path, &file)?;
        if read.is_err() {
            let Ok(meta) = self.inbox.disk.metadata(&entry.path) else { return Ok(None) };
            if !self.seen.is_stable(&file, &meta) {
                return Ok(Some(GRACE / 4));
            }
        }
        let tries = entry.tries.unwrap_or(0);
        let Some(taken) = self.take(entry, tries)? else { return Ok(None) };
        let failure = match read {
            Err(unreadable) => unreadable.to_string(),
            Ok(wake) if self.ledger.contains(&wake.wake_id) || batch.ids.contains(&wake.wake_id) => {
                delivered.repeated += 1;
                batch.files.push(taken.path);
                return Ok(None);
            }
            Ok(wake) => {
                turn.handling(&taken.name, tries)?;
                match self.handler.handle(&wake) {
                    Ok(()) => {
                        turn.rest()?;
                        delivered.handled += 1;
                        batch.take(&wake, taken.path);
                        return Ok(None);
                    }
                    Err(error) => error.to_string(),
                }
            }
        };
        let wait = self.count_failure(&taken, tries, &failure, delivered)?;
        turn.rest()?;
        Ok(wait)
    }

    /// `None` if its writer took it back.
    fn take(&self, entry: &Entry, tries: u32) -> io::Result<Option<Entry>> {
        let path = self.inbox.taken_dir().join(entry.name.taken(tries));
        match entry.tries.map_or_else(|| self.inbox.disk.rename(&entry.path, &path), |_| Ok(())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(|()| Some(Entry { name: entry.name.clone(), path, tries: Some(tries) })),
        }
    }

    /// One more try that failed. `None` if it was the last.
    fn count_failure(
        &mut self,
        entry: &Entry,
        tries: u32,
        reason: &str,
        delivered: &mut Delivered,
    ) -> io::Result<Option<Duration>> {
        delivered.failed += 1;
        let tries = tries + 1;
        if tries >= TRIES {
            let at = sage_core::wire::rfc3339(Clock::System.now_ms());
            self.inbox.bury(&entry.path, &entry.name, &Reason { reason: reason.into(), tries, at })?;
            delivered.dead += 1;
            return Ok(None);
        }
        let taken = self.inbox.taken_dir();
        self.inbox.disk.rename(&entry.path, &taken.join(entry.name.taken(tries)))?;
        self.inbox.disk.sync_dir(&taken)?;
        let pause = FIRST_PAUSE * 2_u32.pow(tries - 1);
        self.due.insert(entry.name.seq, Instant::now() + pause);
        Ok(Some(pause))
    }

    /// The effect and the acknowledgement of a batch: one write, one sync. Then the files may go.
    fn record(&mut self, turn: &Turn, batch: Batch) -> io::Result<()> {
        if !batch.entries.is_empty() {
            turn.recording()?;
            self.ledger.append(&self.inbox.disk, &batch.entries)?;
            // A copy to read along: the ledger has it all.
            let _ = self.inbox.log_handled(&batch.entries);
            turn.rest()?;
        }
        batch.files.iter().try_for_each(|file| gone_is_fine(self.inbox.disk.remove_file(file)))
    }
}

impl Batch {
    fn is_due(&self) -> bool {
        self.files.len() >= BATCH || self.since.is_some_and(|since| since.elapsed() >= BATCH_TIME)
    }

    fn take(&mut self, wake: &Wake, file: PathBuf) {
        self.since.get_or_insert_with(Instant::now);
        self.ids.insert(wake.wake_id.clone());
        self.entries.push(Handled::new(wake, Clock::System.now_ms()));
        self.files.push(file);
    }
}
