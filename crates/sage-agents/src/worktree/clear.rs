//! A worktree in which nothing was changed goes when its attempt has ended.
//!
//! ```text
//! nothing changed -> record `creating` -> git worktree remove -> branch -> record
//! ```
//! Files that git ignores count as well: they may be what the step was asked for. Whoever is killed in between
//! leaves a record that says that there is nothing to lose: the next attempt makes the worktree anew, and
//! `sage gc` removes what is left of it.

use std::ffi::OsStr;

use sage_fence::private;

use super::Lease;
use super::record::LeaseState;
use super::settle::Settling;
use super::take::unwritable;
use super::{lock, name};
use crate::outcome::Miss;

impl Lease {
    /// False if there is something in it, or git does not let it go.
    pub async fn clear(mut self) -> Result<bool, Miss> {
        let settling = self.settling();
        let own = name::branch(&self.record.feature, &self.record.step, &self.record.run);
        let own = format!("refs/heads/{own}");
        if !settling.is_unchanged(&own).await? {
            return Ok(false);
        }
        let lock = lock::hold(&self.repository.common_dir, settling.git.cx()).await?;
        let git = settling.git.holding(lock);
        self.record.state = LeaseState::Creating;
        self.record.write(&self.file, self.key.as_ref()).map_err(|error| unwritable(&self.file, error))?;
        let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        let args = words.into_iter().chain([self.record.path.as_os_str()]);
        if git.ask(&self.repository.top, args).await?.is_err() {
            return Ok(false);
        }
        // Only if it still is where it began.
        let delete = ["update-ref", "-d", &own, &self.record.base];
        if git.ask(&self.repository.top, delete).await?.is_err() {
            return Ok(false);
        }
        private::remove_file(&self.file).map_err(|error| unwritable(&self.file, error))?;
        Ok(true)
    }
}

impl Settling {
    /// It and its branch are where they began, and there is no file and no folder of the step.
    async fn is_unchanged(&self, branch: &str) -> Result<bool, Miss> {
        let is_there = self.record.path.join(".git").is_file();
        let heads = self.ask(["rev-parse", "HEAD", branch]).await?.unwrap_or_default();
        let base = self.record.base.as_str();
        if !is_there || heads.lines().collect::<Vec<_>>() != [base, base] {
            return Ok(false);
        }
        let said_nothing = |said: Result<String, _>| said.is_ok_and(|said: String| said.is_empty());
        let tracked = self.ask(["status", "--porcelain", "--untracked-files=no"]).await?;
        // Tells also ignored files, repositories of the step's own, and folders with nothing in them.
        let other = self.ask(["clean", "-n", "-d", "-x", "-f", "-f"]).await?;
        Ok(said_nothing(tracked) && said_nothing(other))
    }
}
