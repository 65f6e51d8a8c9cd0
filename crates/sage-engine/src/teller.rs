//! Telling others what happened: after the event is durable, in order, off the loop.
//!
//! ```text
//! loop --news--> queue --> a thread of its own --> inbox (wakes) / orchestration log
//! ```
//! The loop never waits for it. How far a run has been told is written beside its journal, so a run that was killed
//! between an event and its news makes up for it when it is next opened. What is told twice for that reason carries
//! the number of its record, so that it can be told apart.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sage_core::event::Event;
use sage_core::run::Run;
use sage_fence::private;

use crate::inbox::{Inbox, Wake, wake_of};
use crate::journal;
use crate::open::{Fold, OpenError};
use crate::vfs::Vfs;

/// A disk that is busy gets this long at the end of a run; what is left then is told by the next owner.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Who is told.
pub(crate) trait Listener: std::fmt::Debug + Send + Sync + 'static {
    type News: std::fmt::Debug + Send + 'static;
    /// In the run's directory: the last record that was told.
    const MARK: &'static str;

    /// Before anything is told.
    fn prepare(&self) {}

    /// What an event that the run has just folded as its record `seq` is worth telling.
    fn news(event: &Event, seq: u64, ts_ms: u64, run: &Run) -> Option<Self::News>;

    fn tell(&self, news: &Self::News) -> io::Result<()>;

    /// Whether it was told of that before; asked only after a death.
    fn knows(&self, _news: &Self::News) -> bool {
        false
    }
}

impl Listener for Inbox {
    type News = Wake;
    const MARK: &'static str = "wakes";

    /// Somebody may want to drop a file while the run is under way.
    fn prepare(&self) {
        let _ = Inbox::prepare(self);
    }

    fn news(event: &Event, seq: u64, _ts_ms: u64, run: &Run) -> Option<Wake> {
        wake_of(event, seq, run)
    }

    /// A wake that had been posted before has the same id and no second effect.
    fn tell(&self, wake: &Wake) -> io::Result<()> {
        self.announce(wake).map(drop).map_err(io::Error::other)
    }
}

#[derive(Debug)]
pub(crate) struct Teller<L: Listener> {
    shared: Arc<Shared<L>>,
}

#[derive(Debug)]
struct Shared<L: Listener> {
    listener: L,
    run_dir: PathBuf,
    queue: Mutex<Queue<L::News>>,
    changed: Condvar,
}

/// Bounded by what the run itself holds: a step and a phase have one message each.
#[derive(Debug)]
struct Queue<T> {
    news: VecDeque<(u64, T)>,
    working: bool,
    closed: bool,
    /// One could not be told: the mark stays where it is, and the next owner tries again.
    behind: bool,
}

impl<L: Listener> Teller<L> {
    /// `head` is the last record that was durable when the run was taken.
    pub(crate) fn new(listener: L, vfs: Arc<dyn Vfs>, run_dir: PathBuf, head: u64) -> Teller<L> {
        let queue = Queue { news: VecDeque::new(), working: true, closed: false, behind: false };
        let shared =
            Arc::new(Shared { listener, run_dir, queue: Mutex::new(queue), changed: Condvar::new() });
        let theirs = shared.clone();
        let worker = std::thread::Builder::new().spawn(move || {
            theirs.make_up(vfs.as_ref(), head);
            theirs.work();
        });
        if worker.is_err() {
            // No thread to be had: the next owner tells it.
            let mut queue = shared.lock();
            (queue.working, queue.behind, queue.closed) = (false, true, true);
        }
        Teller { shared }
    }

    pub(crate) fn tell(&self, seq: u64, news: L::News) {
        let mut queue = self.shared.lock();
        if !queue.closed {
            queue.news.push_back((seq, news));
        }
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// Waits for what is under way. All events up to `head` have been told.
    pub(crate) fn finish(&self, head: u64) {
        let deadline = Instant::now() + LAST_WORDS;
        let mut queue = self.shared.lock();
        while (queue.working || !queue.news.is_empty()) && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = self.shared.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !queue.working && queue.news.is_empty() && !queue.behind {
            self.shared.mark(head);
        }
    }
}

impl<L: Listener> Drop for Teller<L> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl<L: Listener> Shared<L> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue<L::News>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            queue.working = false;
            self.changed.notify_all();
            while queue.news.is_empty() && !queue.closed {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some((seq, news)) = queue.news.pop_front() else { return };
            queue.working = true;
            drop(queue);
            self.tell(seq, &news);
            queue = self.lock();
        }
    }

    fn tell(&self, seq: u64, news: &L::News) {
        let told = self.listener.tell(news).is_ok();
        let mut queue = self.lock();
        queue.behind |= !told;
        if !queue.behind {
            drop(queue);
            self.mark(seq);
        }
    }

    /// Tells what an earlier owner did not get to.
    fn make_up(&self, vfs: &dyn Vfs, head: u64) {
        self.listener.prepare();
        match read_mark(&self.run_dir.join(L::MARK)) {
            // The first owner who tells: what was before is old news.
            None => self.mark(head),
            Some(mark) if mark < head => match missed::<L>(vfs, &self.run_dir, mark, head) {
                Ok(news) => {
                    let new = news.iter().filter(|(_, news)| !self.listener.knows(news));
                    new.for_each(|(seq, news)| self.tell(*seq, news));
                }
                Err(_) => self.lock().behind = true,
            },
            Some(_) => {}
        }
    }

    /// Not synced: a mark that is lost costs telling something twice.
    fn mark(&self, seq: u64) {
        let _ = write_mark(&self.run_dir.join(L::MARK), seq);
    }
}

fn write_mark(path: &Path, seq: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    private::open_lock(path)?.write_all_at(format!("{seq:020}\n").as_bytes(), 0)
}

/// `Some(0)` where it cannot be read: then all of the run is told again.
fn read_mark(path: &Path) -> Option<u64> {
    const MAX_BYTES: u64 = 64;
    let text = match private::read_text(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        read => read.unwrap_or_default(),
    };
    Some(text.trim().parse().unwrap_or(0))
}

/// News of the records after `mark`, up to `head`.
fn missed<L: Listener>(
    vfs: &dyn Vfs,
    run_dir: &Path,
    mark: u64,
    head: u64,
) -> Result<Vec<(u64, L::News)>, OpenError> {
    let (mut fold, mut news) = (Fold::default(), Vec::new());
    journal::check(vfs, run_dir, None, |record| -> Result<(), OpenError> {
        let event = Event::parse(record.kind, record.data)?;
        fold.apply(&event, record.ts_ms)?;
        if let Some(run) = fold.run().filter(|_| (mark + 1..=head).contains(&record.seq)) {
            let told = L::news(&event, record.seq, record.ts_ms, run);
            news.extend(told.into_iter().map(|told| (record.seq, told)));
        }
        Ok(())
    })?;
    Ok(news)
}
