//! The real file system, with the refusals that the trait promises, and a count of its syncs: how many
//! fdatasyncs a commit costs is a promise that tests hold us to.

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use sage_fence::own;

use super::{Meta, Vfs, VfsFile};

const FILE_MODE: u32 = 0o600;
/// How much room a read begins with.
const READ_BYTES: u64 = 16 << 10;

/// The real file system.
#[derive(Debug, Default, Clone)]
pub struct DiskFs {
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    data: AtomicU64,
    all: AtomicU64,
    dir: AtomicU64,
}

/// How many syncs a [`DiskFs`] has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncCounts {
    /// fdatasync of files.
    pub data: u64,
    /// fsync of files.
    pub all: u64,
    /// fsync of directories.
    pub dir: u64,
}

impl DiskFs {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Syncs asked for since the start, failed ones too.
    #[must_use]
    pub fn syncs(&self) -> SyncCounts {
        SyncCounts {
            data: self.counters.data.load(Ordering::Relaxed),
            all: self.counters.all.load(Ordering::Relaxed),
            dir: self.counters.dir.load(Ordering::Relaxed),
        }
    }

    fn wrap(&self, file: File) -> Box<dyn VfsFile> {
        Box::new(DiskFile { file, counters: Arc::clone(&self.counters) })
    }
}

/// Opens a regular file and nothing else, through no link. Also used for lock files, which are never simulated.
pub(crate) fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    own::open(path, flags)
}

/// A umask may take bits away from the mode given to `open`; this puts ours back.
pub(crate) fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(FILE_MODE))
}

fn or_here(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

impl Vfs for DiskFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        own::create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let file = open_regular(path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
        make_private(&file)?;
        Ok(self.wrap(file))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(self.wrap(open_regular(path, OFlags::RDWR | OFlags::APPEND)?))
    }

    fn read(&self, path: &Path, cap_bytes: u64) -> io::Result<Vec<u8>> {
        let file = open_regular(path, OFlags::RDONLY)?;
        if file.metadata()?.len() > cap_bytes {
            return Err(too_large(path, cap_bytes));
        }
        let mut bytes = Vec::new();
        // Counted while reading, too: the file may grow.
        file.take(cap_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > cap_bytes {
            return Err(too_large(path, cap_bytes));
        }
        Ok(bytes)
    }

    fn read_from(&self, path: &Path, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut file = open_regular(path, OFlags::RDONLY)?;
        file.seek(SeekFrom::Start(offset))?;
        // With room from the start: `read_to_end` begins with 32 bytes, and a line would take ten calls.
        let mut bytes = Vec::with_capacity(max_bytes.min(READ_BYTES) as usize);
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        let meta = path.symlink_metadata()?;
        Ok(Meta { len: meta.len(), is_file: meta.is_file(), modified: meta.modified().ok() })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = own::list(dir)?.into_iter().filter_map(|entry| entry.name.into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        own::rename(from, to)
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        own::hard_link(original, link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        own::remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        own::remove_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.counters.dir.fetch_add(1, Ordering::Relaxed);
        File::open(or_here(dir))?.sync_all()
    }
}

fn too_large(path: &Path, cap_bytes: u64) -> io::Error {
    let message = format!("`{}` is larger than {cap_bytes} bytes", path.display());
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    counters: Arc<Counters>,
}

impl VfsFile for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.counters.data.fetch_add(1, Ordering::Relaxed);
        self.file.sync_data()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.counters.all.fetch_add(1, Ordering::Relaxed);
        self.file.sync_all()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        is_at(&self.file, path)
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; usize::try_from(self.len()?).map_err(|_| io::ErrorKind::FileTooLarge)?];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Whether `path` names the open file itself; a symlink to it does not.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let there = match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        there => there?,
    };
    let here = file.metadata()?;
    Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
}
