//! A run's journal: append-only, hash-chained JSON lines. It is the only truth about a run.
//!
//! ```text
//! loop: Journal::append -> take_batch -> Batch -> JournalFile::commit (one fdatasync) -> acknowledged
//! restart: recover -> records for the fold + Journal and JournalFile, ready to go on
//! elsewhere: Reader follows the growing file; check verifies it and changes nothing
//! ```
//! What must stay true: nothing is acknowledged before its fdatasync; what was acknowledged is never dropped
//! silently; damage is an error or a reported torn tail, never a panic.
//! Records of one batch were synced together: all but the first are indented by one space, outside of the
//! hash. Without that mark a power cut in a batch (later sectors written, earlier ones not) and damage to old
//! records would look alike.
//! Each record is sealed with the user's key; the seal of the last one covers the chain. A journal without a
//! valid seal came from elsewhere: it is read, and opened for writing only if a person said so.

mod draft;
mod first;
mod home;
mod origin;
mod reader;
mod record;
mod recover;
mod salvage;
mod watermark;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sage_core::seal::{Key, Sealed};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::vfs::NotRegular;

pub(crate) use draft::Draft;
pub use first::{First, first};
pub use home::Home;
pub use origin::{Origin, last_head, origin};
pub use reader::Reader;
pub use record::{MAX_LINE_BYTES, Record, VERSION};
pub use recover::{Checked, Recovered, Torn, check, recover};
pub use salvage::{Piece, Salvage, salvage};
pub use writer::{Batch, Journal, JournalFile};

/// The journal's name in a run's directory.
pub const FILE_NAME: &str = "journal.jsonl";

/// Where torn tails are kept, in a run's directory.
pub const QUARANTINE: &str = "quarantine";

/// The last record: how far a journal goes, and proof of all that is before. Kept elsewhere it is a watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    pub seq: u64,
    pub sha: Digest,
}

impl Head {
    /// The head of a journal without records.
    pub const EMPTY: Self = Self { seq: 0, sha: Digest::ZERO };
}

/// How the journal of one run is sealed.
#[derive(Debug, Clone)]
pub struct Sealing {
    key: Option<Key>,
    accepts_foreign: bool,
}

impl Sealing {
    /// Without the user's key, records are not sealed and no journal is ours.
    #[must_use]
    pub fn new(key: Option<&Key>, run: &str) -> Self {
        Self { key: key.map(|key| key.scoped("journal", run)), accepts_foreign: false }
    }

    /// For a run that a person said may go on.
    #[must_use]
    pub fn accepting_foreign(self, accepts_foreign: bool) -> Self {
        Self { accepts_foreign, ..self }
    }

    /// Whether a record with this seal may be taken over: ours, or a person said so.
    pub(crate) fn admits(&self, sealed: Option<&Sealed>) -> bool {
        self.accepts_foreign || self.holds(sealed)
    }

    /// Whether a journal that ends with this seal was written with our key.
    #[must_use]
    pub fn holds(&self, sealed: Option<&Sealed>) -> bool {
        sealed.is_some_and(|sealed| sealed.holds(self.key.as_ref()))
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} ({:.12})", self.seq, self.sha)
    }
}

/// Why a journal can't be written, read or trusted.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
    #[error("no journal at `{}`", path.display())]
    Missing { path: PathBuf },
    #[error("`{}` is {what}, not a journal", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("a journal exists already at `{}`", path.display())]
    Exists { path: PathBuf },
    #[error("journal damaged at line {line} (byte {offset}): {what}")]
    Corrupt { line: u64, offset: u64, what: String },
    #[error("journal has lost acknowledged records: it has {have}, {want} was acknowledged")]
    LostAcked { have: Head, want: Head },
    #[error("`{}` was not written by this user on this machine", path.display())]
    Foreign { path: PathBuf },
    #[error("journal line {line} has format version {found}, this sage reads up to {VERSION}")]
    NewerVersion { line: u64, found: u64 },
    #[error("journal `{}` is closed after a failure: {cause}", path.display())]
    Poisoned { path: PathBuf, cause: String },
    #[error("journal `{}` was removed, moved or replaced while the run was going on, and cannot be written anew: {why}", path.display())]
    Displaced { path: PathBuf, why: String },
    #[error("the run was taken over by {owner}")]
    Taken { owner: String },
    #[error("batch goes on from {want}, the journal is at {have}")]
    OutOfOrder { have: Head, want: Head },
    #[error("`{kind}` is no kind of record: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `-` expected")]
    Kind { kind: String },
    #[error("cannot write a record of kind `{kind}`: {source}")]
    Encode { kind: String, source: serde_json::Error },
    #[error("a record of kind `{kind}` holds a line break outside of a string")]
    LineBreak { kind: String },
    #[error("a record of kind `{kind}` has {bytes} bytes, at most {MAX_LINE_BYTES} fit: use a blob")]
    TooLong { kind: String, bytes: usize },
}

impl JournalError {
    /// Records are gone or unreadable. Whatever else is wrong with a journal says nothing about what was in it.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::NotAFile { .. }
                | Self::Corrupt { .. }
                | Self::LostAcked { .. }
                | Self::Foreign { .. }
        )
    }

    fn io(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let replaced = source.get_ref().and_then(|inner| inner.downcast_ref::<NotRegular>());
            match (source.kind(), replaced) {
                (io::ErrorKind::NotFound, _) if op != "sync" => Self::Missing { path },
                (_, Some(replaced)) => Self::NotAFile { path, what: replaced.what },
                _ => Self::Io { op, path, source },
            }
        }
    }
}

#[cfg(test)]
mod tests;
