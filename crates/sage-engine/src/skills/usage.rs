//! Approvals and statistics: `.sage/state/skills.json`.
//!
//! A run is counted once, by its id: counted again, its newest outcome replaces the old one. The last
//! `KEPT_RUNS` are kept one by one; what is older is only kept as sums.

use std::collections::BTreeMap;

use sage_core::seal;
use sage_core::wire::rfc3339;
use serde::{Deserialize, Serialize};

use super::{Content, SkillError, Store, io_error};
use crate::vfs;

const VERSION: u32 = 1;
const KEPT_RUNS: usize = 1_000;
const MAX_BYTES: u64 = 64 << 20;

/// A person's word for one content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub by: String,
    /// RFC 3339.
    pub at: String,
    /// Of the content that was approved.
    pub sha: String,
}

/// How often a skill was offered to a run, used by one, and how many of those succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    pub offered: u64,
    pub used: u64,
    pub succeeded: u64,
}

impl Times {
    /// `None` as long as nobody has used it.
    pub fn success_rate(&self) -> Option<f64> {
        (self.used > 0).then(|| self.succeeded as f64 / self.used as f64)
    }
}

/// What a run did with skills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUse {
    pub offered: Vec<String>,
    pub used: Vec<String>,
    pub succeeded: bool,
}

/// Runs that looked for skills, and those of them that used one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse {
    pub runs: u64,
    pub reused: u64,
}

impl Reuse {
    pub fn rate(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.reused as f64 / self.runs as f64)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    version: u32,
    skills: BTreeMap<String, Kept>,
    runs: BTreeMap<String, RunUse>,
    earlier: Earlier,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// Of runs that are no longer kept one by one, and of `sage skills run`.
    times: Times,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Earlier {
    #[serde(flatten)]
    reuse: Reuse,
    /// The newest run that is counted in the sums: nothing up to it is counted again.
    through: String,
}

impl State {
    pub(super) fn approval(&self, name: &str) -> Option<&Approval> {
        self.skills.get(name)?.approval.as_ref()
    }

    pub(super) fn times(&self, name: &str) -> Times {
        let mut times = self.skills.get(name).map(|kept| kept.times).unwrap_or_default();
        self.runs.values().for_each(|run| times.add(name, run));
        times
    }

    pub(super) fn reuse(&self) -> Reuse {
        let mut reuse = self.earlier.reuse;
        self.runs.values().for_each(|run| reuse.add(run));
        reuse
    }

    fn record(&mut self, run: &str, used: RunUse) {
        if run <= self.earlier.through.as_str() {
            return;
        }
        self.runs.insert(run.to_string(), used);
        while self.runs.len() > KEPT_RUNS
            && let Some((oldest, used)) = self.runs.pop_first()
        {
            self.earlier.reuse.add(&used);
            for name in used.offered.iter().chain(&used.used) {
                self.skills.entry(name.clone()).or_default();
            }
            self.skills.iter_mut().for_each(|(name, kept)| kept.times.add(name, &used));
            self.earlier.through = oldest;
        }
    }
}

impl Times {
    fn add(&mut self, name: &str, run: &RunUse) {
        let (offered, used) = (run.offered.iter().any(|it| it == name), run.used.iter().any(|it| it == name));
        self.offered += u64::from(offered || used);
        self.used += u64::from(used);
        self.succeeded += u64::from(used && run.succeeded);
    }
}

impl Reuse {
    fn add(&mut self, run: &RunUse) {
        self.runs += 1;
        self.reused += u64::from(!run.used.is_empty());
    }
}

impl Store {
    /// Counts what a run did with skills. Counting the same run again changes nothing, or its outcome.
    pub fn record(&self, run: &str, used: RunUse) -> Result<(), SkillError> {
        self.change(|state| state.record(run, used))
    }

    /// Counts a skill that a person has run.
    pub fn record_by_hand(&self, name: &str, succeeded: bool) -> Result<(), SkillError> {
        self.change(|state| {
            let times = &mut state.skills.entry(name.to_string()).or_default().times;
            times.used += 1;
            times.succeeded += u64::from(succeeded);
        })
    }

    /// Approves a content that was shown: what has changed since then is not approved.
    pub fn approve(&self, name: &str, shown: &Content, by: &str) -> Result<Approval, SkillError> {
        let at = rfc3339(self.clock.now_ms());
        let approval = Approval { by: by.to_string(), at, sha: shown.sha.to_string() };
        if self.key.is_none() {
            return Err(SkillError::NoKey);
        }
        let _lock = self.lock()?;
        if Content::read(&shown.dir)?.sha != shown.sha {
            return Err(SkillError::Changed { name: name.to_string() });
        }
        let mut state = self.state()?;
        state.skills.entry(name.to_string()).or_default().approval = Some(approval.clone());
        self.write_state(state)?;
        Ok(approval)
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), SkillError> {
        let _lock = self.lock()?;
        let mut state = self.state()?;
        change(&mut state);
        self.write_state(state)
    }

    pub(super) fn state(&self) -> Result<State, SkillError> {
        let path = self.state_path();
        let bytes = match self.vfs.read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::default()),
            Err(source) => return Err(io_error("read", &path, source)),
        };
        let damaged = |why: String| SkillError::Damaged { path: path.clone(), why };
        let text = String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
        let state: State = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if state.version > VERSION {
            return Err(damaged(format!("it is of a newer sage, version {}", state.version)));
        }
        // It came with a repository: nothing in it was approved or counted by this user.
        if !seal::is_sealed(&text, self.key.as_ref()) {
            return Ok(State::default());
        }
        Ok(state)
    }

    fn write_state(&self, mut state: State) -> Result<(), SkillError> {
        let path = self.state_path();
        state.version = VERSION;
        let written = seal::document_text(&state, self.key.as_ref())
            .map_err(std::io::Error::other)
            .and_then(|text| vfs::write_atomic(self.vfs.as_ref(), &path, text.as_bytes()));
        written.map_err(|source| io_error("write", &path, source))
    }
}
