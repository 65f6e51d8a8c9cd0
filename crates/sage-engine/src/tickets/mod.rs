//! Tickets on disk: `.sage/tickets/index.json`, for git, for people and for other tools.
//!
//! What must stay true: writers take turns by an OS lock, so no update of a sage is lost; readers see the old or
//! the new file, never a part; a file that cannot be read is never overwritten. Editors know no lock: the file
//! is looked at again before it is replaced, and what somebody saved in between is taken in.

mod runs;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::ticket::{Book, BookError, PlanError};
use sage_core::wire::rfc3339;

use crate::clock::Clock;
use crate::lock::lock_within;
use crate::project::{Project, ProjectError};
use crate::vfs::{self, Vfs};

/// An update takes milliseconds; who waits longer waits for a stopped process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BYTES: u64 = 64 << 20;
/// An editor that saves more often than this while we write is no editor.
const LOOKS: usize = 20;

#[derive(Clone, Debug)]
pub struct Store {
    project: Project,
    vfs: Arc<dyn Vfs>,
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    #[error("`{}` cannot be used: {why}", path.display())]
    Damaged { path: PathBuf, why: BookError },
    #[error(transparent)]
    Book(#[from] BookError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
}

impl Store {
    pub fn new(project: &Project, vfs: Arc<dyn Vfs>, clock: Clock) -> Store {
        Store { project: project.clone(), vfs, clock }
    }

    pub fn path(&self) -> PathBuf {
        self.project.dir.join("tickets/index.json")
    }

    /// The tickets as they are now. Where there is no file, there are none.
    pub fn read(&self) -> Result<Book, TicketError> {
        Ok(self.load()?.1)
    }

    /// Changes the tickets, one process at a time. Nothing is written if nothing changed, or it was refused.
    pub fn change<T, E: Into<TicketError>>(
        &self,
        change: impl Fn(&mut Book, &str) -> Result<T, E>,
    ) -> Result<T, TicketError> {
        self.project.prepare(self.vfs.as_ref())?;
        let path = self.path();
        if !self.vfs.exists(&path).map_err(|source| io_error("read", &path, source))? {
            let dir = vfs::parent(&path);
            let made = vfs::create_dir_durable(self.vfs.as_ref(), dir);
            made.map_err(|source| io_error("create", dir, source))?;
        }
        // Not beside the tickets: those are for git.
        let lock = self.project.state().join("tickets.lock");
        let _lock = lock_within(&lock, LOCK_TIMEOUT).map_err(|source| io_error("lock", &lock, source))?;
        let at = rfc3339(self.clock.now_ms());
        for _ in 0..LOOKS {
            let (bytes, before) = self.load()?;
            let mut book = before.clone();
            let answer = change(&mut book, &at).map_err(Into::into)?;
            if book == before {
                return Ok(answer);
            }
            if self.replace(&path, &bytes, book.text().as_bytes())? {
                return Ok(answer);
            }
        }
        let busy = io::Error::other("somebody else changes it all the time");
        Err(io_error("write", &path, busy))
    }

    /// False if the file is no longer what was read.
    fn replace(&self, path: &Path, read: &[u8], text: &[u8]) -> Result<bool, TicketError> {
        let failed = |source| io_error("write", path, source);
        let new = vfs::write_temp(self.vfs.as_ref(), path, text).map_err(failed)?;
        if self.bytes()? != read {
            vfs::discard(self.vfs.as_ref(), &new);
            return Ok(false);
        }
        let renamed = self.vfs.rename(&new, path).inspect_err(|_| vfs::discard(self.vfs.as_ref(), &new));
        renamed.and_then(|()| self.vfs.sync_dir(vfs::parent(path))).map_err(failed)?;
        Ok(true)
    }

    fn load(&self) -> Result<(Vec<u8>, Book), TicketError> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return Ok((bytes, Book::default()));
        }
        let book = Book::read(&bytes).map_err(|why| TicketError::Damaged { path: self.path(), why })?;
        Ok((bytes, book))
    }

    fn bytes(&self) -> Result<Vec<u8>, TicketError> {
        let path = self.path();
        match self.vfs.read(&path, MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|source| io_error("read", &path, source)),
        }
    }
}

fn io_error(op: &'static str, path: &Path, source: io::Error) -> TicketError {
    TicketError::Io { op, path: path.to_owned(), source }
}
