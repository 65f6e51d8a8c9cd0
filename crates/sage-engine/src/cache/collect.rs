//! Giving up entries: by age, by size, by name. Used by `sage cache clear` and by whoever cleans up a project.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Cache, CacheConfig, Entry, YOUNG_MS};
use crate::clock::Clock;
use crate::vfs::DiskFs;

/// Left by a process that died while it wrote: nobody writes for so long.
const LEFT_BEHIND: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub count: u64,
    pub bytes: u64,
}

/// Removes what is older than `older_than`, then, least recently used first, what is too much for `max_bytes`
/// (but nothing younger than a day). Damaged entries and leftovers of dead writers go, too.
pub fn collect(dir: &Path, older_than: Option<Duration>, max_bytes: Option<u64>) -> Removed {
    let cache = Cache::new(DiskFs::new(), dir, CacheConfig::default());
    let now = Clock::System.now_ms();
    let before = cache.size();
    if let Some(older_than) = older_than {
        let limit = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        cache.clear(|entry| entry.age_ms(now) >= limit);
    }
    let most = max_bytes.unwrap_or(u64::MAX);
    let mut total = cache.size().bytes;
    // Reading them all removes the damaged ones.
    for (entry, bytes) in cache.entries().into_iter().rev() {
        if total > most && entry.age_ms(now) >= YOUNG_MS && cache.remove(&entry.key).is_some() {
            total -= bytes.min(total);
        }
    }
    cache.sweep();
    let after = cache.size();
    Removed {
        count: before.count.saturating_sub(after.count),
        bytes: before.bytes.saturating_sub(after.bytes),
    }
}

impl Cache {
    /// How much is kept.
    pub fn size(&self) -> Removed {
        let mut size = Removed::default();
        for name in self.vfs.list(&self.dir).unwrap_or_default() {
            if name.ends_with(".json") && name != "stats.json" {
                size.count += 1;
                size.bytes += self.vfs.metadata(&self.dir.join(name)).map_or(0, |meta| meta.len);
            }
        }
        size
    }

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

    fn sweep(&self) {
        for name in self.vfs.list(&self.dir).unwrap_or_default().into_iter().filter(|n| n.ends_with(".tmp")) {
            let path = self.dir.join(name);
            let written = self.vfs.metadata(&path).ok().and_then(|meta| meta.modified);
            let idle = written.and_then(|at| SystemTime::now().duration_since(at).ok());
            if idle.is_some_and(|idle| idle >= LEFT_BEHIND) {
                let _ = self.vfs.remove_file(&path);
            }
        }
    }
}
