//! Runs that are over: which may go, and how one goes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;

use super::{Category, Gc, Item, tree_bytes};
use crate::checkpoint;
use crate::lock::{self, lock_within, wait_gone};
use crate::registry;
use crate::run_loop::CommitMode;
use crate::{journal, vfs};

/// The runs of a project, oldest first: their ids sort by time.
#[derive(Debug)]
struct Listed {
    ids: Vec<String>,
    /// The feature of each; `None` if its journal does not say.
    features: BTreeMap<String, String>,
    newest: BTreeMap<String, String>,
    /// How many runs of each feature are left.
    left: BTreeMap<String, usize>,
}

/// A run that may go.
#[derive(Debug)]
struct Over {
    id: String,
    feature: Option<String>,
    newest: bool,
    /// The journal's length when it was judged.
    journal_bytes: u64,
    ended_ms: Option<u64>,
}

/// Why one stays; empty if that is no news.
type Why = String;

impl Gc<'_> {
    pub(super) fn sweep_runs(&mut self) {
        let runs = self.engine.project.runs();
        let mut ids = self.names(&runs);
        ids.retain(|id| id.starts_with("run_"));
        ids.sort_unstable();
        let old: Vec<bool> = ids.iter().map(|id| self.looks_old(id)).collect();
        // The usual case, and the only one that happens every day: nothing to fold, nothing to measure.
        if !old.contains(&true) && self.policy.max_bytes.is_none() {
            return self.sweep_checkpoints();
        }
        let mut listed = self.listed(ids);
        let by_age = listed.ids.len().saturating_sub(self.policy.keep);
        let aged: Vec<String> = listed
            .ids
            .iter()
            .zip(&old)
            .take(by_age)
            .filter(|(_, old)| **old)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &aged {
            if let Err(why) = self.consider(&mut listed, id, true)
                && !why.is_empty()
            {
                self.report.kept(Category::Runs, id.clone(), why);
            }
        }
        if let Some(max) = self.policy.max_bytes {
            self.shrink(&mut listed, max);
        }
        self.sweep_checkpoints();
    }

    /// The journal's file is as old as its last event, or younger: a cheap look that errs on the safe side.
    fn looks_old(&self, id: &str) -> bool {
        let dir = self.engine.project.run_dir(id);
        let changed = self.modified_ms(&dir.join(journal::FILE_NAME)).or_else(|| self.modified_ms(&dir));
        changed.is_none_or(|at| self.is_old(at))
    }

    fn listed(&self, ids: Vec<String>) -> Listed {
        let (mut features, mut newest, mut left) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for id in &ids {
            if let Some(feature) = self.engine.feature_of(id) {
                features.insert(id.clone(), feature.clone());
                newest.insert(feature.clone(), id.clone());
                *left.entry(feature).or_insert(0) += 1;
            }
        }
        Listed { ids, features, newest, left }
    }

    /// The oldest go first, until what is left fits.
    fn shrink(&mut self, listed: &mut Listed, max_bytes: u64) {
        let ids: Vec<String> = listed.ids.iter().filter(|id| !self.gone.contains(*id)).cloned().collect();
        let sizes: Vec<u64> =
            ids.iter().map(|id| tree_bytes(self.vfs(), &self.engine.project.run_dir(id))).collect();
        let mut total: u64 = sizes.iter().sum();
        for (id, bytes) in ids.iter().zip(sizes) {
            if total <= max_bytes {
                return;
            }
            match self.consider(listed, id, false) {
                Ok(()) => total = total.saturating_sub(bytes),
                Err(why) => {
                    let told = self.report.kept.iter().any(|stays| stays.name == *id);
                    if !told {
                        self.report.kept(Category::Runs, id.clone(), why);
                    }
                }
            }
        }
    }

    fn consider(&mut self, listed: &mut Listed, id: &str, by_age: bool) -> Result<(), Why> {
        let over = self.judge(listed, id, by_age)?;
        let bytes = tree_bytes(self.vfs(), &self.engine.project.run_dir(id));
        if !self.policy.dry_run {
            let trash = self.remove(&over).map_err(|error| match error {
                Refused::Stays(why) => why,
                Refused::Io(error) => format!("it cannot be removed: {error}"),
            })?;
            if let Err(error) = self.vfs().remove_dir_all(&trash) {
                let name = self.shown(&trash);
                self.report.failed(Category::Runs, name, error);
            }
        }
        if let Some(left) = over.feature.as_ref().and_then(|feature| listed.left.get_mut(feature)) {
            *left = left.saturating_sub(1);
        }
        self.gone.insert(id.into());
        let age_ms = over.ended_ms.map(|at| self.now_ms.saturating_sub(at));
        self.report.removed(Item {
            category: Category::Runs,
            name: id.into(),
            bytes,
            age_ms,
            feature: over.feature,
        });
        Ok(())
    }

    fn judge(&self, listed: &Listed, id: &str, by_age: bool) -> Result<Over, Why> {
        let feature = listed.features.get(id).cloned();
        let newest =
            feature.as_ref().is_some_and(|feature| listed.newest.get(feature) == Some(&id.to_string()));
        let journal_bytes = self.engine.journal_bytes(id);
        let over =
            |ended_ms| Over { id: id.into(), feature: feature.clone(), newest, journal_bytes, ended_ms };
        let Some(run) = self.engine.read_run(id) else {
            return self.judge_unreadable(id).map(|()| over(None));
        };
        self.refuse_live(&run, newest, by_age)?;
        let others = feature
            .as_ref()
            .and_then(|feature| listed.left.get(feature))
            .copied()
            .unwrap_or(1)
            .saturating_sub(1);
        let lock = feature.as_ref().map(|feature| self.engine.project.lock(feature));
        if newest && lock.is_some_and(|lock| lock::peek(&lock).is_some()) {
            return Err("somebody has its feature".into());
        }
        if newest && others > 0 {
            return Err("an older run of its feature stays, and would be its newest then".into());
        }
        Ok(over(Some(run.updated_ms)))
    }

    fn refuse_live(&self, run: &Run, newest: bool, by_age: bool) -> Result<(), Why> {
        if run.status.open() {
            return Err(format!("it is {}", run.status.name()));
        }
        // Its file's time said otherwise; nobody needs to be told.
        if by_age && !self.is_old(run.updated_ms) {
            return Err(Why::new());
        }
        let resumable =
            matches!(run.status, Status::Finished(Verdict::Failed) | Status::Cancelled { resumable: true });
        if newest && resumable && !self.is_old(run.updated_ms) {
            return Err(format!("it is {} and can be resumed", run.status.name()));
        }
        Ok(())
    }

    /// No journal that could be read: what is in it is for `sage verify`, unless there never was anything.
    fn judge_unreadable(&self, id: &str) -> Result<(), Why> {
        let dir = self.engine.project.run_dir(id);
        let empty = self.vfs().list(&dir).is_ok_and(|names| names.is_empty());
        match (empty && self.is_abandoned(&dir)) || self.policy.force {
            true => Ok(()),
            false => Err("it cannot be read (sage verify); --force removes it".into()),
        }
    }

    /// Gives the place where its files are now.
    fn remove(&self, over: &Over) -> Result<PathBuf, Refused> {
        let project = &self.engine.project;
        let dir = project.run_dir(&over.id);
        // Nobody opens a run that is not its feature's newest.
        let lock = match (&over.feature, over.newest) {
            (Some(feature), true) => Some((feature, self.take(feature)?)),
            _ => None,
        };
        let changed = self.engine.journal_bytes(&over.id) != over.journal_bytes;
        let replaced = lock
            .as_ref()
            .is_some_and(|(feature, _)| self.engine.latest(feature).is_some_and(|latest| latest != over.id));
        if changed || replaced {
            return Err(Refused::Stays("somebody has just used it".into()));
        }
        let real = self.engine.commit == CommitMode::Thread;
        if real && wait_gone(&dir.join("children.lock"), Duration::ZERO).is_err() {
            return Err(Refused::Stays("a process of it is still alive".into()));
        }
        if let Some(feature) = &over.feature {
            self.forget_checkpoint(feature, over)?;
        }
        let trash = self.throw_away(&dir)?;
        if let Some((feature, _held)) = &lock {
            self.forget_feature(feature, &over.id);
        }
        Ok(trash)
    }

    fn take(&self, feature: &str) -> Result<File, Refused> {
        let path = self.engine.project.lock(feature);
        lock_within(&path, Duration::ZERO).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Refused::Stays("somebody has its feature".into()),
            _ => Refused::Io(error),
        })
    }

    /// Before the journal: a checkpoint without one would look like damage. The other way round it is a run
    /// like any other.
    fn forget_checkpoint(&self, feature: &str, over: &Over) -> io::Result<()> {
        let path = self.engine.project.checkpoint(feature);
        let named = checkpoint::load(self.vfs(), &path).ok();
        let named = named.as_ref().and_then(|loaded| loaded.doc.get("runId")?.as_str());
        // One that cannot be read belongs to the feature's newest run, if to any.
        let own = named.map_or(over.newest, |named| named == over.id);
        if own { self.remove_checkpoint(&path) } else { Ok(()) }
    }

    fn remove_checkpoint(&self, path: &std::path::Path) -> io::Result<()> {
        for path in [checkpoint::backup_path(path), path.to_owned()] {
            match self.vfs().remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.vfs().sync_dir(vfs::parent(path))
    }

    /// What only reminds of it. With its lock in hand: whoever opened the lock's file before looks again.
    fn forget_feature(&self, feature: &str, id: &str) {
        if self.engine.commit == CommitMode::Inline {
            return;
        }
        let state = self.engine.project.state();
        let _ = self.engine.records().remove(feature);
        if registry::read(&state).0.iter().any(|entry| entry.run_id == id) {
            let _ = registry::update(&state, |entries| entries.retain(|entry| entry.run_id != id));
        }
        let _ = self.vfs().remove_file(&self.engine.project.lock(feature));
    }

    /// Checkpoints whose run is gone: of a run that was over, they go with their age. An open one may be all
    /// that is left of its work.
    fn sweep_checkpoints(&mut self) {
        let state = self.engine.project.state();
        for name in self.names(&state) {
            let feature = name.strip_prefix("workflow-").and_then(|name| name.strip_suffix(".json"));
            let Some(feature) = feature else { continue };
            let path = state.join(&name);
            let old = self.modified_ms(&path).is_some_and(|at| self.is_old(at));
            if !old || self.engine.latest(feature).is_none_or(|run| self.has_run(&run)) {
                continue;
            }
            let Ok(loaded) = checkpoint::load(self.vfs(), &path) else { continue };
            let status = loaded.doc.get("status").and_then(serde_json::Value::as_str);
            if !matches!(status, Some("completed" | "failed" | "cancelled")) {
                continue;
            }
            let bytes = self.vfs().metadata(&path).map_or(0, |meta| meta.len);
            let removed = if self.policy.dry_run { Ok(()) } else { self.drop_checkpoint(feature, &path) };
            let item = Item {
                category: Category::Leftovers,
                name: self.shown(&path),
                bytes,
                age_ms: None,
                feature: Some(feature.into()),
            };
            match removed {
                Ok(()) => self.report.removed(item),
                Err(Refused::Stays(why)) => self.report.kept(Category::Leftovers, item.name, why),
                Err(Refused::Io(error)) => self.report.failed(Category::Leftovers, item.name, error),
            }
        }
    }

    fn drop_checkpoint(&self, feature: &str, path: &std::path::Path) -> Result<(), Refused> {
        let _held = self.take(feature)?;
        self.remove_checkpoint(path)?;
        Ok(())
    }

    fn has_run(&self, run: &str) -> bool {
        self.vfs().exists(&self.engine.project.run_dir(run)).unwrap_or(true)
    }
}

#[derive(Debug)]
enum Refused {
    Stays(Why),
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}
