//! `isolation: worktree`: a step works in a git worktree and on a branch of its own.
//!
//! ```text
//! enter --- Lease::take ---> worktrees/<run>/<step>   branch sage/<feature>/<step>-<run>   base: HEAD
//!   |          (created, or found again with everything in it)
//! attempt in there
//!   |
//! leave --- Lease::settle --> success: all that is left is committed; failure: it stays as it is
//!       --- Lease::clear ---> nothing was changed: worktree, branch and record go
//! ```
//! What must stay true: the user's checkout, index, stash and HEAD are never touched; no commit and no file
//! of a step is removed; nobody else's worktree is looked after or pruned. Merging is up to the user.

mod clear;
mod filters;
mod find;
mod fork;
mod git;
mod guard;
mod lock;
mod look;
mod name;
mod reap;
mod record;
mod repair;
mod settle;
mod take;

use std::path::{Path, PathBuf};

use sage_core::policy::FailureClass;
use sage_core::port::{StepCall, StepCx, StepOutcome, Stop, Usage};
use sage_core::seal::Key;
use sage_core::template::Isolation;

use crate::executor::ExecutorConfig;
use crate::footprint;
use crate::outcome::Miss;
use take::Repository;

pub use find::{NoRepository, repository, top};
pub use fork::fork;
pub(crate) use git::Git;
pub use guard::{Stashed, unwanted_variables, variables};
pub(crate) use look::{git_reading, git_with};
pub use reap::{Losses, Reaper};
pub use record::{LeaseState, Leases, Record, list, list_of};
pub(crate) use repair::git_dir_of;

/// A step's right to its worktree, for the time of one attempt.
#[derive(Debug)]
pub struct Lease {
    git: Git,
    repository: Repository,
    record: Record,
    file: PathBuf,
    key: Option<Key>,
    /// The worktree's own git directory: named in every command, so that no other repository is ever meant.
    git_dir: PathBuf,
    /// The project's folder in the worktree: the root of it, unless the project is a folder of its repository.
    project: PathBuf,
}

impl Lease {
    /// Where the attempt works.
    pub fn path(&self) -> &Path {
        &self.project
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    /// After it was settled: its branch has a commit that its base has not.
    async fn has_moved(&self) -> bool {
        let Record { base, commit, path, .. } = &self.record;
        match commit {
            Some(commit) => self.git.new_commits(path, &[base], commit).await.unwrap_or(true),
            None => false,
        }
    }
}

/// Before the attempt: with `isolation: worktree` its project becomes the worktree.
pub async fn enter(config: &ExecutorConfig, cx: &mut StepCx, call: &StepCall) -> Result<Option<Lease>, Miss> {
    if call.isolation != Isolation::Worktree {
        return Ok(None);
    }
    let lease = Lease::take(config, cx, call).await?;
    cx.project = lease.path().to_path_buf();
    cx.questions = cx.questions.clone().within(lease.path());
    Ok(Some(lease))
}

/// After the attempt: what it made is kept. A success that cannot be kept is none.
pub async fn leave(lease: Option<Lease>, cx: &StepCx, outcome: StepOutcome) -> StepOutcome {
    let Some(mut lease) = lease else { return outcome };
    let (success, usage) = match &outcome {
        StepOutcome::Succeeded { usage, .. } => (true, usage.clone()),
        StepOutcome::Failed { usage, .. } => (false, usage.clone()),
        // It goes on in the same place later.
        StepOutcome::Stopped { .. } => {
            let _ = lease.give_back().await;
            return outcome;
        }
    };
    let settled = tokio::select! {
        settled = lease.settle(success) => settled,
        // A polite stop comes too late for an attempt that has ended; an urgent one does not wait for git.
        () = cx.stop.reached(Stop::Now) => return StepOutcome::Stopped { usage },
    };
    if let (Some(watch), true) = (&cx.watch, success && settled.is_ok()) {
        footprint::tell_worktree(watch, lease.has_moved().await, &lease.record.base);
    }
    if settled.is_ok() && !comes_again_soon(&outcome) {
        // How the attempt ended is known: a worktree that cannot go now is left to `sage gc`.
        tokio::select! {
            _ = lease.clear() => {}
            () = cx.stop.reached(Stop::Now) => {}
        }
    }
    match (settled, outcome) {
        (Err(miss), StepOutcome::Succeeded { result, .. }) => unkept(miss, result, usage),
        // Why the attempt failed matters more than that its record could not be written.
        (_, outcome) => outcome,
    }
}

/// The next attempt needs the same worktree, and a large one takes its time.
fn comes_again_soon(outcome: &StepOutcome) -> bool {
    use FailureClass::{Quota, RateLimit, Transient};
    matches!(outcome, StepOutcome::Failed { class: Quota | RateLimit | Transient, .. })
}

fn unkept(miss: Miss, result: serde_json::Value, usage: Usage) -> StepOutcome {
    let miss = match miss {
        Miss::Failed { class, cause, message, refusal } => {
            let message = format!("the step succeeded, but its work could not be committed: {message}");
            Miss::Failed { class, cause, message, refusal }
        }
        Miss::Stopped => Miss::failed(FailureClass::Transient, "the step's work could not be committed"),
    };
    miss.into_outcome(Some(result), usage)
}
