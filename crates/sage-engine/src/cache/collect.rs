//! Giving up entries: by name and age (`sage cache clear`), and what nobody has used for long (`sage gc`).

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Cache, Entry};

/// Left by a process that died while it wrote: nobody writes for so long.
const LEFT_BEHIND: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub count: u64,
    pub bytes: u64,
}

impl Cache {
    /// Removes all entries that `wanted` takes.
    pub fn clear(&self, wanted: impl Fn(&Entry) -> bool) -> Removed {
        let mut removed = Removed::default();
        for (entry, _) in self.entries() {
            if wanted(&entry)
                && let Some(bytes) = self.remove(&entry.key)
            {
                removed.count += 1;
                removed.bytes += bytes;
            }
        }
        removed
    }

    /// Files that may go: entries of which `old` says so by the time of their last use, and leftovers of dead
    /// writers. Nothing is read and nothing is removed. A use writes the entry anew: its file's time tells it.
    pub fn unused(&self, old: impl Fn(SystemTime) -> bool) -> Vec<PathBuf> {
        // Through a link they would be somebody else's.
        if self.is_strange() {
            return Vec::new();
        }
        let now = SystemTime::now();
        let dead = |at: SystemTime| now.duration_since(at).is_ok_and(|idle| idle >= LEFT_BEHIND);
        let written = |path: &PathBuf| self.vfs.metadata(path).ok().and_then(|meta| meta.modified);
        let entries = self.keys().into_iter().map(|key| self.path(&key));
        let entries = entries.filter(|path| written(path).is_some_and(&old));
        let names = self.vfs.list(&self.dir).unwrap_or_default().into_iter();
        let left = names.filter(|name| name.ends_with(".tmp")).map(|name| self.dir.join(name));
        entries.chain(left.filter(|path| written(path).is_some_and(dead))).collect()
    }
}
