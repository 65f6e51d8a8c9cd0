//! A directory inside of the fence, held open: what is done in it happens there, whatever its path leads to by
//! now. Files in it are replaced as a whole.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath;

#[derive(Debug)]
pub struct Folder {
    dir: OwnedFd,
    /// Directories on the way here that got a new entry.
    grown: Vec<OwnedFd>,
}

/// What stands at a name; a link is not followed. Two that are equal are the same file, unchanged in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    kind: FileType,
    mode: Mode,
    len: u64,
    file: u64,
    modified: (i64, i64),
}

impl Entry {
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }
}

impl Folder {
    /// Opens `inside` of `root`; what is missing of it is made.
    pub(crate) fn open(root: &Path, inside: &Path) -> io::Result<Folder> {
        match beneath::open_dir(root, inside) {
            Ok(dir) => return Ok(Folder { dir, grown: Vec::new() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut folder = Folder { dir: beneath::open_dir(root, Path::new(""))?, grown: Vec::new() };
        for part in inside.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    fn enter(mut self, name: &OsStr) -> io::Result<Folder> {
        let open = |dir: &OwnedFd| beneath::step(dir, Path::new(name), OFlags::RDONLY | OFlags::DIRECTORY);
        match open(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok(Folder { dir: opened?, grown: self.grown }),
        }
        match rustix::fs::mkdirat(&self.dir, name, Mode::from_raw_mode(0o777)) {
            // Another step was faster.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let dir = open(&self.dir)?;
        self.grown.push(self.dir);
        Ok(Folder { dir, grown: self.grown })
    }

    /// `None` if there is nothing of that name.
    pub fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry {
                kind: FileType::from_raw_mode(stat.st_mode as _),
                mode: Mode::from_raw_mode(stat.st_mode),
                len: stat.st_size as u64,
                file: stat.st_ino,
                modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading; a link is refused, a pipe is not waited for.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let file = File::from(beneath::step(&self.dir, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
    }

    /// Makes a new file; nothing may be there.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(0o666))?))
    }

    /// Moves a file of this folder over another one; a link at `to` is replaced, not followed.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.dir, from, &self.dir, to)?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())?)
    }

    /// Writes what `fill` gives to a new file and moves it to `name`, with the mode of what was there. Does
    /// nothing and returns false if what is there is not `old` any more.
    pub fn replace_by(
        &self,
        name: &OsStr,
        old: Option<Entry>,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mode = old.filter(Entry::is_file).map(|entry| entry.mode);
        let (temporary, mut file) = self.temporary()?;
        let written = fill(&mut file)
            .and_then(|()| Ok(mode.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, mode))?))
            .and_then(|()| Ok(self.entry(name)? == old))
            .and_then(|same| if same { self.rename(&temporary, name).map(|()| true) } else { Ok(false) });
        if !matches!(written, Ok(true)) {
            // The first failure is the one worth telling.
            let _ = self.remove(&temporary);
        }
        written
    }

    /// Replaces whatever is there; a link is not followed.
    pub fn replace(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        while !self.replace_by(name, self.entry(name)?, |file| file.write_all(content))? {}
        Ok(())
    }

    fn temporary(&self) -> io::Result<(OsString, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let serial = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".sage-{}-{serial}.tmp", std::process::id()));
            match self.create(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((name, created?)),
            }
        }
    }

    /// Makes the content of a file of this folder durable.
    pub fn sync_file(&self, file: &File) -> io::Result<()> {
        SYNCS.set(SYNCS.get() + 1);
        file.sync_all()
    }

    /// Makes the entries of this folder durable, and the folder itself if it is new.
    pub fn sync(&self) -> io::Result<()> {
        for dir in std::iter::once(&self.dir).chain(&self.grown) {
            SYNCS.set(SYNCS.get() + 1);
            rustix::fs::fsync(dir)?;
        }
        Ok(())
    }
}

thread_local! {
    static SYNCS: Cell<u64> = const { Cell::new(0) };
}

/// How many files and directories of projects this thread has synced: tests count them.
pub fn syncs() -> u64 {
    SYNCS.get()
}
