//! Wakes and the inbox: short durable messages that tell that something finished, blocked, failed or was found.
//!
//! ```text
//!  sage wake, the engine --post--> new/ --take--> taken/ --handle--> ledger.jsonl (the effect and its
//!  any program --file in new/--adopt--^              |                 acknowledgement, one record)
//!                                                    +-- five tries --> dead/ + reason --retry--> new/
//! ```
//! What must stay true: a wake whose post succeeded is handled or lies in `dead`; a wake has one effect, however
//! often it is posted and whoever is killed when; wakes of one sender are handled in the order of their posts.
//! The result is stored first and the wake second: a lost wake costs time, never a result.

mod background;
mod compact;
mod dead;
mod delivered;
mod delivery;
mod drops;
mod event;
mod handler;
mod ledger;
mod listing;
mod log;
mod name;
mod order;
mod post;
mod pressure;
mod read;
#[cfg(test)]
mod tests;
mod turn;
mod waiting;
mod wake;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use background::Background;
pub use dead::{DeadLetter, RetryError};
pub use delivered::Delivered;
pub use delivery::{DeliverError, Delivery, TRIES};
pub use event::wake_of;
pub use handler::{HandleError, Handler, Recorded};
pub use ledger::Handled;
pub use listing::{Letter, Place};
pub use post::PostError;
pub use pressure::{FULL_OVER, Pressure, WARN_OVER};
pub use read::{Origin, Unreadable};
pub use waiting::Waiter;
pub use wake::{Deliverables, Wake, WakeStatus, WakeType};

use crate::vfs::{self, DiskFs, Vfs};

/// A wake is a note, not a result: more than this is not read.
pub const MAX_BYTES: u64 = 1 << 20;
/// How long a file that cannot be understood must lie unchanged before it is judged: its writer may be slow.
pub const GRACE: Duration = Duration::from_secs(1);

/// The directories have been synced.
const DURABLE: &str = ".durable";

/// A project's inbox. Cheap to clone; opening it creates nothing.
#[derive(Clone, Debug)]
pub struct Inbox {
    dir: Arc<Path>,
    disk: DiskFs,
    counted: Arc<Mutex<Option<(Instant, usize)>>>,
}

impl Inbox {
    pub fn open(dir: impl Into<PathBuf>) -> Inbox {
        Inbox { dir: dir.into().into(), disk: DiskFs::default(), counted: Arc::default() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where programs that know nothing of sage drop their files.
    pub fn new_dir(&self) -> PathBuf {
        self.dir.join("new")
    }

    fn taken_dir(&self) -> PathBuf {
        self.dir.join("taken")
    }

    fn dead_dir(&self) -> PathBuf {
        self.dir.join("dead")
    }

    /// Wakes that are being written.
    fn tmp_dir(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Dropped files between `new` and their post.
    fn claimed_dir(&self) -> PathBuf {
        self.dir.join("claimed")
    }

    fn dirs(&self) -> [PathBuf; 5] {
        [self.new_dir(), self.taken_dir(), self.dead_dir(), self.tmp_dir(), self.claimed_dir()]
    }

    /// Makes the directories, so that files can be dropped.
    pub fn prepare(&self) -> io::Result<()> {
        let dirs = self.dirs();
        dirs.iter().map(PathBuf::as_path).chain([self.dir()]).try_for_each(refuse_link)?;
        if dirs.iter().all(|dir| dir.is_dir()) {
            return Ok(());
        }
        // A project that was removed does not come back by a wake.
        let root = vfs::parent(vfs::parent(&self.dir));
        if !root.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for dir in &dirs {
            self.disk.create_dir_all(dir)?;
            refuse_link(dir)?;
        }
        self.create_empty(&self.dir.join(ledger::FILE))
    }

    fn create_empty(&self, path: &Path) -> io::Result<()> {
        match self.disk.create_new(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the directories survive a power cut. Once: the mark is made after the syncs.
    fn make_durable(&self) -> io::Result<()> {
        let mark = self.dir.join(DURABLE);
        if self.disk.exists(&mark)? {
            return Ok(());
        }
        self.dirs().iter().try_for_each(|dir| self.disk.sync_dir(dir))?;
        vfs::sync_ancestors(&self.disk, &self.dir)?;
        self.create_empty(&mark)
    }

    /// Names in a directory, sorted; none if there is no such directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.disk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
}

/// Messages are never read or written through a link that others may have put there.
fn refuse_link(dir: &Path) -> io::Result<()> {
    if dir.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        let message = format!("`{}` is not a directory; remove it", dir.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
    }
    Ok(())
}

/// Two processes may be about to remove the same file: gone is gone.
fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
