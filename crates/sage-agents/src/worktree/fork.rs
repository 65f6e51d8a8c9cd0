//! Worktrees of a run that is forked: what runs again begins at the commit that it began at, in a worktree and on
//! a branch of its own. What is taken over stays on the branch that it is on.

use std::io;
use std::path::Path;

use sage_core::port::Fork;
use sage_core::seal::Key;

use super::name;
use super::record::{self, LeaseState, Record};

/// Only records are written: the first attempt makes the worktree, as for one that was never finished.
pub fn fork(worktrees: &Path, fork: &Fork, key: Option<&Key>) -> io::Result<()> {
    // The oldest first: of two that know a step, the newer one is right.
    for source in fork.sources.iter().rev() {
        let leases = record::list_of(worktrees, source, key)?.found;
        for of in leases.iter().filter(|of| fork.repeats(source, &of.step)) {
            write(worktrees, fork, of, key)?;
        }
    }
    Ok(())
}

fn write(worktrees: &Path, fork: &Fork, of: &Record, key: Option<&Key>) -> io::Result<()> {
    let dir = record::prepare(worktrees, &fork.run)?;
    let folder = name::folder(&of.step);
    let own = Record {
        branch: name::branch(&fork.feature, &of.step, &fork.run),
        base: of.base.clone(),
        path: dir.join(&folder),
        commit: None,
        step: of.step.clone(),
        run: fork.run.clone(),
        feature: fork.feature.clone(),
        state: LeaseState::Creating,
        stash: Vec::new(),
    };
    own.write(&dir.join(format!("{folder}.json")), key)
}
