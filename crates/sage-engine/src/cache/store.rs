//! Entries on disk: read, written, used, listed, removed. Every write is one rename.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use sage_core::digest::Digest;

use super::{Cache, Damage, Entry, UNSEALED, YOUNG_MS};
use crate::blobs::MAX_BLOB_BYTES;
use crate::vfs;

/// Looking for room in vain is not done more often than this.
const LOOK_AGAIN_MS: u64 = 60_000;
const SUFFIX: &str = ".json";
/// So many times the size of the cache are read to list it: runs that end in the same moment may exceed it.
const LISTED: u64 = 4;

#[derive(Debug)]
pub enum Found {
    Nothing,
    Entry(Box<Entry>),
    /// It is there and cannot be used; the next result takes its place.
    Damaged(String),
    /// This user did not write it: it is as good as nothing, until a result of ours takes its place.
    Foreign,
}

impl Cache {
    pub(super) fn path(&self, key: &Digest) -> PathBuf {
        self.dir.join(format!("{key}{SUFFIX}"))
    }

    /// The entry of a key, however old. Nothing is changed by looking.
    pub fn find(&self, key: &Digest) -> Found {
        // Through a link it would be somebody else's.
        if self.is_strange() {
            return Found::Nothing;
        }
        // Nothing larger is ever kept.
        let damage = match self.vfs.read(&self.path(key), self.config.max_bytes.min(MAX_BLOB_BYTES)) {
            Ok(bytes) => match self.open(&bytes) {
                Ok(entry) if entry.key == *key => return Found::Entry(Box::new(entry)),
                Err(Damage::Foreign) => return Found::Foreign,
                Ok(_) => Damage::Misplaced.to_string(),
                Err(damage) => damage.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => error.to_string(),
        };
        Found::Damaged(damage)
    }

    fn open(&self, bytes: &[u8]) -> Result<Entry, Damage> {
        self.key.as_ref().map_or(Err(Damage::Foreign), |key| Entry::open(bytes, key))
    }

    pub fn put(&self, entry: &Entry) -> io::Result<()> {
        let key = self.key.as_ref().ok_or_else(|| io::Error::other(UNSEALED))?;
        let bytes = entry.seal(key).map_err(io::Error::other)?;
        if bytes.len() as u64 > self.config.max_bytes {
            return Err(io::Error::other("the result is larger than the cache"));
        }
        self.vfs.create_dir_all(&self.dir)?;
        vfs::write_atomic(self.vfs.as_ref(), &self.path(&entry.key), &bytes)
    }

    /// Notes that it was used. A note that is lost costs nothing but the order of removal.
    pub fn used(&self, key: &Digest, now_ms: u64) {
        // Read again: it may have been removed, or replaced by a newer one.
        if let Found::Entry(mut entry) = self.find(key) {
            entry.last_used_ms = entry.last_used_ms.max(now_ms);
            entry.uses = entry.uses.saturating_add(1);
            let _ = self.put(&entry);
        }
    }

    pub(super) fn keys(&self) -> Vec<Digest> {
        let names = if self.is_strange() { Vec::new() } else { self.vfs.list(&self.dir).unwrap_or_default() };
        names.iter().filter_map(|name| name.strip_suffix(SUFFIX)?.parse().ok()).collect()
    }

    /// Those of other users: they are never used.
    pub fn foreign(&self) -> Vec<Digest> {
        self.keys().into_iter().filter(|key| matches!(self.find(key), Found::Foreign)).collect()
    }

    /// All entries of this user that are whole, with the size of their files, those that were used last first. What
    /// is far beyond the size of the cache is not read.
    pub fn entries(&self) -> Vec<(Entry, u64)> {
        let mut left = self.config.max_bytes.saturating_mul(LISTED);
        let sized = |key: Digest| {
            let bytes = self.vfs.metadata(&self.path(&key)).ok()?.len;
            left = left.checked_sub(bytes)?;
            match self.find(&key) {
                Found::Entry(entry) => Some((*entry, bytes)),
                _ => None,
            }
        };
        let mut all: Vec<(Entry, u64)> = self.keys().into_iter().filter_map(sized).collect();
        all.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.last_used_ms));
        all
    }

    /// The newest result of this very step of a feature, whatever it was made from; `item` tells items of a
    /// fan-out apart.
    pub(crate) fn newest_of(
        &self,
        operation: &str,
        step: &str,
        feature: &str,
        item: Option<&String>,
    ) -> Option<Entry> {
        let same = |entry: &Entry| {
            (entry.operation.as_str(), entry.step.as_str(), entry.feature.as_str())
                == (operation, step, feature)
                && entry.parts.get("item") == item
        };
        let all = self.entries().into_iter().map(|(entry, _)| entry);
        all.filter(same).max_by_key(|entry| entry.created_ms)
    }

    /// Gives the bytes that became free; another process may have been faster.
    pub fn remove(&self, key: &Digest) -> Option<u64> {
        if self.is_strange() {
            return None;
        }
        let path = self.path(key);
        let bytes = self.vfs.metadata(&path).ok()?.len;
        self.vfs.remove_file(&path).ok().map(|()| bytes)
    }

    /// Room for what was just kept: the least recently used go, but none that is younger than a day.
    pub fn make_room(&self, now_ms: u64) {
        if now_ms < self.look_again_ms.load(Ordering::Relaxed) {
            return;
        }
        let size = |key: &Digest| self.vfs.metadata(&self.path(key)).map_or(0, |meta| meta.len);
        let mut total: u64 = self.keys().iter().map(size).sum();
        if total <= self.config.max_bytes {
            return;
        }
        for key in self.foreign() {
            total -= self.remove(&key).unwrap_or(0).min(total);
        }
        for (entry, bytes) in self.entries().into_iter().rev() {
            if total <= self.config.max_bytes {
                return;
            }
            if entry.age_ms(now_ms) >= YOUNG_MS && self.remove(&entry.key).is_some() {
                total -= bytes.min(total);
            }
        }
        if total > self.config.max_bytes {
            self.look_again_ms.store(now_ms + LOOK_AGAIN_MS, Ordering::Relaxed);
        }
    }
}
