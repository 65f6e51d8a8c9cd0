//! A fork as the executor sees it: two runs that must not share what one of them changes.

use std::collections::{BTreeMap, BTreeSet};

/// A run that is about to go on as another one.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// The run that is forked, and those that it was forked from itself, the newest first.
    pub sources: Vec<String>,
    /// The fork's own id and feature.
    pub run: String,
    pub feature: String,
    /// Paths of the steps whose results it takes over; all others run again, if they have run at all.
    pub kept: BTreeSet<String>,
    /// Sessions that the source's steps were in.
    pub used: BTreeSet<String>,
    /// What stood in the source for the sessions that its steps name.
    pub sessions: BTreeMap<String, String>,
}

impl Fork {
    /// Whether a step of a run is one that the fork does once more.
    pub fn repeats(&self, run: &str, step: &str) -> bool {
        self.sources.iter().any(|source| source == run) && !self.kept.contains(step)
    }
}
