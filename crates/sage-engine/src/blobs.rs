//! Values too large for a journal line, kept by what they are: `blobs/<sha256>`.
//!
//! What must stay true: when `put` returns, the blob survives a power cut, so a record that names it may be
//! committed; what `get` returns has the hash it was asked for.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::digest::Digest;
use crate::vfs::{self, NotRegular, Vfs};

/// A blob is held in memory as a whole, so there is an end.
pub const MAX_BLOB_BYTES: u64 = 1 << 30;
/// The operation that writes a blob, as errors name it.
pub(crate) const KEEP: &str = "keep";

/// A directory of blobs. Clones are the same directory.
#[derive(Debug, Clone)]
pub struct Blobs {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// Blobs that this process made durable or found to be.
    durable: Arc<Mutex<HashSet<Digest>>>,
}

/// Why a blob can't be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("blob `{digest}` is missing")]
    Missing { digest: Digest },
    #[error("blob `{digest}` is damaged: its content has the hash `{found}`")]
    Damaged { digest: Digest, found: Digest },
    #[error("a blob of {bytes} bytes is too large, at most {MAX_BLOB_BYTES} are kept")]
    TooLarge { bytes: u64 },
    #[error("cannot {op} blob `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
}

impl BlobError {
    /// What was kept is gone. Any other error says nothing about it: it may be there the next time.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        match self {
            BlobError::Missing { .. } | BlobError::Damaged { .. } => true,
            BlobError::Io { op: KEEP, .. } => false,
            BlobError::Io { source, .. } => {
                let replaced = source.get_ref().is_some_and(|inner| inner.is::<NotRegular>());
                replaced || source.kind() == io::ErrorKind::FileTooLarge
            }
            BlobError::TooLarge { .. } => false,
        }
    }
}

impl Blobs {
    /// Touches nothing: the directory is made by the first `put`.
    #[must_use]
    pub fn new(vfs: Arc<dyn Vfs>, dir: impl Into<PathBuf>) -> Self {
        Self { vfs, dir: dir.into(), durable: Arc::default() }
    }

