//! Files that only their age decides about: logs, dead letters, handoffs that are over, cached results, and what
//! crashes left behind.

use std::time::Duration;

use super::{Category, Gc, Item, since_epoch_ms};
use crate::cache::{Cache, CacheConfig};
use crate::lock::{self, lock_within};
use crate::vfs;

impl Gc<'_> {
    /// Not where somebody may be writing.
    pub(super) fn sweep_logs(&mut self) {
        let dir = self.engine.project.logs();
        let watched = lock::peek(&self.engine.project.supervisor()).is_some();
        for name in self.names(&dir) {
            let Some(of) = name.strip_suffix(".log").or_else(|| name.strip_suffix(".log.1")) else {
                continue;
            };
            let busy = match of {
                "supervisor" => watched,
                feature => {
                    let owned = lock::peek(&self.engine.project.lock(feature)).is_some();
                    owned || self.engine.records().get(feature).is_some()
                }
            };
            let path = dir.join(&name);
            if !busy && self.modified_ms(&path).is_some_and(|at| self.is_old(at)) {
                self.remove_file(Category::Logs, &path);
            }
        }
    }

    /// Dead letters, by the time of their death; what is handled is already gone, and its ledger is short.
    pub(super) fn sweep_inbox(&mut self) {
        const REASON: &str = ".reason";
        let inbox = self.engine.project.inbox();
        let dead = inbox.join("dead");
        for name in self.names(&dead) {
            let letter = dead.join(name.strip_suffix(REASON).unwrap_or(&name));
            let reason = vfs::with_suffix(&letter, REASON);
            let died_ms = self.modified_ms(&letter).max(self.modified_ms(&reason));
            if died_ms.is_some_and(|at| self.is_old(at)) {
                // The letter before its reason: a letter without one would be a riddle.
                self.remove_file(Category::Inbox, &letter);
                self.remove_file(Category::Inbox, &reason);
            }
        }
        let tmp = inbox.join("tmp");
        for name in self.names(&tmp) {
            let path = tmp.join(name);
            if self.is_abandoned(&path) {
                self.remove_file(Category::Inbox, &path);
            }
        }
    }

    /// Chains that have come to their end.
    pub(super) fn sweep_handoffs(&mut self) {
        let engine = self.engine;
        let store = crate::handoff::Store::new(&engine.project, engine.vfs.clone(), engine.clock.clone());
        let forgotten = store.forget(|ended_ms| self.is_old(ended_ms), self.policy.dry_run);
        match forgotten {
            Ok(files) => {
                for (name, bytes, ended_ms) in files {
                    let age_ms = Some(self.now_ms.saturating_sub(ended_ms));
                    let item = Item { category: Category::Handoffs, name, bytes, age_ms, feature: None };
                    self.report.removed(item);
                }
            }
            Err(error) => self.report.failed(Category::Handoffs, "handoffs", error),
        }
    }

    /// Results that no run has used for so long.
    pub(super) fn sweep_cache(&mut self) {
        let cache = Cache::new(
            self.engine.vfs.clone(),
            self.engine.project.cache(),
            CacheConfig::default(),
            self.engine.key.clone(),
        );
        for path in cache.unused(|at| since_epoch_ms(at).is_some_and(|at| self.is_old(at))) {
            self.remove_file(Category::Cache, &path);
        }
    }

    /// Files of writers that died, and locks of features that are gone.
    pub(super) fn sweep_leftovers(&mut self) {
        let project = &self.engine.project;
        let state = project.state();
        let mut dirs = vec![state.clone(), project.dir.join("tickets")];
        for run in self.names(&project.runs()) {
            dirs.push(project.run_dir(&run));
            dirs.push(project.run_dir(&run).join("blobs"));
        }
        for dir in dirs {
            for name in self.names(&dir) {
                let ours =
                    name.ends_with(".tmp") || name.starts_with(".probe-") || name.starts_with(".usage.json-");
                let path = dir.join(&name);
                if ours && self.is_abandoned(&path) {
                    self.remove_file(Category::Leftovers, &path);
                }
            }
        }
        self.sweep_locks(&state);
    }

    fn sweep_locks(&mut self, state: &std::path::Path) {
        for name in self.names(state) {
            let feature = name.strip_prefix("workflow-").and_then(|name| name.strip_suffix(".lock"));
            let Some(feature) = feature.filter(|feature| self.engine.latest(feature).is_none()) else {
                continue;
            };
            let path = self.engine.project.lock(feature);
            if !self.is_abandoned(&path) {
                continue;
            }
            // Whoever starts the feature right now has it.
            if let Ok(_held) = lock_within(&path, Duration::ZERO)
                && self.engine.latest(feature).is_none()
            {
                self.remove_file(Category::Leftovers, &path);
            }
        }
    }
}
