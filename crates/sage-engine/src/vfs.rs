//! Files, behind one trait: all of the engine's file access goes through here, so that a test can put a
//! simulated disk with power cuts (`sim::SimFs`) below the very code that runs in production.
//!
//! What must stay true:
//! - files are 0600 and directories 0700 whatever the umask; nothing follows a symlink in any part of a path;
//! - only regular files are opened, and opening never blocks, whatever was put in a file's place;
//! - nothing here claims durability by itself: `sync_data`, `sync_all` and `sync_dir` are explicit, and counted.

mod disk;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub use disk::{DiskFs, SyncCounts};
pub(crate) use disk::{is_at, make_private, open_regular};
pub use sage_fence::own::NotRegular;

/// A file system. Paths are taken as they are; relative ones are relative to the process.
pub trait Vfs: Send + Sync + Debug {
    /// Creates `dir` and its missing parents, 0700. Not durable before the parents are synced.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Creates a file, 0600, for appending; it must not exist.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Opens an existing file for appending.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// The whole file; `FileTooLarge` beyond `cap_bytes`.
    fn read(&self, path: &Path, cap_bytes: u64) -> io::Result<Vec<u8>>;

    /// At most `max_bytes` from `offset` on: for tailing and for reading in pieces. Empty at the end.
    fn read_from(&self, path: &Path, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>>;

    /// About the entry itself: a symlink isn't followed.
    fn metadata(&self, path: &Path) -> io::Result<Meta>;

    /// Names in a directory, sorted; names that aren't UTF-8 are never ours and are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with everything in it; links in it are removed, not followed. Not all at once: whoever
    /// needs that renames it first.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("cannot remove `{}`", dir.display())))
    }

    /// Makes the entries of `dir` durable: what was created, renamed or removed in it.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Whether anything is at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Cuts a file to `len` bytes, durably.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut file = self.open_append(path)?;
        file.set_len(len)?;
        file.sync_all()
    }
}

/// A file open for appending.
pub trait VfsFile: Send + Debug {
    /// Appends some of `bytes` and says how many; may be short. Use [`write_all`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the content and the length durable.
    fn sync_data(&mut self) -> io::Result<()>;

    /// As `sync_data`, with all metadata.
    fn sync_all(&mut self) -> io::Result<()>;

    fn set_len(&mut self, len: u64) -> io::Result<()>;

    /// The length now, as the file system sees it.
    fn len(&self) -> io::Result<u64>;

    /// Whether `path` still names this file. Whoever removes, moves or replaces it changes the name, not the file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;

    /// All of it, also if it has no name any more.
    fn content(&self) -> io::Result<Vec<u8>>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    pub len: u64,
    pub is_file: bool,
    pub modified: Option<SystemTime>,
}

/// Appends all of `bytes`. A write that takes nothing is an error, an interrupted one is repeated.
pub fn write_all(file: &mut dyn VfsFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates `dir` so that it survives a power cut.
pub fn create_dir_durable(vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
    vfs.create_dir_all(dir)?;
    sync_ancestors(vfs, dir)
}

/// Syncs `dir` and the directories above it up to `top`, both included: enough where `top` itself is durable.
pub fn sync_between(vfs: &dyn Vfs, top: &Path, dir: &Path) -> io::Result<()> {
    dir.ancestors().take_while(|ancestor| ancestor.starts_with(top)).try_for_each(|dir| vfs.sync_dir(dir))
}

/// Syncs `dir` and every directory above it.
///
/// Also those that exist already: whoever created them may have been killed before it could sync them. One
/// that we may not read isn't ours (ours are 0700), so nothing above it can be either.
pub fn sync_ancestors(vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
    for ancestor in dir.ancestors() {
        match vfs.sync_dir(ancestor) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && ancestor != dir => break,
            result => result?,
        }
    }
    Ok(())
}

/// Writes `bytes` to a temporary file beside `path`, synced. The caller links or renames it.
pub fn write_temp(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    write_aside(vfs, path, bytes, true)
}

/// As [`write_temp`]; without `durable` it survives the process, not a power cut.
pub fn write_aside(vfs: &dyn Vfs, path: &Path, bytes: &[u8], durable: bool) -> io::Result<PathBuf> {
    let (temp, mut file) = loop {
        let temp = temp_name(path);
        match vfs.create_new(&temp) {
            Ok(file) => break (temp, file),
            // Left by a process that died with our pid; gc removes it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    let written = write_all(file.as_mut(), bytes).and_then(|()| {
        // A disk that takes bytes and forgets them is noticed while the old file is still in place.
        if file.len()? != bytes.len() as u64 {
            return Err(io::Error::other("the file is not as long as what was written"));
        }
        if durable { file.sync_all() } else { Ok(()) }
    });
    match written {
        Ok(()) => Ok(temp),
        Err(error) => {
            discard(vfs, &temp);
            Err(error)
        }
    }
}

/// Replaces `path` by `bytes` so that after a power cut it is the old or the new, never a mix.
pub fn write_atomic(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = write_temp(vfs, path, bytes)?;
    put_in_place(vfs, &temp, path)?;
    vfs.sync_dir(parent(path))
}

/// Replaces `path` by `bytes` in one step, without a sync: for documents that can be lost in a power cut.
pub fn replace(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = write_aside(vfs, path, bytes, false)?;
    put_in_place(vfs, &temp, path)
}

fn put_in_place(vfs: &dyn Vfs, temp: &Path, path: &Path) -> io::Result<()> {
    vfs.rename(temp, path).inspect_err(|_| discard(vfs, temp))
}

/// Removes a temporary file on the way out of a failure, which is the error worth telling.
pub fn discard(vfs: &dyn Vfs, temp: &Path) {
    let _ = vfs.remove_file(temp);
}

/// A name beside `path` that no living process uses. The suffix is what gc looks for.
#[must_use]
pub fn temp_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    with_suffix(path, &format!(".{}-{serial}.tmp", std::process::id()))
}

/// `path` with `suffix` after its last component.
#[must_use]
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The directory of `path`.
#[must_use]
pub fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests;
