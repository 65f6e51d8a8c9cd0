//! What is known about a lease, for people and for whoever resumes: `worktrees/<run>/<step>.json`.
//!
//! It is written before anything is made, so that half-made things can be told from those of others. It is sealed:
//! a record that this user did not write decides about nothing.

use std::io;
use std::path::{Path, PathBuf};

use sage_core::seal::{self, Key};
use sage_fence::private;
use serde::{Deserialize, Serialize};

use super::guard::Stashed;

/// A record with thousands of stashes is smaller.
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// The worktree is being made or removed: there is nothing of a step in it.
    Creating,
    /// A step works in it, or was stopped in the middle.
    Active,
    /// The last attempt succeeded, all of its work is on the branch.
    Committed,
    /// The last attempt failed; its work is in the worktree.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub branch: String,
    /// The commit that the branch began at.
    pub base: String,
    pub path: PathBuf,
    /// Where the branch stood after the last attempt.
    pub commit: Option<String>,
    pub step: String,
    pub run: String,
    pub feature: String,
    pub state: LeaseState,
    /// The user's stash when the last attempt began: what is missing from it later is brought back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stash: Vec<Stashed>,
}

/// What stands in the file of a lease.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// It cannot be read, or this user did not write it.
    Damaged,
    Record(Box<Record>),
}

impl Record {
    pub fn read(file: &Path, key: Option<&Key>) -> io::Result<Found> {
        use io::ErrorKind::{FileTooLarge, InvalidData, InvalidInput, NotFound};
        let text = match private::read_text(file, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == NotFound => return Ok(Found::Nothing),
            Err(error) if matches!(error.kind(), FileTooLarge | InvalidData | InvalidInput) => {
                return Ok(Found::Damaged);
            }
            Err(error) => return Err(error),
        };
        // Without a key it says only what its own run finds again; nothing is removed by it.
        let sealed = key.is_none() || seal::is_sealed(&text, scoped(file, key).as_ref());
        let record = serde_json::from_str(&text).ok().filter(|_| sealed);
        Ok(record.map_or(Found::Damaged, |record| Found::Record(Box::new(record))))
    }

    /// Whole or not at all, also if the power fails.
    pub fn write(&self, file: &Path, key: Option<&Key>) -> io::Result<()> {
        let text = seal::document_text(self, scoped(file, key).as_ref()).map_err(io::Error::other)?;
        private::write_durable(file, text.as_bytes())
    }
}

/// The key for one file of one run.
fn scoped(file: &Path, key: Option<&Key>) -> Option<Key> {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Some(key?.scoped("worktree", &format!("{}/{}", name(file.parent()), name(Some(file)))))
}

/// The folder of a run's leases, closed to others, and invisible to the user's git whatever it ignores.
pub fn prepare(worktrees: &Path, run: &str) -> io::Result<PathBuf> {
    let dir = worktrees.join(run);
    private::create_dir_all(&dir)?;
    let ignore = worktrees.join(".gitignore");
    if !ignore.exists() {
        private::write(&ignore, b"*\n")?;
    }
    dir.canonicalize()
}

/// All leases below a `worktrees` folder, by run and step.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    pub found: Vec<Record>,
    /// Records that cannot be read; their worktrees are untouched.
    pub damaged: Vec<PathBuf>,
}

/// Reads the leases of all runs, for the clean-up: without a key none is known to be ours. A folder that is not there
/// has none.
pub fn list(worktrees: &Path, key: Option<&Key>) -> io::Result<Leases> {
    let mut leases = Leases::default();
    for run in entries(worktrees)?.into_iter().filter(|path| is_own_dir(path)) {
        leases.add(&run, key)?;
    }
    if key.is_none() {
        let file = |record: Record| PathBuf::from(format!("{}.json", record.path.display()));
        leases.damaged.extend(std::mem::take(&mut leases.found).into_iter().map(file));
    }
    Ok(leases.sorted())
}

/// Those of one run.
pub fn list_of(worktrees: &Path, run: &str, key: Option<&Key>) -> io::Result<Leases> {
    let mut leases = Leases::default();
    if is_own_dir(&worktrees.join(run)) {
        leases.add(&worktrees.join(run), key)?;
    }
    Ok(leases.sorted())
}

impl Leases {
    fn add(&mut self, run_dir: &Path, key: Option<&Key>) -> io::Result<()> {
        let is_record = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
        for file in entries(run_dir)?.into_iter().filter(is_record) {
            match Record::read(&file, key)? {
                Found::Record(record) => self.found.push(*record),
                Found::Damaged => self.damaged.push(file),
                Found::Nothing => {}
            }
        }
        Ok(())
    }

    fn sorted(mut self) -> Leases {
        self.found.sort_by(|a, b| (&a.run, &a.step).cmp(&(&b.run, &b.step)));
        self.damaged.sort();
        self
    }
}

/// A directory and not a link to one.
pub fn is_own_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

pub fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match private::list(dir) {
        Ok(entries) => Ok(entries.into_iter().map(|entry| dir.join(entry.name)).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