    /// Where a blob is, if it is.
    #[must_use]
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(digest.to_string())
    }

    /// Keeps `bytes` durably.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        if bytes.len() as u64 > MAX_BLOB_BYTES {
            return Err(BlobError::TooLarge { bytes: bytes.len() as u64 });
        }
        let digest = Digest::of(bytes);
        let path = self.path(&digest);
        // Known, and not taken away since.
        if self.durable().contains(&digest) && self.vfs.exists(&path).unwrap_or(false) {
            return Ok(digest);
        }
        let stored = match self.get(&digest) {
            // Whoever wrote it may have been killed before it could sync the directory.
            Ok(_) if self.durable().is_empty() => {
                vfs::sync_between(self.vfs.as_ref(), vfs::parent(&self.dir), &self.dir)
            }
            Ok(_) => self.vfs.sync_dir(&self.dir),
            Err(_) => self.write(&path, bytes),
        };
        stored.map_err(|source| BlobError::Io { op: KEEP, path, source })?;
        self.durable().insert(digest);
        Ok(digest)
    }

    /// The content, verified.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, BlobError> {
        let path = self.path(digest);
        let bytes = match self.vfs.read(&path, MAX_BLOB_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BlobError::Missing { digest: *digest });
            }
            Err(source) => {
                return Err(BlobError::Io { op: "read", path, source });
            }
        };
        match Digest::of(&bytes) {
            found if found == *digest => Ok(bytes),
            found => Err(BlobError::Damaged { digest: *digest, found }),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let vfs = self.vfs.as_ref();
        if self.durable().is_empty() || !vfs.exists(&self.dir)? {
            vfs::create_dir_durable(vfs, &self.dir)?;
        }
        let temp = vfs::write_temp(vfs, path, bytes)?;
        let placed = self.clear(path).and_then(|()| vfs.rename(&temp, path));
        placed.inspect_err(|_| vfs::discard(vfs, &temp))?;
        vfs.sync_dir(&self.dir)
    }

    /// A directory in the place of a blob cannot be replaced, so it gets another name. It is kept: somebody made it.
    fn clear(&self, path: &Path) -> io::Result<()> {
        let vfs = self.vfs.as_ref();
        if vfs.metadata(path).map_or(true, |meta| meta.is_file) {
            return Ok(());
        }
        let mut aside = (1_u32..).map(|number| vfs::with_suffix(path, &format!(".damaged-{number}")));
        let free = aside.find(|aside| !matches!(vfs.exists(aside), Ok(true)));
        free.map_or(Ok(()), |aside| vfs.rename(path, &aside))
    }

    fn durable(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimFs;
    use crate::vfs::DiskFs;

    // covers: R4
    #[test]
    fn put_is_durable_and_done_once() {
        let sim = SimFs::new(1);
        let blobs = Blobs::new(Arc::new(sim.clone()), "/run/blobs");
        let digest = blobs.put(b"hello").unwrap();
        let ops = sim.ops();
        assert_eq!(blobs.put(b"hello").unwrap(), digest);
        assert_eq!(sim.ops(), ops, "a blob that is there costs nothing");
        for seed in 0..20 {
            sim.crash(seed);
            sim.restart();
            assert_eq!(blobs.get(&digest).unwrap(), b"hello");
        }
    }

    // covers: R4
    #[test]
    fn a_blob_of_a_killed_process_is_made_durable_before_it_counts() {
        for seed in 0..50 {
            let sim = SimFs::new(seed);
            let first = Blobs::new(Arc::new(sim.clone()), "/run/blobs");
            let probe = SimFs::new(seed);
            Blobs::new(Arc::new(probe.clone()), "/run/blobs").put(b"hello").unwrap();
            // The last operation is the sync of the directory: the process ends before it, the machine doesn't.
            sim.fail_at(probe.ops() - 1, crate::sim::Fault::Eio);
            assert!(first.put(b"hello").is_err());
            let digest = Blobs::new(Arc::new(sim.clone()), "/run/blobs").put(b"hello").unwrap();
            sim.crash(seed);
            sim.restart();
            assert_eq!(first.get(&digest).unwrap(), b"hello");
        }
    }

    // covers: R4
    #[test]
    fn missing_and_damaged_blobs_are_told_apart_and_put_repairs() {
        let sim = SimFs::new(1);
        let new = || Blobs::new(Arc::new(sim.clone()), "/run/blobs");
        let digest = Digest::of(b"hello");
        assert!(matches!(new().get(&digest), Err(BlobError::Missing { .. })));
        for bit in 0..8 * 5 {
            let mut bytes = *b"hello";
            bytes[bit / 8] ^= 1 << (bit % 8);
            sim.plant(&new().path(&digest), &bytes).unwrap();
            assert!(matches!(new().get(&digest), Err(BlobError::Damaged { .. })));
        }
        assert_eq!(new().put(b"hello").unwrap(), digest);
        assert_eq!(new().get(&digest).unwrap(), b"hello");
    }

    // covers: R4, R15
    #[test]
    fn a_directory_in_the_place_of_a_blob_is_kept_aside() {
        let home = tempfile::tempdir().unwrap();
        let new = || Blobs::new(DiskFs::new(), home.path().join("blobs"));
        let digest = new().put(b"hello").unwrap();
        let path = new().path(&digest);
        for number in 1..=2 {
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("note"), "mine").unwrap();
            assert!(new().get(&digest).unwrap_err().is_loss());
            assert_eq!(new().put(b"hello").unwrap(), digest);
            assert_eq!(new().get(&digest).unwrap(), b"hello");
            let aside = vfs::with_suffix(&path, &format!(".damaged-{number}"));
            assert_eq!(std::fs::read(aside.join("note")).unwrap(), b"mine");
        }
    }

    // covers: R4, R15
    #[test]
    fn a_blob_replaced_by_a_symlink_is_refused_and_modes_are_private() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(DiskFs::new(), home.path().join("blobs"));
        let digest = blobs.put(b"hello").unwrap();
        let path = blobs.path(&digest);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(
            std::fs::read_dir(home.path().join("blobs")).unwrap().count(),
            1,
            "no temporary file is left"
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::write(home.path().join("elsewhere"), "hello").unwrap();
        symlink(home.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(blobs.get(&digest), Err(BlobError::Io { .. })));
        assert!(blobs.get(&digest).unwrap_err().is_loss());
    }

    // covers: R4, R15
    #[test]
    fn a_blob_that_cannot_be_read_for_the_moment_is_not_lost() {
        use rustix::io::Errno;
        for errno in [Errno::MFILE, Errno::IO, Errno::NOMEM, Errno::ACCESS] {
            let error = BlobError::Io { op: "read", path: "x".into(), source: errno.into() };
            assert!(!error.is_loss(), "{errno}");
        }
    }
}
