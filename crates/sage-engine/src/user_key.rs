//! The user's key: 32 random bytes in `key` of the user's own state directory (`$XDG_STATE_HOME/sage`), 0600.
//!
//! State is sealed with it (`sage_core::seal`), so that files which came with a repository are told from those
//! that this user wrote. What must stay true: a key is whole and durable before anything is sealed with it; of two
//! processes that create it at once, both use the same one; a key that others could have read or put there is none.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use sage_core::seal::{KEY_LEN, Key};

use crate::lock::lock_within;
use crate::vfs::{self, DiskFs, Vfs, open_regular};

const FILE_NAME: &str = "key";
const LOCK_NAME: &str = "key.lock";

/// Creating it takes milliseconds; a process that waits longer waits for a stopped one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The key in `dir`; `None` if there is none yet. Creates nothing.
pub fn read(dir: &Path) -> io::Result<Option<Key>> {
    let path = dir.join(FILE_NAME);
    let mut file = match open_regular(&path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    refuse_shared(&path, &file)?;
    let mut bytes = Vec::new();
    file.by_ref().take(KEY_LEN as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.as_slice().try_into() {
        Ok(bytes) => Ok(Some(Key::new(bytes))),
        Err(_) => Err(invalid(&path, &format!("it does not hold {KEY_LEN} bytes"))),
    }
}

/// The key in `dir`, created if there is none.
pub fn read_or_create(dir: &Path) -> io::Result<Key> {
    if let Some(key) = read(dir)? {
        return Ok(key);
    }
    let disk = DiskFs::default();
    make_dir(&disk, dir)?;
    let _lock = lock_within(&dir.join(LOCK_NAME), LOCK_TIMEOUT)?;
    // Another process may have been faster.
    if let Some(key) = read(dir)? {
        return Ok(key);
    }
    let mut bytes = [0; KEY_LEN];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    vfs::write_atomic(&disk, &dir.join(FILE_NAME), &bytes)?;
    Ok(Key::new(&bytes))
}

/// Durable with the directories that are new; those that were there are not ours to sync.
fn make_dir(disk: &DiskFs, dir: &Path) -> io::Result<()> {
    let (Some(there), Some(above)) = (dir.ancestors().find(|dir| dir.is_dir()), dir.parent()) else {
        return Ok(());
    };
    disk.create_dir_all(dir)?;
    // What is in `dir` itself is synced with the key.
    if there == dir { Ok(()) } else { vfs::sync_between(disk, there, above) }
}

/// A key that another user knows proves nothing.
fn refuse_shared(path: &Path, file: &File) -> io::Result<()> {
    let meta = file.metadata()?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(invalid(path, "it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(invalid(path, "other users can access it; chmod 600 restores it"));
    }
    Ok(())
}

fn invalid(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("cannot use the key `{}`: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use sage_core::digest::Digest;

    use super::*;

    fn seal(key: &Key) -> String {
        key.seal(&Digest::of(b"x")).to_string()
    }

    // covers: R17
    #[test]
    fn processes_that_create_it_at_once_use_the_same_key() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state/sage");
        assert!(read(&dir).unwrap().is_none());
        let seals: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| seal(&read_or_create(&dir).unwrap()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seals.iter().all(|it| *it == seal(&read(&dir).unwrap().unwrap())));
        let mode = dir.join(FILE_NAME).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = read_or_create(&home.path().join("other")).unwrap();
        assert_ne!(seal(&other), seals[0]);
    }

    // covers: R17
    #[test]
    fn a_key_that_others_could_know_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        read_or_create(home.path()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = read_or_create(home.path()).unwrap_err().to_string();
        assert!(error.contains("other users can access it"), "{error}");
        std::fs::remove_file(&path).unwrap();
        for bytes in [&b""[..], b"short", &[1; 33]] {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(read_or_create(home.path()).is_err());
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read(home.path()).is_err());
    }
}
