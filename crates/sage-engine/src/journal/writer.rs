//! The two halves of writing: `Journal` numbers and chains records in memory, inside the loop; `JournalFile`
//! makes batches durable, on a thread of its own if wanted.
//!
//! What must stay true: at most one fdatasync per batch; what a later record builds on is synced with it, and marked
//! as one batch with it; a batch is written only where it belongs; after the first failure the file is never touched again by this handle, because a failed fsync may have dropped data that
//! a second one would report as safe. Recovery reopens it and looks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::seal::Key;
use serde::Serialize;

use super::record::{self, Header, JOIN};
use super::{FILE_NAME, Head, Home, JournalError, Sealing};
use crate::vfs::{self, Vfs, VfsFile};

const SYNC: &str = "sync";

/// The appender. Owned by the loop: no other may add records to the run.
#[derive(Debug)]
pub struct Journal {
    key: Option<Key>,
    epoch: u64,
    head: Head,
    /// The head before the first pending record.
    taken: Head,
    pending: Vec<u8>,
    /// The batch before was written without being synced: a power cut can take it and the next one apart.
    open: bool,
}

/// Records to be made durable together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub bytes: Vec<u8>,
    /// The head that this goes on from.
    pub prev: Head,
    /// The head once this is durable.
    pub last: Head,
    pub count: u64,
    /// Whether it must survive a power cut now; without that it survives the end of this process.
    pub synced: bool,
}

impl Journal {
    /// Of a run that starts; goes with [`JournalFile::create`].
    #[must_use]
    pub fn new(sealing: &Sealing) -> Self {
        Self::resume(sealing, Head::EMPTY, 1)
    }

    pub(super) fn resume(sealing: &Sealing, head: Head, epoch: u64) -> Self {
        Self { key: sealing.key.clone(), epoch, head, taken: head, pending: Vec::new(), open: false }
    }

    /// The last record, durable or not.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records that wait for [`Journal::take_batch`].
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.head.seq - self.taken.seq
    }

    /// Adds a record and gives its number. After an error nothing was added.
    pub fn append(&mut self, kind: &str, ts_ms: u64, data: &impl Serialize) -> Result<u64, JournalError> {
        let start = self.pending.len();
        let header = Header { seq: self.head.seq + 1, epoch: self.epoch, prev: self.head.sha, ts_ms, kind };
        if start > 0 || self.open {
            self.pending.push(JOIN);
        }
        match record::encode(&mut self.pending, &header, data, self.key.as_ref()) {
            Ok(sha) => {
                self.head = Head { seq: header.seq, sha };
                Ok(header.seq)
            }
            Err(error) => {
                self.pending.truncate(start);
                Err(error)
            }
        }
    }

    /// What was added since the last call. To be committed in this order, with nothing left out.
    pub fn take_batch(&mut self) -> Option<Batch> {
        self.take(true)
    }

    /// The same, to be written and left to the next batch to be synced.
    pub fn take_unsynced(&mut self) -> Option<Batch> {
        self.take(false)
    }

    /// Makes durable what was written without being synced.
    #[must_use]
    pub fn sync(&mut self) -> Batch {
        self.open = false;
        Batch { bytes: Vec::new(), prev: self.taken, last: self.taken, count: 0, synced: true }
    }

    fn take(&mut self, synced: bool) -> Option<Batch> {
        let count = self.pending();
        if count == 0 {
            return None;
        }
        let bytes = std::mem::take(&mut self.pending);
        let prev = std::mem::replace(&mut self.taken, self.head);
        self.open = !synced;
        Some(Batch { bytes, prev, last: self.head, count, synced })
    }
}

/// The owner of the file.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    file: Box<dyn VfsFile>,
    /// The head and the length that were written.
    head: Head,
    len: u64,
    /// The head and the length that are durable.
    synced: (Head, u64),
    /// What was written after that.
    unsynced: Vec<u8>,
    failure: Option<String>,
    /// Checked with each commit; simulations have none.
    home: Option<Home>,
    /// How often the file had to be written anew because its name was taken away.
    put_back: u32,
}

