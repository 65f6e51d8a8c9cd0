//! What Sage has written for people: the hashes of the last texts of each file, in `.sage/state/outputs`.
//!
//! Written before the file itself. Not synced: a hash that a power cut takes away makes a file look like a
//! person's, which costs a neighbour and never a text.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_core::digest::Digest;
use sage_fence::private;
use serde::{Deserialize, Serialize};

use crate::lock::lock_within;

/// Texts that are remembered of a file.
const REMEMBERED: usize = 8;
const RECORD_BYTES: u64 = 1 << 16;
/// An update takes microseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Memory {
    dir: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    v: u32,
    /// Of the file, from the project's root on.
    path: String,
    /// SHA-256 of what Sage wrote, the newest last.
    sha256: Vec<Digest>,
}

impl Memory {
    pub fn new(dir: PathBuf) -> Memory {
        Memory { dir }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether Sage wrote this text to the file; `None` if it never wrote the file at all.
    pub fn knows(&self, path: &str, sha: &Digest) -> Option<bool> {
        self.read(path).map(|record| record.sha256.contains(sha))
    }

    /// From now on the text is ours.
    pub fn remember(&self, path: &str, sha: &Digest) -> io::Result<()> {
        if self.read(path).is_some_and(|record| record.sha256.last() == Some(sha)) {
            return Ok(());
        }
        private::create_dir_all(&self.dir)?;
        let _lock = lock_within(&self.dir.join("lock"), LOCK_TIMEOUT)?;
        let mut record = self.read(path).unwrap_or_default();
        record.v = 1;
        record.path = path.to_string();
        record.sha256.retain(|known| known != sha);
        record.sha256.push(*sha);
        let surplus = record.sha256.len().saturating_sub(REMEMBERED);
        record.sha256.drain(..surplus);
        private::write(&self.file(path), &serde_json::to_vec(&record)?)
    }

    /// What cannot be read is not known.
    fn read(&self, path: &str) -> Option<Record> {
        let text = private::read(&self.file(path), RECORD_BYTES).ok()?;
        serde_json::from_slice(&text).ok().filter(|record: &Record| record.path == path)
    }

    fn file(&self, path: &str) -> PathBuf {
        self.dir.join(format!("{}.json", Digest::of(path.as_bytes())))
    }
}
