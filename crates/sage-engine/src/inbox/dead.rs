//! Dead letters: what could not be handled, with the reason beside it. Kept until a person decides.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::read::Origin;
use super::{Inbox, MAX_BYTES, Wake, gone_is_fine};
use crate::vfs::{self, Vfs};

const REASON: &str = ".reason";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    pub reason: String,
    pub tries: u32,
    /// RFC 3339.
    pub at: String,
}

#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The wake's id, or the file's label where it cannot be read.
    pub id: String,
    pub wake: Option<Wake>,
    pub reason: Reason,
    pub path: PathBuf,
    session: String,
}

#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    #[error("no dead letter `{0}`")]
    Unknown(String),
    #[error("cannot put it back: {0}")]
    Io(#[from] io::Error),
}

impl Inbox {
    /// Given up: `from` is the wake's file in `taken`.
    pub(super) fn bury(&self, from: &std::path::Path, name: &Name, reason: &Reason) -> io::Result<()> {
        let dead = self.dead_dir();
        let path = dead.join(name.file());
        let mut text = serde_json::to_vec_pretty(reason)?;
        text.push(b'\n');
        // The reason first: a dead letter without one would be a riddle.
        vfs::write_atomic(&self.disk, &vfs::with_suffix(&path, REASON), &text)?;
        self.disk.rename(from, &path)?;
        self.disk.sync_dir(&dead)
    }

    /// Oldest first.
    pub fn dead(&self) -> io::Result<Vec<DeadLetter>> {
        let names = self.list(&self.dead_dir())?;
        Ok(names.iter().filter_map(|file| self.dead_letter(file, Name::parse(file)?)).collect())
    }

    fn dead_letter(&self, file: &str, name: Name) -> Option<DeadLetter> {
        let path = self.dead_dir().join(file);
        let meta = self.disk.metadata(&path).ok()?;
        let origin = Origin { name: file, modified: meta.modified };
        let bytes = self.disk.read(&path, MAX_BYTES).ok();
        let wake = bytes.and_then(|bytes| Wake::read(&bytes, origin).ok());
        let reason = self.disk.read(&vfs::with_suffix(&path, REASON), MAX_BYTES).ok();
        let reason = reason.and_then(|text| serde_json::from_slice(&text).ok());
        let reason =
            reason.unwrap_or_else(|| Reason { reason: "unknown".into(), tries: 0, at: String::new() });
        let id = wake.as_ref().map_or(name.label.clone(), |wake| wake.wake_id.clone());
        // An unreadable one is a sender of its own.
        let session = wake.as_ref().map_or(name.label, |wake| wake.session_id.clone());
        Some(DeadLetter { id, wake, reason, path, session })
    }

    /// Back to the end of the queue, with all tries anew. Gives the ids of those that were put back.
    pub fn retry(&self, id: Option<&str>) -> Result<Vec<String>, RetryError> {
        let wanted = |letter: &DeadLetter| id.is_none_or(|id| letter.id == id);
        let letters: Vec<DeadLetter> = self.dead()?.into_iter().filter(wanted).collect();
        if let (Some(id), true) = (id, letters.is_empty()) {
            return Err(RetryError::Unknown(id.into()));
        }
        if !letters.is_empty() {
            self.prepare()?;
        }
        for letter in &letters {
            self.place(&letter.path, &letter.session, &letter.id)?;
            gone_is_fine(self.disk.remove_file(&vfs::with_suffix(&letter.path, REASON)))?;
        }
        Ok(letters.into_iter().map(|letter| letter.id).collect())
    }
}
