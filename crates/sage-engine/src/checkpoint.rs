//! The checkpoint: a run's state as one JSON document for people and other tools, with a backup beside it.
//!
//! It is a view of the journal, and names the journal's head, so a lost tail is noticed. `checksum` is the
//! SHA-256 of the document without that field in canonical form: keys sorted at every level, no whitespace,
//! numbers as they are written. `seal` says who wrote it (`sage_core::seal`); the checksum covers it.
//! What must stay true: at `path` or at `path.bak` there is always a whole, valid document once there was one;
//! a damaged one is never taken for good; one of a newer major version is never overwritten by its backup.

use std::io;
use std::path::{Path, PathBuf};

use sage_core::canonical::{self, CanonicalError};
use sage_core::seal::{self, Key};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::project::is_run_name;
use crate::vfs::{self, Vfs};

/// The version that is written. A higher minor number only adds fields.
pub const VERSION: &str = "1.0";
const MAJOR: u64 = 1;
const MINOR: u64 = 0;

/// No checkpoint is larger; the goal is below one megabyte.
pub const MAX_CHECKPOINT_BYTES: u64 = 16 << 20;

const CHECKSUM: &str = "checksum";
const VERSION_KEY: &str = "version";
const RUN_KEY: &str = "runId";

/// Why a checkpoint can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("no checkpoint at `{}`", path.display())]
    Missing { path: PathBuf },
    #[error("checkpoint is not a valid document: {what}")]
    Malformed { what: String },
    #[error("checkpoint has the key `{key}` twice")]
    DuplicateKey { key: String },
    #[error("checkpoint is damaged: its checksum does not match")]
    Checksum,
    #[error("checkpoint has version {found}, this sage reads {VERSION}: use a newer sage")]
    NewerVersion { found: String },
    #[error("checkpoint is larger than {MAX_CHECKPOINT_BYTES} bytes")]
    TooLarge,
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
    #[error("{main}; and of its backup: {backup}")]
    Both { main: Box<CheckpointError>, backup: Box<CheckpointError> },
}

impl CheckpointError {
    /// The error of the system that kept it from being read, if there was one.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            CheckpointError::Io { source, .. } => Some(source),
            CheckpointError::Both { main, backup } => main.io().or_else(|| backup.io()),
            _ => None,
        }
    }
}

/// Which file a document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Main,
    Backup,
}

/// A document that was found.
#[derive(Debug)]
pub struct Loaded {
    /// Without its checksum and its seal.
    pub doc: Map<String, Value>,
    text: String,
    pub from: Source,
    /// Why it isn't the main file.
    pub problem: Option<CheckpointError>,
}

impl Loaded {
    /// Whether this user wrote it, on this machine.
    #[must_use]
    pub fn is_sealed(&self, user: Option<&Key>, feature: &str) -> bool {
        seal::claimed(&self.text, &[CHECKSUM])
            .is_some_and(|sealed| sealed.holds(scoped(user, feature).as_ref()))
    }
}

/// The key for the checkpoints of one feature.
#[must_use]
pub fn scoped(user: Option<&Key>, feature: &str) -> Option<Key> {
    user.map(|key| key.scoped("checkpoint", feature))
}

/// The text of a document, with its version, its seal and its checksum. A newer minor version that the document
/// names is kept. `key` is that of its feature.
pub fn seal(mut doc: Map<String, Value>, key: Option<&Key>) -> Result<Vec<u8>, CheckpointError> {
    doc.shift_remove(CHECKSUM);
    if !is_newer_minor(&doc) {
        doc.shift_insert(0, VERSION_KEY.to_owned(), VERSION.into());
    }
    seal::seal_document(&mut doc, key)?;
    let checksum = checksum(&pretty(&doc)?)?;
    doc.insert(CHECKSUM.to_owned(), checksum.to_string().into());
    let mut text = pretty(&doc)?;
    text.push('\n');
    if text.len() as u64 > MAX_CHECKPOINT_BYTES {
        return Err(CheckpointError::TooLarge);
    }
    Ok(text.into_bytes())
}

