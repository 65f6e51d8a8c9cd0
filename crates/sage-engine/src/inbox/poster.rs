//! The engine's own wakes: posted after their event is durable, in order, off the loop.
//!
//! The loop never waits for the inbox. How far the wakes of a run are posted is written beside its journal, so a
//! run that was killed between an event and its wake makes up for it when it is next opened; a wake that had been
//! posted nevertheless has the same id and no second effect.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sage_core::event::Event;

use super::{Inbox, Wake, wake_of};
use crate::journal;
use crate::open::{Fold, OpenError};
use crate::vfs::Vfs;

/// In the run's directory: the last record whose wake is posted.
const MARK: &str = "wakes";
/// A disk that is busy gets this long at the end of a run; what is left then is posted by the next owner.
const LAST_POSTS: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Poster {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inbox: Inbox,
    run_dir: PathBuf,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Bounded by what the run itself holds: a step has one wake.
#[derive(Debug, Default)]
struct Queue {
    wakes: VecDeque<(u64, Wake)>,
    working: bool,
    closed: bool,
    /// One could not be posted: the mark stays where it is, and the next owner tries again.
    behind: bool,
}

impl Poster {
    /// `head` is the last record that was durable when the run was taken.
    pub(crate) fn new(inbox: Inbox, vfs: Arc<dyn Vfs>, run_dir: PathBuf, head: u64) -> Poster {
        let queue = Mutex::new(Queue { working: true, ..Queue::default() });
        let shared = Arc::new(Shared { inbox, run_dir, queue, changed: Condvar::new() });
        let theirs = shared.clone();
        std::thread::spawn(move || {
            theirs.make_up(vfs.as_ref(), head);
            theirs.work();
        });
        Poster { shared }
    }

    pub(crate) fn post(&self, seq: u64, wake: Wake) {
        self.shared.lock().wakes.push_back((seq, wake));
        self.shared.changed.notify_all();
    }

    /// Waits for what is under way. All events up to `head` have been told.
    pub(crate) fn finish(&self, head: u64) {
        let deadline = Instant::now() + LAST_POSTS;
        let mut queue = self.shared.lock();
        while (queue.working || !queue.wakes.is_empty()) && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = self.shared.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !queue.working && queue.wakes.is_empty() && !queue.behind {
            self.shared.mark(head);
        }
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            queue.working = false;
            self.changed.notify_all();
            while queue.wakes.is_empty() && !queue.closed {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some((seq, wake)) = queue.wakes.pop_front() else { return };
            queue.working = true;
            drop(queue);
            self.post(seq, &wake);
            queue = self.lock();
        }
    }

    fn post(&self, seq: u64, wake: &Wake) {
        let posted = self.inbox.post(wake).is_ok();
        let mut queue = self.lock();
        queue.behind |= !posted;
        if !queue.behind {
            drop(queue);
            self.mark(seq);
        }
    }

    /// Posts what an earlier owner did not get to.
    fn make_up(&self, vfs: &dyn Vfs, head: u64) {
        // Somebody may want to drop a file while the run is under way.
        let _ = self.inbox.prepare();
        match read_mark(&self.run_dir) {
            // The first owner with wakes: what was before is old news.
            None => self.mark(head),
            Some(mark) if mark < head => match missed(vfs, &self.run_dir, mark, head) {
                Ok(wakes) => wakes.iter().for_each(|(seq, wake)| self.post(*seq, wake)),
                Err(_) => self.lock().behind = true,
            },
            Some(_) => {}
        }
    }

    /// Not synced: a mark that is lost costs posts without an effect.
    fn mark(&self, seq: u64) {
        let _ = write_mark(&self.run_dir, seq);
    }
}

fn write_mark(run_dir: &Path, seq: u64) -> io::Result<()> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(run_dir.join(MARK))?;
    file.write_all_at(format!("{seq:020}\n").as_bytes(), 0)
}

/// `Some(0)` where it cannot be read: then all of the run's wakes are posted again.
fn read_mark(run_dir: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(run_dir.join(MARK)).ok()?;
    Some(text.trim().parse().unwrap_or(0))
}

/// Wakes of the records after `mark`, up to `head`.
fn missed(vfs: &dyn Vfs, run_dir: &Path, mark: u64, head: u64) -> Result<Vec<(u64, Wake)>, OpenError> {
    let (mut fold, mut wakes) = (Fold::default(), Vec::new());
    journal::check(vfs, run_dir, None, |record| -> Result<(), OpenError> {
        let event = Event::parse(record.kind, record.data.get())?;
        fold.apply(&event, record.ts_ms)?;
        if let Some(run) = fold.run().filter(|_| (mark + 1..=head).contains(&record.seq)) {
            wakes.extend(wake_of(&event, record.seq, run).map(|wake| (record.seq, wake)));
        }
        Ok(())
    })?;
    Ok(wakes)
}
