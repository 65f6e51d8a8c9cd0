//! Files that others drop into `new`: any name, any way of writing.
//!
//! A file that reads as a wake is whole: no beginning of a JSON object is one. Anything else is left alone until
//! it has not changed for a while. Then it is claimed in one step, so that a file which appears under the same
//! name is another one, and posted like every wake. A crash between its post and its removal repeats the post
//! with the same id, and that has no second effect.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime};

use super::name::{Name, is_unfinished};
use super::post::PostError;
use super::read::{Origin, Unreadable};
use super::{GRACE, Inbox, MAX_BYTES, Wake, gone_is_fine};
use crate::vfs::{Meta, Vfs};

/// How files looked when they were seen first, to notice that they change: clocks of others are not trusted.
#[derive(Debug, Default)]
pub struct Seen {
    files: HashMap<String, (u64, Option<SystemTime>, Instant)>,
}

impl Seen {
    /// Whether it has been left alone for long enough.
    pub fn is_stable(&mut self, name: &str, meta: &Meta) -> bool {
        let age = meta.modified.and_then(|at| at.elapsed().ok());
        let look = (meta.len, meta.modified);
        let seen = self.files.entry(name.to_string()).or_insert((look.0, look.1, Instant::now()));
        if (seen.0, seen.1) != look {
            *seen = (look.0, look.1, Instant::now());
        }
        age.is_some_and(|age| age >= GRACE) || seen.2.elapsed() >= GRACE
    }

    pub fn forget(&mut self, keep: impl Fn(&str) -> bool) {
        self.files.retain(|name, _| keep(name));
    }
}

impl Inbox {
    /// Takes in what was dropped. Gives how many files are too fresh to be judged.
    pub(super) fn adopt(&self, seen: &mut Seen) -> Result<usize, PostError> {
        let failed = |source| PostError::Io { what: "take in dropped files", dir: self.new_dir(), source };
        for name in self.list(&self.claimed_dir()).map_err(failed)? {
            self.settle(&name, failed)?;
        }
        let mut fresh = 0;
        for name in self.dropped().map_err(failed)? {
            let path = self.new_dir().join(&name);
            let Ok(meta) = self.disk.metadata(&path) else { continue };
            if self.read_wake(&path, &name).map_err(failed)?.is_err() && !seen.is_stable(&name, &meta) {
                fresh += 1;
                continue;
            }
            match self.disk.rename(&path, &self.claimed_dir().join(&name)) {
                // Its writer took it back.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
                Ok(()) => self.settle(&name, failed)?,
            }
        }
        Ok(fresh)
    }

    /// By time, as far as the file system tells.
    fn dropped(&self) -> io::Result<Vec<String>> {
        let names = self.list(&self.new_dir())?;
        let dropped = names.into_iter().filter(|name| Name::parse(name).is_none() && !is_unfinished(name));
        let modified = |name: &String| {
            self.disk.metadata(&self.new_dir().join(name)).ok().and_then(|meta| meta.modified)
        };
        let mut dropped: Vec<_> = dropped.map(|name| (modified(&name), name)).collect();
        dropped.sort();
        Ok(dropped.into_iter().map(|(_, name)| name).collect())
    }

    /// A claimed file becomes a wake like all others; one that cannot be read queues as it is, to be tried.
    fn settle(&self, name: &str, failed: impl Fn(io::Error) -> PostError) -> Result<(), PostError> {
        let path = self.claimed_dir().join(name);
        let posted = self.read_wake(&path, name).map_err(&failed)?.map(|wake| self.post(&wake));
        match posted {
            Ok(Ok(_)) => gone_is_fine(self.disk.remove_file(&path)).map_err(failed),
            Ok(Err(error @ PostError::Io { .. })) => Err(error),
            Ok(Err(PostError::TooLarge { .. } | PostError::Missing(_))) | Err(_) => {
                let label = format!("drop-{name}");
                self.place(&path, &label, &label).map(drop).map_err(failed)
            }
        }
    }

    /// `origin` is the name that its writer gave it. Trouble of the machine is not the file's fault.
    pub(super) fn read_wake(&self, path: &Path, origin: &str) -> io::Result<Result<Wake, Unreadable>> {
        let read = self.disk.read(path, MAX_BYTES).and_then(|bytes| Ok((bytes, self.disk.metadata(path)?)));
        match read {
            Ok((bytes, meta)) => Ok(Wake::read(&bytes, Origin { name: origin, modified: meta.modified })),
            Err(error) if is_the_files(&error) => Ok(Err(Unreadable(format!("it cannot be read: {error}")))),
            Err(error) => Err(error),
        }
    }
}

fn is_the_files(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, InvalidInput, NotFound, PermissionDenied};
    matches!(error.kind(), InvalidInput | FileTooLarge | PermissionDenied | NotFound)
}
