//! Who runs what: OS locks that death frees, with the owner's name inside.
//!
//! `FeatureLock` is held by the one process that owns a feature's run; its text says who that is, and tells a
//! crash from a clean end. `ChildrenLock` is held by the owner and, by inheritance, by all its children: while
//! one of them lives, `wait_gone` does not succeed.
//! What must stay true: the OS lock decides, the text only explains; text that can't be read is never an error.
//! Locks are the kernel's, so they are not simulated.

mod owner;

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::vfs::{is_at, make_private, open_regular};
pub(crate) use owner::boot_id;
pub use owner::{Owner, Stale};

/// A look at a lock holds it for an instant, so a refusal is only believed after this, unless its owner lives.
const PATIENCE: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(5);

/// An owner's text is short; more is not ours.
const MAX_OWNER_BYTES: u64 = 64 << 10;

/// Why a lock was not granted.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("held by {}", .0.as_ref().map_or("an unknown process".to_owned(), ToString::to_string))]
    Held(Option<Owner>),
    #[error("cannot lock `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A granted lock. Dropping it is a clean release: the text is emptied.
#[derive(Debug)]
pub struct FeatureLock {
    path: PathBuf,
    /// The last one is the one at `path`; those before it lost that name, and whoever finds them finds them taken.
    files: Mutex<Vec<File>>,
    owner: Owner,
}

/// A lock that was granted, and whose it was if that one didn't end cleanly.
#[derive(Debug)]
pub struct Acquired {
    pub lock: FeatureLock,
    pub previous: Option<(Owner, Stale)>,
}

impl FeatureLock {
    /// Takes the lock at `path` for `owner`, or says who has it.
    pub fn acquire(path: &Path, owner: Owner) -> Result<Acquired, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = lock_exclusive(path)?;
        let previous = read_owner(&mut file).map(|owner| {
            let stale = owner.staleness();
            (owner, stale)
        });
        write_owner(&mut file, &owner).map_err(failed)?;
        let lock = Self { path: path.to_owned(), files: Mutex::new(vec![file]), owner };
        Ok(Acquired { lock, previous })
    }

    /// Makes sure that the lock is still where others look for it: a file that was removed or replaced is made anew.
    /// If another process was faster, the lock is theirs.
    pub fn keep(&self) -> Result<(), LockError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| LockError::Io { path: self.path.clone(), source };
        // Newest first. An older one is back if its directory was moved away and back: it is ours all the while.
        for number in (0..files.len()).rev() {
            if is_at(&files[number], &self.path).map_err(failed)? {
                let file = files.remove(number);
                files.push(file);
                return Ok(());
            }
        }
        let mut file = lock_exclusive(&self.path)?;
        write_owner(&mut file, &self.owner).map_err(failed)?;
        files.push(file);
        Ok(())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Drop for FeatureLock {
    fn drop(&mut self) {
        for file in self.files.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // If this fails, the next owner sees a stale lock: true enough, and harmless.
            let _ = file.set_len(0);
            // Not only closed: a child that another thread is starting has a copy of the descriptor until it executes.
            let _ = file.unlock();
        }
    }
}

/// Who holds the lock at `path`, if anybody does. An unknown holder has pid 0.
#[must_use]
pub fn peek(path: &Path) -> Option<Owner> {
    let mut file = open_regular(path, OFlags::RDONLY).ok()?;
    match file.try_lock_shared() {
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => Some(wait_for_owner(&mut file).unwrap_or_default()),
    }
}

/// The holder writes its name just after it got the lock.
fn wait_for_owner(file: &mut File) -> Option<Owner> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match read_owner(file) {
            None if Instant::now() < deadline => thread::sleep(POLL),
            owner => return owner,
        }
    }
}

fn lock_exclusive(path: &Path) -> Result<File, LockError> {
    let failed = |source| LockError::Io { path: path.to_owned(), source };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut file = open_lock_file(path).map_err(failed)?;
        match file.try_lock() {
            // A file that was removed or replaced after it was opened protects nothing.
            Ok(()) if is_at(&file, path).map_err(failed)? => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {
                let owner = read_owner(&mut file);
                if owner.as_ref().is_some_and(Owner::is_alive) || Instant::now() >= deadline {
                    return Err(LockError::Held(owner));
                }
            }
        }
        thread::sleep(POLL);
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    match open_regular(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => make_private(&file).map(|()| file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_regular(path, OFlags::RDWR | OFlags::CREATE)
        }
        Err(error) => Err(error),
    }
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(MAX_OWNER_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write_owner(file: &mut File, owner: &Owner) -> io::Result<()> {
    let mut text = serde_json::to_vec(owner)?;
    text.push(b'\n');
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    // Not synced: the text only explains, and after a power cut no owner is left to explain.
    file.write_all(&text)
}

/// Waits for an exclusive lock on `path` and holds it until the result is dropped.
pub fn lock_within(path: &Path, timeout: Duration) -> io::Result<File> {
    let deadline = Instant::now() + timeout;
    loop {
        let file = open_lock_file(path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            _ if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            _ => thread::sleep(POLL),
        }
    }
}

/// A shared lock for a process and all its children.
///
/// The lock belongs to the open file, not to the process: a child that inherits the descriptor holds it too,
/// until it closes it or dies. So it is never unlocked, only closed.
#[derive(Debug)]
pub struct ChildrenLock {
    file: File,
}

/// Some process still holds the lock, or that none does can't be shown.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is still held after {} ms{}", path.display(), waited.as_millis(),
    source.as_ref().map_or(String::new(), |source| format!(": {source}")))]
pub struct StillAlive {
    pub path: PathBuf,
    pub waited: Duration,
    /// What prevented a look, if that was the reason.
    pub source: Option<io::Error>,
}

impl ChildrenLock {
    /// Opens the file at `path` with a shared lock. The descriptor is not inherited unless somebody sees to it.
    pub fn open_shared(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let file = open_lock_file(path).map_err(failed)?;
            match file.try_lock_shared() {
                Ok(()) if is_at(&file, path).map_err(failed)? => return Ok(Self { file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                _ if Instant::now() >= deadline => return Err(LockError::Held(None)),
                _ => thread::sleep(POLL),
            }
        }
    }
}

impl ChildrenLock {
    /// The open file itself, for code that lets children inherit it.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }
}

impl AsFd for ChildrenLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A process that has a file open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
}

/// Other processes that have the file at `path` open, as far as the system tells.
#[must_use]
pub fn holders(path: &Path) -> Vec<Holder> {
    let Ok(file) = open_regular(path, OFlags::RDONLY) else { return Vec::new() };
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.map(|entry| entry.path()).any(|link| {
            std::fs::read_link(&link)
                .is_ok_and(|target| target == path && is_at(&file, &target).unwrap_or(false))
        })
    };
    let name = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Holder { pid, name: name.trim().to_owned() }
    };
    pids.filter(|&pid| pid != std::process::id()).filter(has_it).map(name).collect()
}

/// Waits until no process holds the [`ChildrenLock`] at `path`: all are dead, or there was none. Blocks.
pub fn wait_gone(path: &Path, timeout: Duration) -> Result<(), StillAlive> {
    let started = Instant::now();
    let still = |source| StillAlive { path: path.to_owned(), waited: started.elapsed(), source };
    loop {
        let file = match open_regular(path, OFlags::RDWR) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(still(Some(error))),
        };
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(still(Some(error))),
            Err(TryLockError::WouldBlock) if started.elapsed() >= timeout => return Err(still(None)),
            Err(TryLockError::WouldBlock) => thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests;
