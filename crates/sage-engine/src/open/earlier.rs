//! Results of earlier runs of a feature: what a step falls back to when its target is down.

use std::path::PathBuf;
use std::sync::Arc;

use sage_core::run::State;

use super::{Engine, Fold, OpenError};
use crate::blobs::Blobs;
use crate::journal;
use crate::results::{Face, value_of};
use crate::run_loop::Earlier;

/// Runs looked at, newest first.
const RUNS: usize = 20;

impl Engine {
    /// The step's result in the newest earlier run of the feature that has one.
    pub(super) fn earlier_result(&self, feature: &str, now: &str, path: &str) -> Option<Earlier> {
        let mut runs: Vec<String> = self.vfs.list(&self.project.runs()).ok()?;
        // Ids sort by time.
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let own = |run: &&String| run.as_str() < now && self.feature_of(run).as_deref() == Some(feature);
        runs.iter().filter(own).take(RUNS).find_map(|run| self.result_in(feature, run, path))
    }

    fn result_in(&self, feature: &str, run: &str, path: &str) -> Option<Earlier> {
        let dir: PathBuf = self.project.run_dir(run);
        let mut fold = Fold::default();
        let checked =
            journal::check(self.vfs.as_ref(), &dir, None, |record| fold.take::<OpenError>(record)).ok()?;
        if !self.sealing(run).holds(checked.sealed.as_ref()) {
            return None;
        }
        let folded = fold.finish().ok().filter(|folded| folded.feature == feature)?;
        let step = folded.step(folded.find(path)?);
        // What only stood in for a result there is none here either.
        let output =
            step.output.as_deref().filter(|_| matches!(step.state, State::Succeeded) && !step.degraded)?;
        let blobs: Arc<Blobs> = self.blobs(run);
        let result = value_of(output, Face::Filtered, &blobs).ok()?;
        // What it had from an earlier run itself is as old as it was there.
        let age_ms = step.taken().map_or(0, |taken| taken.age_ms);
        Some(Earlier { run: run.into(), at_ms: step.ended_ms.saturating_sub(age_ms), result })
    }
}
