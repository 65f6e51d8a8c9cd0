//! Posting: written aside, made durable, then put in its place in one step.
//!
//! Nobody ever sees half a wake, and a post that has returned survives a power cut. Posting the same wake again
//! is harmless: what is delivered twice is handled once.

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
        let temporary = vfs::write_temp(&self.disk, &aside, &text).map_err(failed("write"))?;
        let placed = self.place(&temporary, &wake.session_id, &wake.wake_id);
        if placed.is_err() {
            vfs::discard(&self.disk, &temporary);
        }
        placed.map_err(failed("post"))
    }

    /// Moves a durable file to the end of the queue.
    pub(super) fn place(&self, from: &Path, session: &str, label: &str) -> io::Result<PathBuf> {
        let new = self.new_dir();
        let path = {
            let mut order = Order::take(self)?;
            let path = new.join(Name::new(order.next()?, session, label).file());
            self.disk.rename(from, &path)?;
            path
        };
        // Not under the lock: whoever comes next need not wait for the disk.
        self.disk.sync_dir(&new)?;
        Ok(path)
    }
}
