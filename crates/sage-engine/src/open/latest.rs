//! Which run a feature's name means: its newest.
//!
//! ```text
//! runs/<id>  its first record names the feature -+
//! checkpoint, registry, background record -------+-> newest first: ours, or named by our checkpoint -> this one
//! ```
//! What must stay true: a run that cannot be read for the moment is an error, not a run that does not exist: taken for
//! none, its work would be done again. A directory that only looks like a run (a copy that somebody made of one) is none.

use std::io;

use sage_core::policy::SystemError;

use super::find::text;
use super::{Engine, OpenError};
use crate::checkpoint::Loaded;
use crate::journal::{self, First, Origin};
use crate::registry;

const RUN_PREFIX: &str = "run_";

impl Engine {
    /// The newest run of a feature. The checkpoint names it; a run that died before its first checkpoint is
    /// found by its journal. One that this user wrote comes before all others, whatever their ids say.
    pub fn find_latest(&self, feature: &str) -> Result<Option<String>, OpenError> {
        let loaded = self.load_checkpoint(feature)?;
        let named = loaded.and_then(|loaded| self.named(feature, &loaded));
        // Ids sort in the order of runs: no run before one of ours can be newer, so their journals stay closed.
        let ours = named.clone().filter(|run| matches!(self.origin(run), Ok(Origin::Own)));
        let mut runs = Vec::new();
        for run in self.run_ids()?.into_iter().filter(|run| ours.as_ref().is_none_or(|ours| run >= ours)) {
            if named.as_ref() == Some(&run) || self.is_of(&run, feature)? {
                runs.push(run);
            }
        }
        self.newest(feature, named, runs)
    }

    /// The run that a checkpoint names. One that is not ours may name the run of another feature: that is none of it.
    pub(super) fn named(&self, feature: &str, loaded: &Loaded) -> Option<String> {
        let run = text(&loaded.doc, "runId")?;
        let of_feature = || self.feature_of(&run).is_none_or(|own| own == feature);
        (loaded.is_sealed(self.key.as_ref(), feature) || of_feature()).then_some(run)
    }

    /// As [`Engine::find_latest`], for those who only look: what cannot be read is not there.
    pub fn latest(&self, feature: &str) -> Option<String> {
        self.find_latest(feature).ok().flatten()
    }

    /// The run that a command is about, or why there is none.
    pub(super) fn last_run(&self, feature: &str) -> Result<String, OpenError> {
        self.find_latest(feature)?.ok_or_else(|| self.unknown(feature))
    }

    /// `named` is the run of the checkpoint, `runs` are those of the feature.
    pub(crate) fn newest(
        &self,
        feature: &str,
        named: Option<String>,
        mut runs: Vec<String>,
    ) -> Result<Option<String>, OpenError> {
        let named = named.filter(|run| is_run_id(run));
        // Its directory may be gone: then the checkpoint is what is left of it.
        runs.extend(named.clone().filter(|named| !runs.contains(named)));
        runs.sort_unstable();
        let mut foreign = None;
        for run in runs.into_iter().rev() {
            let is_own = match self.origin(&run) {
                Ok(Origin::Own) => true,
                Err(source) if is_passing(&source) => return Err(self.unreadable(&run, source)),
                Ok(_) | Err(_) => {
                    (named.as_ref() == Some(&run) && self.vouches(feature, &run))
                        || self.is_active(feature, &run)
                }
            };
            if is_own {
                return Ok(Some(run));
            }
            foreign.get_or_insert(run);
        }
        Ok(foreign)
    }

    fn is_of(&self, run: &str, feature: &str) -> Result<bool, OpenError> {
        match self.first_of(run) {
            Ok(first) => Ok(first.is_some_and(|first| first.feature == feature)),
            Err(source) if is_passing(&source) => Err(self.unreadable(run, source)),
            Err(_) => Ok(self.is_active(feature, run)),
        }
    }

    pub(super) fn origin(&self, run: &str) -> io::Result<Origin> {
        journal::origin(self.vfs.as_ref(), &self.project.run_dir(run), &self.sealing(run))
    }

    /// The journal is there and cannot be read, and the lists of open runs say that it is the feature's.
    fn is_active(&self, feature: &str, run: &str) -> bool {
        self.origin(run).is_err() && self.listed(feature).as_deref() == Some(run)
    }

    /// The run that the registry, or a record of the background, names.
    pub(super) fn listed(&self, feature: &str) -> Option<String> {
        let entry =
            registry::read(&self.project.state()).0.into_iter().find(|entry| entry.feature == feature);
        entry.map(|entry| entry.run_id).or_else(|| Some(self.records().get(feature)?.run))
    }

    fn unreadable(&self, run: &str, source: io::Error) -> OpenError {
        OpenError::Unreadable { path: self.project.run_dir(run).join(journal::FILE_NAME), source }
    }

    /// Names of runs, oldest first. What lies beside them under another name is nobody's run.
    pub fn run_ids(&self) -> Result<Vec<String>, OpenError> {
        let path = self.project.runs();
        let mut runs = match self.vfs.list(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|source| OpenError::Unreadable { path, source })?,
        };
        runs.retain(|run| is_run_id(run));
        runs.sort_unstable();
        Ok(runs)
    }

    /// What the first record of a run says, unless it is that of another run: then it is a copy.
    pub(super) fn first_of(&self, run: &str) -> io::Result<Option<First>> {
        let first = journal::first(self.vfs.as_ref(), &self.project.run_dir(run))?;
        Ok(first.filter(|first| first.run == run))
    }

    /// The feature that a run's first record names.
    pub fn feature_of(&self, run: &str) -> Option<String> {
        self.first_of(run).ok().flatten().map(|first| first.feature)
    }

    /// The id of a new run. It sorts after those of all runs so far, whatever the clock says: the order of ids is the
    /// order of runs, also when the clock was set back between two of them.
    pub(super) fn new_run_id(&self, feature: &str) -> Result<String, OpenError> {
        let listed = self.run_ids()?;
        let named = self.load_checkpoint(feature)?.and_then(|loaded| text(&loaded.doc, "runId"));
        let newest = listed.iter().chain(&named).filter_map(|run| run_time_ms(run)).max();
        let ms = self.clock.now_ms().max(newest.map_or(0, |newest| newest + 1));
        let random = ulid::Ulid::generate().random();
        Ok(format!("{RUN_PREFIX}{}", ulid::Ulid::from_parts(ms, random)))
    }
}

/// The machine lacks something for the moment: that says nothing about the file.
pub(super) fn is_passing(error: &io::Error) -> bool {
    error.raw_os_error().and_then(SystemError::of) == Some(SystemError::Resources)
}

fn is_run_id(name: &str) -> bool {
    run_time_ms(name).is_some()
}

/// When a run began by its id. A time that leaves no room for later ones is of no run that we made.
fn run_time_ms(run: &str) -> Option<u64> {
    let id = ulid::Ulid::from_string(run.strip_prefix(RUN_PREFIX)?).ok()?;
    Some(id.timestamp_ms()).filter(|&ms| ms < ulid::Ulid::max().timestamp_ms())
}
