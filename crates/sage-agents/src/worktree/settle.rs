//! The end of an attempt: a success is committed with everything that lies in the worktree, but for what
//! `.gitignore` names; a failure leaves its work where it is.

use std::ffi::{OsStr, OsString};

use super::Lease;
use super::git::{Git, Refused};
use super::guard;
use super::record::{LeaseState, Record};
use super::take::unwritable;
use crate::outcome::Miss;

impl Lease {
    pub async fn settle(&mut self, success: bool) -> Result<(), Miss> {
        let given_back = self.give_back().await;
        // The step may have changed the repository's configuration.
        self.git = self.git.clone().unfiltered(&self.repository.top).await?;
        let mut settling = self.settling();
        if success {
            settling.commit().await?;
        }
        let head = settling.ask(["rev-parse", "HEAD"]).await?.ok();
        if let Some(head) = &head {
            settling.follow(head).await?;
        }
        let mut record = settling.record;
        record.commit = head.filter(|head| *head != record.base);
        record.state = if success { LeaseState::Committed } else { LeaseState::Failed };
        // An entry that is still missing is looked for again by the next attempt.
        if given_back.is_ok() {
            record.stash.clear();
        }
        record.write(&self.file, self.key.as_ref()).map_err(|error| unwritable(&self.file, error))?;
        self.record = record;
        given_back
    }

    pub(super) fn settling(&self) -> Settling {
        let git = self.git.clone().unstoppable();
        Settling { git, record: self.record.clone(), git_dir: self.git_dir.clone() }
    }

    /// What the step took from the user's stash goes back.
    pub async fn give_back(&self) -> Result<(), Miss> {
        let git = self.git.clone().unstoppable();
        guard::restore_stash(&git, &self.repository, &self.record.stash).await
    }
}

/// Git in the worktree of a lease, deaf to the step's stop.
pub(super) struct Settling {
    pub git: Git,
    pub record: Record,
    git_dir: std::path::PathBuf,
}

impl Settling {
    /// Repository and worktree are named: a step may have removed its `.git`, and the user's must not be found.
    fn args<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![
            "--git-dir".into(),
            self.git_dir.clone().into(),
            "--work-tree".into(),
            self.record.path.clone().into(),
        ];
        all.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        all
    }

    pub async fn ask<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Result<String, Refused>, Miss> {
        self.git.ask(&self.record.path, self.args(args)).await
    }

    pub async fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String, Miss> {
        let what = format!("`{}`", self.record.path.display());
        self.git.run(&what, &self.record.path, self.args(args)).await
    }

    async fn commit(&self) -> Result<(), Miss> {
        if !self.record.path.is_dir() {
            return Err(Miss::unfit(format!(
                "the step removed its worktree `{}`",
                self.record.path.display()
            )));
        }
        self.run(["add", "--all"]).await?;
        if self.ask(["diff", "--cached", "--quiet"]).await?.is_ok() {
            return Ok(());
        }
        let mut args = self.git.author(&self.record.path).await?;
        args.extend(["commit", "--quiet", "--no-verify", "-m"].map(String::from));
        args.push(self.message());
        self.run(args).await.map(drop)
    }

    fn message(&self) -> String {
        let Record { feature, step, run, .. } = &self.record;
        format!("{feature}: {step}\n\nSage-Feature: {feature}\nSage-Step: {step}\nSage-Run: {run}\n")
    }

    /// A step may have left its branch. The branch follows it where that loses nothing; otherwise the record
    /// names the branch on which the work is.
    async fn follow(&mut self, head: &str) -> Result<(), Miss> {
        let ours = format!("refs/heads/{}", self.record.branch);
        let current = self.ask(["symbolic-ref", "--quiet", "HEAD"]).await?.ok();
        if current.as_deref() == Some(&ours) {
            return Ok(());
        }
        if self.ask(["merge-base", "--is-ancestor", &ours, head]).await?.is_ok() {
            return self.run(["update-ref", &ours, head]).await.map(drop);
        }
        if let Some(branch) = current.as_deref().and_then(|name| name.strip_prefix("refs/heads/")) {
            self.record.branch = branch.to_string();
        }
        Ok(())
    }
}
