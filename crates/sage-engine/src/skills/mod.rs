//! Skills on disk: where they lie, which one wins, who approved which content, how often each was reused.
//!
//! ```text
//! .sage/skills/<name>/SKILL.md        our own, with sage.json (version, origin, tags), result.json (what was
//!                                     found then), skill.ts (code) and .versions/<n>/ (what they were before)
//! .agents/skills, .claude/skills,     those of other tools: read, never written
//! and the user's own
//! .sage/state/skills.json             approvals and statistics of all: sealed, never from a clone
//! ```
//! What must stay true: an approval is of a content (its SHA-256); changed content has none. Writers take
//! turns by an OS lock; every file is written whole or not at all, `sage.json` last.

mod content;
mod discover;
mod index;
mod kept;
mod save;
#[cfg(test)]
mod tests;
mod usage;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::seal::Key;

use crate::clock::Clock;
use crate::lock::lock_within;
use crate::project::{Project, ProjectError};
use crate::vfs::Vfs;

pub use content::{Content, Entry as ContentEntry, Looked, PlacedFinding};
pub use discover::{Discovered, KnownResult, MAX_KNOWN_BYTES, Offer, discover, offer};
pub use index::{Index, Listed, Place, Problem};
pub use kept::{Meta, Origin, RESULT_FILE, SCRIPT_FILE};
pub use save::{Draft, Saved};
pub use usage::{Approval, Reuse, RunUse, Times};

/// An update takes milliseconds; who waits longer waits for a stopped process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("no skill `{name}`")]
    Unknown { name: String, near: Option<String> },
    #[error("`{0}` cannot be a skill's name: 1 to 64 small letters a-z, digits and -, no - at its ends")]
    Name(String),
    #[error("the skill `{name}` has changed since it was shown; nothing was approved")]
    Changed { name: String },
    #[error("`{}` {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error("`{}` cannot be read ({why}), so nothing was written to it", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("the approval cannot be sealed: there is no user key")]
    NoKey,
    #[error("{0}")]
    Project(#[from] ProjectError),
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
}

#[derive(Clone, Debug)]
pub struct Store {
    project: Project,
    places: Vec<Place>,
    vfs: Arc<dyn Vfs>,
    clock: Clock,
    /// The user's: approvals are sealed with it, and those of others are none.
    key: Option<Key>,
}

impl Store {
    pub fn new(
        project: &Project,
        places: Vec<Place>,
        vfs: Arc<dyn Vfs>,
        clock: Clock,
        user: Option<&Key>,
    ) -> Store {
        let store = Store { project: project.clone(), places, vfs, clock, key: None };
        user.map(|key| store.sealed_with(key)).unwrap_or(store)
    }

    /// The same skills, with the user's key.
    #[must_use]
    pub fn sealed_with(&self, user: &Key) -> Store {
        Store { key: Some(user.scoped("skills", "")), ..self.clone() }
    }

    /// Where our own are.
    fn own(&self) -> PathBuf {
        self.project.dir.join("skills")
    }

    fn state_path(&self) -> PathBuf {
        self.project.state().join("skills.json")
    }

    /// Sets the project up where it is not; the lock is held until the result is dropped.
    fn lock(&self) -> Result<std::fs::File, SkillError> {
        self.project.prepare(self.vfs.as_ref())?;
        let path = self.project.state().join("skills.lock");
        lock_within(&path, LOCK_TIMEOUT).map_err(|source| io_error("lock", &path, source))
    }
}

fn io_error(op: &'static str, path: &Path, source: io::Error) -> SkillError {
    SkillError::Io { op, path: path.to_owned(), source }
}

fn pretty(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}
