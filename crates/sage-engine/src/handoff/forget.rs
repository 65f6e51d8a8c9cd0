//! Forgetting chains that have come to their end, and with them their handoffs.

use sage_core::handoff::{Index, Status};

use super::{HandoffError, Store, io_error};

impl Store {
    /// Removes the handoffs of every ended chain of which `old` says so by the time of its last change. Gives
    /// their files, bytes and that time; nothing is removed in a dry run.
    ///
    /// The chain's own file goes first and its handoffs in their order: whatever is left by a crash still is a
    /// chain at its end, and the views are made anew from it.
    pub fn forget(
        &self,
        old: impl Fn(u64) -> bool,
        dry_run: bool,
    ) -> Result<Vec<(String, u64, u64)>, HandoffError> {
        let mut forgotten = Vec::new();
        if !self.has_any()? {
            return Ok(forgotten);
        }
        let _lock = if dry_run { None } else { Some(self.lock()?) };
        let scanned = self.scan()?;
        let index = Index::of(&scanned.handoffs);
        for chain in index.chains().iter().filter(|chain| chain.archived) {
            let times = chain.handoffs.iter().flat_map(|entry| entry.times_ms());
            let last = times.map(|(_, at): (Status, u64)| at).max();
            let Some(ended_ms) = last.filter(|at| old(*at)) else { continue };
            if !dry_run {
                self.remove_view(chain)?;
            }
            for entry in &chain.handoffs {
                let path = self.dir.join(&entry.file);
                let bytes = self.vfs.metadata(&path).map_or(0, |meta| meta.len);
                if !dry_run {
                    self.vfs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
                }
                forgotten.push((format!("handoffs/{}", entry.file), bytes, ended_ms));
            }
        }
        if !dry_run && !forgotten.is_empty() {
            self.write_views(&Index::of(&self.scan()?.handoffs), None)?;
        }
        Ok(forgotten)
    }
}
