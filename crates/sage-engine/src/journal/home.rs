//! The place of a journal while it is written: its name can be taken away under its owner.
//!
//! `rm -rf .sage/state`, `git clean -fdx`, `mv` and `cp` change what a path names, not the file that the owner has
//! open. So before each write the owner makes sure that the run is still its own, and after it that the file is still
//! where everybody looks for it. A journal that has lost its name is written anew, as a whole, in its old place.
//! What must stay true: nothing is acknowledged that the path does not hold; nobody else's journal is overwritten;
//! a project that was moved or replaced is left alone.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::JournalError;
use crate::lock::{FeatureLock, LockError};
use crate::project::Project;
use crate::vfs::{self, Vfs, VfsFile};

/// Where a journal belongs, and the right to write it.
#[derive(Clone)]
pub struct Home {
    vfs: Arc<dyn Vfs>,
    project: Project,
    lock: Arc<FeatureLock>,
    /// The project's directory itself: another one at its path is another project.
    root: Option<(u64, u64)>,
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").field("root", &self.project.root).finish_non_exhaustive()
    }
}

impl Home {
    pub fn new(vfs: Arc<dyn Vfs>, project: Project, lock: Arc<FeatureLock>) -> Home {
        let root = identity(&project.root);
        Home { vfs, project, lock, root }
    }

    /// Before a write: the run is still this process's. A lock file that is gone is made anew.
    pub(super) fn check_owner(&self) -> Result<(), JournalError> {
        let state = vfs::parent(self.lock.path());
        if !state.is_dir() {
            self.make(state).map_err(|source| self.displaced(self.lock.path(), &source))?;
        }
        match self.lock.keep() {
            Ok(()) => Ok(()),
            Err(LockError::Held(owner)) => {
                Err(JournalError::Taken { owner: owner.map_or("another process".into(), |o| o.to_string()) })
            }
            Err(LockError::Io { path, source }) => Err(JournalError::Io { op: "lock", path, source }),
        }
    }

    /// After a write: writes all of `file` to `path`, which names it no more, and gives the new file.
    pub(super) fn put_back(&self, path: &Path, file: &dyn VfsFile) -> Result<Box<dyn VfsFile>, JournalError> {
        let ours = file.content().map_err(|source| self.displaced(path, &source))?;
        match self.vfs.read(path, u64::MAX - 1) {
            // An older copy of ours: nobody has gone on from it.
            Ok(theirs) if ours.starts_with(&theirs) => {}
            Ok(_) => return Err(self.displaced(path, "another journal is in its place")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.displaced(path, &error)),
        }
        let dir = vfs::parent(path);
        let written = self.make(dir).and_then(|()| {
            vfs::write_atomic(self.vfs.as_ref(), path, &ours)?;
            vfs::sync_ancestors(self.vfs.as_ref(), dir)?;
            self.vfs.open_append(path)
        });
        written.map_err(|source| self.displaced(path, &source))
    }

    /// Makes directories that were removed, in this project only and never through a link.
    fn make(&self, dir: &Path) -> io::Result<()> {
        if self.root.is_none() || identity(&self.project.root) != self.root {
            let root = self.project.root.display();
            return Err(io::Error::other(format!("the project at `{root}` was moved or removed")));
        }
        self.project.refuse_strange().map_err(io::Error::other)?;
        self.vfs.create_dir_all(dir)
    }

    fn displaced(&self, path: &Path, why: impl fmt::Display) -> JournalError {
        JournalError::Displaced { path: path.to_owned(), why: why.to_string() }
    }
}

fn identity(path: &PathBuf) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}
