//! Posting: written aside, made durable, then put in its place in one step.
//!
//! A reader never sees half a wake. A posted wake survives a power cut; an announced one survives the process only,
//! because the journal of its run holds what it says. Posting a wake twice is harmless: it is handled once.

use std::io;
use std::path::{Path, PathBuf};

use super::name::Name;
use super::order::Order;
use super::{Inbox, MAX_BYTES, Wake};
use crate::vfs::{self, Vfs};

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("a wake needs a `{0}`")]
    Missing(&'static str),
    #[error(
        "the wake has {bytes} bytes, at most {MAX_BYTES} are taken; put the rest into a file and name it in `deliverables`"
    )]
    TooLarge { bytes: usize },
    #[error("cannot {what} in `{}`: {source}", dir.display())]
    Io { what: &'static str, dir: PathBuf, source: io::Error },
}

impl Inbox {
    /// Durable when this returns. Gives the wake's file.
    pub fn post(&self, wake: &Wake) -> Result<PathBuf, PostError> {
        self.put(wake, true)
    }

    /// Posts a wake that repeats what a journal holds: it costs no sync.
    pub fn announce(&self, wake: &Wake) -> Result<PathBuf, PostError> {
        self.put(wake, false)
    }

    fn put(&self, wake: &Wake, durable: bool) -> Result<PathBuf, PostError> {
        for (field, value) in [("wakeId", &wake.wake_id), ("session_id", &wake.session_id)] {
            if value.trim().is_empty() {
                return Err(PostError::Missing(field));
            }
        }
        let failed = |what| move |source| PostError::Io { what, dir: self.dir.to_path_buf(), source };
        let mut text = serde_json::to_vec(wake).map_err(|error| failed("write")(error.into()))?;
        text.push(b'\n');
        if text.len() as u64 > MAX_BYTES {
            return Err(PostError::TooLarge { bytes: text.len() });
        }
        self.prepare().map_err(failed("make the inbox"))?;
        let aside = self.tmp_dir().join(ulid::Ulid::generate().to_string());
        let temporary = vfs::write_aside(&self.disk, &aside, &text, durable).map_err(failed("write"))?;
        let placed = self.queue(&temporary, &wake.session_id, &wake.wake_id);
        let placed = placed.inspect_err(|_| vfs::discard(&self.disk, &temporary)).map_err(failed("post"))?;
        if durable {
            self.sync_queue().map_err(failed("post"))?;
        }
        Ok(placed)
    }

    /// Moves a durable file to the end of the queue, durably.
    pub(super) fn place(&self, from: &Path, session: &str, label: &str) -> io::Result<PathBuf> {
        let path = self.queue(from, session, label)?;
        self.sync_queue()?;
        Ok(path)
    }

    fn queue(&self, from: &Path, session: &str, label: &str) -> io::Result<PathBuf> {
        let mut order = Order::take(self)?;
        let path = self.new_dir().join(Name::new(order.next()?, session, label).file());
        self.disk.rename(from, &path)?;
        Ok(path)
    }

    /// Without the lock of the order: the next post need not wait for the disk.
    fn sync_queue(&self) -> io::Result<()> {
        self.make_durable()?;
        self.disk.sync_dir(&self.new_dir())
    }
}
