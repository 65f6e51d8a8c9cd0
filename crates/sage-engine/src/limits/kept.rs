//! A small file that is only ever replaced, and what it said when it was last read.
//!
//! The file stays open, so that its inode number can't be given to another: as long as the path leads to the
//! same inode, what was read is still true. A look costs one system call.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use sage_fence::own;

use crate::vfs::{make_private, open_regular, with_suffix};

/// More is not ours.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Kept<T> {
    file: Option<(File, Stamp)>,
    pub value: T,
}

/// Length and time are there for those who edit in place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    dev: u64,
    ino: u64,
    len: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let modified = (meta.mtime(), meta.mtime_nsec());
        Self { dev: meta.dev(), ino: meta.ino(), len: meta.len(), modified }
    }
}

impl<T: Default> Kept<T> {
    /// Looks again. `read` gets what the file says now, if that is not known: nothing if it can't be read.
    pub fn refresh<E>(
        &mut self,
        path: &Path,
        read: impl FnOnce(Option<&[u8]>, &T) -> Result<T, E>,
    ) -> Result<&T, E> {
        match (path.symlink_metadata(), &self.file) {
            (Ok(meta), Some((_, stamp))) if Stamp::of(&meta) == *stamp => return Ok(&self.value),
            (Err(_), None) => {}
            (Ok(_), _) => {
                let opened = open(path).ok();
                self.value = read(opened.as_ref().map(|(_, _, bytes)| bytes.as_slice()), &self.value)?;
                self.file = opened.map(|(file, stamp, _)| (file, stamp));
            }
            (Err(_), Some(_)) => {
                self.value = read(None, &self.value)?;
                self.file = None;
            }
        }
        Ok(&self.value)
    }

    /// Replaces the file, under its lock: a power cut may take it, a crash may not.
    pub fn replace(&mut self, path: &Path, bytes: &[u8], value: T) -> io::Result<()> {
        let temp = with_suffix(path, ".tmp");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = match open_regular(&temp, flags) {
            // Its writer died with the lock that we have now, or it is a link, which is removed itself.
            Err(_) if temp.symlink_metadata().is_ok() => {
                own::remove_file(&temp)?;
                open_regular(&temp, flags)?
            }
            result => result?,
        };
        let written = file.write_all(bytes).and_then(|()| {
            let meta = file.metadata()?;
            if meta.permissions().mode() & 0o777 != 0o600 {
                make_private(&file)?;
            }
            put_in_place(&temp, path)?;
            Ok(Stamp::of(&meta))
        });
        match written {
            Ok(stamp) => {
                self.file = Some((file, stamp));
                self.value = value;
                Ok(())
            }
            Err(error) => {
                let _ = own::remove_file(&temp);
                Err(error)
            }
        }
    }
}

/// Exchanged and removed rather than renamed over: ext4 writes a file out when it replaces another, to save
/// those who don't sync from a power cut. We don't need that, and it takes longer than all the rest.
fn put_in_place(temp: &Path, path: &Path) -> io::Result<()> {
    match own::exchange(temp, path) {
        // What stays because we die in between, the next writer removes.
        Ok(()) => {
            let _ = own::remove_file(temp);
            Ok(())
        }
        // There is nothing to exchange it with yet, or this file system can't.
        Err(_) => own::rename(temp, path),
    }
}

fn open(path: &Path) -> io::Result<(File, Stamp, Vec<u8>)> {
    let file = open_regular(path, OFlags::RDONLY)?;
    let stamp = Stamp::of(&file.metadata()?);
    let mut bytes = Vec::new();
    (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok((file, stamp, bytes))
}
