//! The cache: results that later runs may take instead of making them again (R11).
//!
//! ```text
//! step's key + title + feature + agent by default + agent's fingerprint + declared files = cache key
//! .sage/cache/<cache key>.json     one result, with its age, its price and a checksum
//! .sage/cache/stats.json           how often there was one, over all runs
//! ```
//! What must stay true: nothing here can fail a run; an entry is whole and this user's, or is not used; many
//! processes may read, write and remove at once, because every change is one rename or one removal.

mod collect;
mod entry;
mod files;
mod stats;
mod store;
mod subject;
mod take;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use collect::Removed;
pub use entry::{Damage, Entry};
pub use stats::Counts;
pub use store::Found;
pub(crate) use subject::{Subject, Ticket};
pub(crate) use take::{Conditions, Hit, Looked};

use crate::vfs::Vfs;
use files::Memo;
use sage_core::seal::Key;

pub const DAY_MS: u64 = 86_400_000;
pub const DEFAULT_TTL_MS: u64 = 30 * DAY_MS;
pub const DEFAULT_MAX_BYTES: u64 = 100 << 20;
/// From so long before its end on, it is said that a result will be too old.
pub const EXPIRES_SOON_MS: u64 = 7 * DAY_MS;
/// Younger results are never given up for want of room.
pub const YOUNG_MS: u64 = DAY_MS;

#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// Of steps that say nothing else.
    pub ttl_ms: u64,
    /// All entries together.
    pub max_bytes: u64,
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig { ttl_ms: DEFAULT_TTL_MS, max_bytes: DEFAULT_MAX_BYTES }
    }
}

/// Why nothing can be kept or taken without a key.
const UNSEALED: &str = "results cannot be sealed: there is no user key";

/// A project's cache. Clones are the same.
#[derive(Clone, Debug)]
pub struct Cache {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// The user's: entries are sealed with it.
    key: Option<Key>,
    pub config: CacheConfig,
    /// Somebody sits there who can be asked whether a result that is too old will do.
    pub asks: bool,
    /// Files that this process has read already.
    memo: Arc<Memo>,
    /// When it is worth looking for room again.
    look_again_ms: Arc<AtomicU64>,
}

impl Cache {
    /// Touches nothing: the directory is made when it is needed.
    pub fn new(vfs: Arc<dyn Vfs>, dir: impl Into<PathBuf>, config: CacheConfig, key: Option<Key>) -> Cache {
        let (memo, look_again_ms) = (Arc::default(), Arc::default());
        Cache { vfs, dir: dir.into(), key, config, asks: false, memo, look_again_ms }
    }

    /// For many keys at one moment.
    pub(crate) fn of_a_moment(&self) -> Cache {
        Cache { memo: Arc::new(Memo::of_a_moment()), ..self.clone() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// As with all state: not through a link that others, or a clone, may have put there.
    fn is_strange(&self) -> bool {
        std::fs::symlink_metadata(&self.dir).is_ok_and(|meta| !meta.is_dir())
    }

    /// Whether results can be kept here; else why not.
    pub fn check(&self) -> Result<(), String> {
        let shown = self.dir.display();
        if self.key.is_none() {
            return Err(UNSEALED.into());
        }
        if self.is_strange() {
            return Err(format!("`{shown}` is not a directory"));
        }
        let probe = self.dir.join(format!(".probe-{}", ulid::Ulid::generate()));
        let made = self.vfs.create_dir_all(&self.dir).and_then(|()| self.vfs.create_new(&probe));
        match made.map(drop).and_then(|()| self.vfs.remove_file(&probe)) {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("cannot write in `{shown}`: {error}")),
        }
    }
}
