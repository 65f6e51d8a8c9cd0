//! `ACTIVE_WORKFLOWS.json`: which features have runs, for people and other tools.
//!
//! It is a list to look at; locks and journals decide. So damage is never fatal: a file that can't be read is
//! set aside, told of, and a new one is begun.
//! What must stay true: writers take turns by an OS lock, and readers see the old or the new file, never a part.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lock::lock_within;
use crate::vfs::{self, DiskFs, Vfs};

/// The registry's name in the state directory.
pub const FILE_NAME: &str = "ACTIVE_WORKFLOWS.json";
const LOCK_NAME: &str = "registry.lock";

const VERSION: &str = "1.0";
const MAX_REGISTRY_BYTES: u64 = 16 << 20;

/// An update takes milliseconds; who waits longer waits for a stopped process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// One feature's run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub feature: String,
    pub run_id: String,
    pub template: String,
    pub status: String,
    pub pid: u32,
    /// RFC 3339.
    pub started_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// What a newer sage has written, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: String,
    workflows: Vec<Entry>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Default for Document {
    fn default() -> Self {
        Self { version: VERSION.to_owned(), workflows: Vec::new(), other: Map::new() }
    }
}

/// A file that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub what: String,
    /// Where it was put; none if it was only read.
    pub set_aside: Option<PathBuf>,
}

/// Why the registry could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {op} `{}`: {source}", path.display())]
pub struct RegistryError {
    pub op: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// The entries now; with what was wrong if there are none for that reason. Takes no lock.
#[must_use]
pub fn read(state_dir: &Path) -> (Vec<Entry>, Option<Damage>) {
    match parse(&DiskFs::default(), &state_dir.join(FILE_NAME)) {
        Ok(document) => (document.workflows, None),
        Err(what) => (Vec::new(), Some(Damage { what, set_aside: None })),
    }
}

/// Changes the entries, one process at a time. Says if the old file had to be set aside.
pub fn update(
    state_dir: &Path,
    change: impl FnOnce(&mut Vec<Entry>),
) -> Result<Option<Damage>, RegistryError> {
    let vfs = DiskFs::default();
    let path = state_dir.join(FILE_NAME);
    let failed = |op, path: &Path| {
        let path = path.to_owned();
        move |source| RegistryError { op, path, source }
    };
    vfs.create_dir_all(state_dir).map_err(failed("create", state_dir))?;
    let lock_path = state_dir.join(LOCK_NAME);
    let _lock = lock_within(&lock_path, LOCK_TIMEOUT).map_err(failed("lock", &lock_path))?;
    let (mut document, damage) = match parse(&vfs, &path) {
        Ok(document) => (document, None),
        Err(what) => {
            let aside = vfs::with_suffix(&path, ".damaged");
            vfs.rename(&path, &aside).map_err(failed("set aside", &path))?;
            (Document::default(), Some(Damage { what, set_aside: Some(aside) }))
        }
    };
    let before = document.workflows.clone();
    change(&mut document.workflows);
    if document.workflows != before || damage.is_some() {
        write(&vfs, &path, &document).map_err(failed("write", &path))?;
    }
    Ok(damage)
}

fn write(vfs: &dyn Vfs, path: &Path, document: &Document) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    vfs::replace(vfs, path, &text)
}

/// The document at `path`; a missing one is empty. An error says what is wrong with it.
fn parse(vfs: &dyn Vfs, path: &Path) -> Result<Document, String> {
    let bytes = match vfs.read(path, MAX_REGISTRY_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
        Err(error) => return Err(error.to_string()),
    };
    let document: Document = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    match document.version.split_once('.') {
        Some(("1", _)) => Ok(document),
        _ => Err(format!("version `{}` is not known", document.version)),
    }
}

#[cfg(test)]
mod tests;