impl JournalFile {
    /// Creates the journal of a new run in `dir`, a new directory of a durable one (`Project::prepare`). When this
    /// returns, the file's entry survives a power cut.
    pub fn create(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join(FILE_NAME);
        let io = |op, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Io { op, path, source }
        };
        vfs.create_dir_all(dir).map_err(io("create", dir))?;
        let file = match vfs.create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { path });
            }
            result => result.map_err(io("create", &path))?,
        };
        // Its content is synced with the first batch.
        vfs::sync_between(vfs.as_ref(), vfs::parent(dir), dir).map_err(io("sync", dir))?;
        Ok(Self::resume(path, file, Head::EMPTY, 0))
    }

    pub(super) fn resume(path: PathBuf, file: Box<dyn VfsFile>, head: Head, len: u64) -> Self {
        Self {
            path,
            file,
            head,
            len,
            synced: (head, len),
            unsynced: Vec::new(),
            failure: None,
            home: None,
            put_back: 0,
        }
    }

    /// From now on every commit makes sure that the journal is where it belongs.
    #[must_use]
    pub fn at_home(self, home: Home) -> Self {
        Self { home: Some(home), ..self }
    }

    /// How often it was written anew in its old place.
    #[must_use]
    pub fn times_put_back(&self) -> u32 {
        self.put_back
    }

    /// The last durable record.
    #[must_use]
    pub fn head(&self) -> Head {
        self.synced.0
    }

    /// The durable length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.synced.1
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `batch` and, if it says so, makes it durable together with all before it: one write, one fdatasync. Only
    /// what is durable may be acknowledged.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), JournalError> {
        if let Some(cause) = &self.failure {
            return Err(JournalError::Poisoned { path: self.path.clone(), cause: cause.clone() });
        }
        if batch.prev != self.head {
            return Err(JournalError::OutOfOrder { have: self.head, want: batch.prev });
        }
        let len = self.len + batch.bytes.len() as u64;
        if let Some(home) = &self.home {
            home.check_owner().inspect_err(|error| self.failure = Some(error.to_string()))?;
        }
        // A second writer: what it wrote is not torn apart by ours, and not trimmed.
        self.measure(self.len).map_err(|failed| self.fail(failed))?;
        if let Err(failed) = self.write(batch, len) {
            self.trim(len, failed.0 == SYNC);
            return Err(self.fail(failed));
        }
        self.stay_at_home().inspect_err(|error| self.failure = Some(error.to_string()))?;
        (self.head, self.len) = (batch.last, len);
        if batch.synced {
            self.synced = (self.head, self.len);
            self.unsynced.clear();
        } else {
            self.unsynced.extend_from_slice(&batch.bytes);
        }
        Ok(())
    }

    fn fail(&mut self, (op, source): (&'static str, io::Error)) -> JournalError {
        self.failure = Some(format!("cannot {op}: {source}"));
        JournalError::Io { op, path: self.path.clone(), source }
    }

    /// What was written counts only where everybody looks for it.
    fn stay_at_home(&mut self) -> Result<(), JournalError> {
        let Some(home) = &self.home else { return Ok(()) };
        let there = self.file.is_at(&self.path).map_err(JournalError::io("look for", &self.path))?;
        if !there {
            self.file = home.put_back(&self.path, self.file.as_ref())?;
            self.put_back += 1;
        }
        Ok(())
    }

    /// Pages of a failed write or sync may be readable and yet never reach the disk: nobody shall build on them.
    /// If this fails too, recovery finds a torn tail or whole records, and can go on from both. A file that is
    /// longer than we can have made it is somebody else's, and is left alone.
    ///
    /// What was written before, and not synced, is written again after a failed sync: the next one must not take it for
    /// safe.
    fn trim(&mut self, written: u64, again: bool) {
        if !self.file.len().is_ok_and(|len| (self.len..=written).contains(&len)) {
            return;
        }
        let kept = if again { self.synced.1 } else { self.len };
        if self.file.set_len(kept).is_ok() && again {
            let _ = vfs::write_all(self.file.as_mut(), &self.unsynced);
        }
    }

    fn write(&mut self, batch: &Batch, len: u64) -> Result<(), (&'static str, io::Error)> {
        vfs::write_all(self.file.as_mut(), &batch.bytes).map_err(|error| ("write", error))?;
        // A second writer, or a disk that takes bytes and forgets them.
        self.measure(len)?;
        if batch.synced { self.file.sync_data().map_err(|error| (SYNC, error)) } else { Ok(()) }
    }

    fn measure(&self, len: u64) -> Result<(), (&'static str, io::Error)> {
        match self.file.len().map_err(|error| ("measure", error))? {
            found if found == len => Ok(()),
            found => {
                let message = format!("the file has {found} bytes, {len} expected: it was changed by others");
                Err(("write", io::Error::other(message)))
            }
        }
    }
}