/// The document in `bytes`, verified, without its checksum and its seal. Fields that we don't know are kept.
pub fn open(bytes: &[u8]) -> Result<Map<String, Value>, CheckpointError> {
    if bytes.len() as u64 > MAX_CHECKPOINT_BYTES {
        return Err(CheckpointError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(malformed)?;
    let mut doc: Map<String, Value> = serde_json::from_str(text).map_err(malformed)?;
    let claimed = match doc.shift_remove(CHECKSUM) {
        Some(Value::String(hex)) => hex.parse::<Digest>().map_err(|_| CheckpointError::Checksum)?,
        _ => return Err(CheckpointError::Checksum),
    };
    if checksum(text)? != claimed {
        return Err(CheckpointError::Checksum);
    }
    check_version(&doc)?;
    check_run(&doc)?;
    doc.shift_remove(seal::FIELD);
    Ok(doc)
}

/// Puts sealed `bytes` at `path`; what was there becomes the backup. A power cut may bring back the one before: it
/// is a view of the journal, which is synced.
pub fn save(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let failed = |source| CheckpointError::Io { op: "write", path: path.to_owned(), source };
    let temp = vfs::write_temp(vfs, path, bytes).map_err(failed)?;
    keep_backup(vfs, path)
        .and_then(|()| vfs.rename(&temp, path))
        .inspect_err(|_| vfs::discard(vfs, &temp))
        .map_err(failed)?;
    let backup = backup_path(path);
    if !vfs.exists(&backup).map_err(failed)? {
        // The first one is its own backup.
        vfs::replace(vfs, &backup, bytes).map_err(failed)?;
    }
    Ok(())
}

/// The document at `path`, or its backup if that is missing or damaged.
pub fn load(vfs: &dyn Vfs, path: &Path) -> Result<Loaded, CheckpointError> {
    let problem = match read(vfs, path) {
        Ok((doc, text)) => return Ok(Loaded { doc, text, from: Source::Main, problem: None }),
        // The backup would be the state before the newer sage: running on from it would undo its work.
        Err(error @ CheckpointError::NewerVersion { .. }) => return Err(error),
        Err(error) => error,
    };
    match read(vfs, &backup_path(path)) {
        Ok((doc, text)) => Ok(Loaded { doc, text, from: Source::Backup, problem: Some(problem) }),
        Err(CheckpointError::Missing { .. }) => Err(problem),
        Err(backup) => Err(CheckpointError::Both { main: Box::new(problem), backup: Box::new(backup) }),
    }
}

/// Where the backup of the checkpoint at `path` is.
#[must_use]
pub fn backup_path(path: &Path) -> PathBuf {
    vfs::with_suffix(path, ".bak")
}

fn read(vfs: &dyn Vfs, path: &Path) -> Result<(Map<String, Value>, String), CheckpointError> {
    let bytes = vfs.read(path, MAX_CHECKPOINT_BYTES).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CheckpointError::Missing { path: path.to_owned() },
        io::ErrorKind::FileTooLarge => CheckpointError::TooLarge,
        _ => CheckpointError::Io { op: "read", path: path.to_owned(), source },
    })?;
    let doc = open(&bytes)?;
    Ok((doc, String::from_utf8(bytes).map_err(malformed)?))
}

/// Gives the present document the backup's name too, unless it is damaged: then the backup is the better one.
fn keep_backup(vfs: &dyn Vfs, path: &Path) -> io::Result<()> {
    match read(vfs, path) {
        Ok(_) | Err(CheckpointError::NewerVersion { .. }) => {}
        Err(_) => return Ok(()),
    }
    let backup = backup_path(path);
    let link = vfs::temp_name(&backup);
    match vfs.hard_link(path, &link) {
        Ok(()) => {
            let renamed = vfs.rename(&link, &backup);
            // A rename between two names of one file does nothing, and leaves the first.
            if vfs.exists(&link)? {
                vfs::discard(vfs, &link);
            }
            renamed
        }
        // Not every file system has hard links.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) =>
        {
            vfs::write_atomic(vfs, &backup, &vfs.read(path, MAX_CHECKPOINT_BYTES)?)
        }
        Err(error) => Err(error),
    }
}

/// Whether a newer sage, with fields that this one does not know, wrote the document.
pub(crate) fn is_newer_minor(doc: &Map<String, Value>) -> bool {
    matches!(version_of(doc), Some((MAJOR, minor)) if minor > MINOR)
}

fn version_of(doc: &Map<String, Value>) -> Option<(u64, u64)> {
    let (major, minor) = doc.get(VERSION_KEY)?.as_str()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn check_version(doc: &Map<String, Value>) -> Result<(), CheckpointError> {
    match version_of(doc) {
        Some((MAJOR, _)) => Ok(()),
        Some((major, minor)) if major > MAJOR => {
            Err(CheckpointError::NewerVersion { found: format!("{major}.{minor}") })
        }
        _ => Err(CheckpointError::Malformed { what: "unknown `version`".to_owned() }),
    }
}

/// Its run is a name: a path would lead to the state of another project.
fn check_run(doc: &Map<String, Value>) -> Result<(), CheckpointError> {
    match doc.get(RUN_KEY).and_then(Value::as_str) {
        Some(run) if !is_run_name(run) => {
            Err(CheckpointError::Malformed { what: "its `runId` is not the id of a run".to_owned() })
        }
        _ => Ok(()),
    }
}

fn checksum(text: &str) -> Result<Digest, CheckpointError> {
    Ok(Digest::of(canonical::without(text, &[CHECKSUM])?.as_bytes()))
}

impl From<CanonicalError> for CheckpointError {
    fn from(error: CanonicalError) -> Self {
        match error {
            CanonicalError::Malformed(what) => Self::Malformed { what },
            CanonicalError::DuplicateKey(key) => Self::DuplicateKey { key },
        }
    }
}

fn pretty(doc: &Map<String, Value>) -> Result<String, CheckpointError> {
    serde_json::to_string_pretty(doc).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> CheckpointError {
    CheckpointError::Malformed { what: error.to_string() }
}

#[cfg(test)]
mod tests;
