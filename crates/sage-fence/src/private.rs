//! Files of Sage's own: 0600 in directories of 0700 whatever the umask, replaced as a whole, and never through a
//! link on the way (`own`).

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use crate::own;
pub use crate::own::{
    create_dir_all, list, make_dir, make_pipe, remove_all, remove_dir, remove_file, rename,
};

const FILE_MODE: u32 = 0o600;

/// Opens a file for writing from its beginning, empty.
pub fn create(path: &Path) -> io::Result<File> {
    open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
}

/// Makes a file; false if something is there already.
pub fn create_new(path: &Path, content: &[u8]) -> io::Result<bool> {
    match open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
        Ok(mut file) => file.write_all(content).map(|()| true),
        Err(_) if path.symlink_metadata().is_ok() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file whose content is kept, for a lock on it.
pub fn open_lock(path: &Path) -> io::Result<File> {
    open(path, OFlags::WRONLY | OFlags::CREATE)
}

/// Opens a file to add to its end.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = own::open(path, flags)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// The content of a file of at most `max_bytes`.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = own::open(path, OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    // Counted while reading, too: the file may grow.
    if file.metadata()?.len() <= max_bytes
        && file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)? as u64 <= max_bytes
    {
        return Ok(bytes);
    }
    let message = format!("`{}` is larger than {max_bytes} bytes", path.display());
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// As `read`, of a text.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, max_bytes)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Replaces a file as a whole. After a power cut it may be the old one.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, |file| file.write_all(content))
}

/// As `write`, and it is on the disk when this returns.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, |file| file.write_all(content).and_then(|()| file.sync_all()))?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let new = open(&temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
    let written = new.and_then(|mut file| fill(&mut file)).and_then(|()| rename(&temporary, path));
    if written.is_err() {
        // The first failure is the one worth telling.
        let _ = remove_file(&temporary);
    }
    written
}

/// A name beside `path` that no living process uses; `sage gc` removes what a killed one left.
fn temporary(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    // covers: R4, R17
    #[test]
    fn files_are_private_whole_and_not_written_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        create_dir_all(&inner).unwrap();
        create_dir_all(&inner).unwrap();
        assert_eq!((mode(&dir.path().join("a")), mode(&inner)), (0o700, 0o700));
        let file = inner.join("x.json");
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!((std::fs::read_to_string(&file).unwrap(), mode(&file)), ("new".to_string(), 0o600));
        write_durable(&file, b"newer").unwrap();
        drop(open_lock(&file).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "newer");
        std::os::unix::fs::symlink(&file, inner.join("link")).unwrap();
        assert!(create(&inner.join("link")).is_err() && open_lock(&inner.join("link")).is_err());
        write(&inner.join("link"), b"other").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "newer");
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2, "no temporary file is left");
    }
}
