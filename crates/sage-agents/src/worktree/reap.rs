//! Worktrees of runs that are over: removed where nothing would be lost, otherwise kept, with the reason.
//!
//! Nothing is lost if no file in it is uncommitted and every commit of it is on a branch that is not a step's.
//! Its branch goes with it. Forced, uncommitted files are lost; commits never are: their branch stays.
//! A killed clean-up leaves the record, and with it the rest is found again.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sage_fence::private;

use super::look::git;
use super::record::{LeaseState, Record, is_own_dir};
use super::{lock, repair};

/// Others make worktrees in moments; who waits longer comes again.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Branches of steps: that a commit is on one of them does not mean that anybody has taken it.
const OURS: &str = "refs/heads/sage/";

/// The worktrees of one project.
#[derive(Clone, Debug)]
pub struct Reaper {
    root: PathBuf,
    worktrees: PathBuf,
    common_dir: PathBuf,
}

/// What would be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub files: usize,
    /// Commits of its branch are nowhere else.
    pub commits: bool,
}

impl Losses {
    pub fn none(&self) -> bool {
        *self == Losses::default()
    }

    pub fn text(&self) -> String {
        let files = match self.files {
            0 => None,
            1 => Some("1 file is not committed".to_string()),
            files => Some(format!("{files} files are not committed")),
        };
        let commits = self.commits.then(|| "its commits are merged nowhere".to_string());
        files.into_iter().chain(commits).collect::<Vec<_>>().join(", ")
    }
}

impl Reaper {
    /// `root` is the project, `worktrees` its folder of leases.
    pub fn new(root: &Path, worktrees: &Path) -> Result<Reaper, String> {
        let at = |path: &Path| path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()));
        let asked = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let common_dir = git(root, asked)?;
        if !is_own_dir(worktrees) {
            return Err(format!("`{}` is not a directory", worktrees.display()));
        }
        Ok(Reaper { root: at(root)?, worktrees: at(worktrees)?, common_dir: common_dir.into() })
    }

    /// What removing it would lose. An error is a reason to leave it alone.
    pub fn losses(&self, record: &Record) -> Result<Losses, String> {
        self.refuse_foreign(record)?;
        let mut losses = Losses::default();
        let mut tips: Vec<String> = self.tip(&record.branch).into_iter().collect();
        if record.state != LeaseState::Creating && record.path.symlink_metadata().is_ok() {
            let git_dir = repair::git_dir_of(&self.common_dir, &record.path)
                .ok_or("git does not know it as a worktree")?;
            let ask = |args: &[&str]| {
                let place: [&OsStr; 4] = [
                    "--git-dir".as_ref(),
                    git_dir.as_os_str(),
                    "--work-tree".as_ref(),
                    record.path.as_os_str(),
                ];
                git(&record.path, place.into_iter().chain(args.iter().map(|arg| (*arg).as_ref())))
            };
            // Not inside submodules: git would run the filters of their own configuration.
            let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty"];
            losses.files = ask(&status)?.lines().count();
            tips.push(ask(&["rev-parse", "HEAD"])?);
        }
        for tip in tips {
            losses.commits |= tip != record.base && !self.is_elsewhere(&tip)?;
        }
        Ok(losses)
    }

    /// Removes the worktree, its branch if that loses nothing, and its record.
    pub fn remove(&self, record: &Record, force: bool) -> Result<(), String> {
        let losses = self.losses(record)?;
        if !losses.none() && !force {
            return Err(losses.text());
        }
        let _lock = self.hold()?;
        if record.state == LeaseState::Creating {
            self.remove_half(record)?;
        } else if record.path.symlink_metadata().is_ok() {
            let mut args: Vec<&OsStr> = ["worktree", "remove"].map(OsStr::new).to_vec();
            if force {
                args.extend(["--force", "--force"].map(OsStr::new));
            }
            args.push(record.path.as_os_str());
            git(&self.root, args)?;
        }
        if let Some(tip) = self.tip(&record.branch).filter(|_| record.branch.starts_with("sage/"))
            && (tip == record.base || self.is_elsewhere(&tip)?)
        {
            let name = format!("refs/heads/{}", record.branch);
            // Only if it still is what was looked at.
            git(&self.root, ["update-ref", "-d", &name, &tip])?;
        }
        self.forget(record)
    }

    /// What was being made or removed when somebody was killed; git does not know it well enough to remove it.
    fn remove_half(&self, record: &Record) -> Result<(), String> {
        let git_dir = repair::git_dir_of(&self.common_dir, &record.path);
        for dir in [Some(record.path.clone()), git_dir].into_iter().flatten() {
            match private::remove_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Folders of runs that have no worktree any more; `is_gone` knows the runs that are.
    pub fn sweep(&self, is_gone: impl Fn(&str) -> bool) {
        for run in private::list(&self.worktrees).unwrap_or_default() {
            let (name, dir) = (run.name.to_string_lossy().into_owned(), self.worktrees.join(&run.name));
            if name.starts_with("run_") && is_gone(&name) && has_only_hooks(&dir) {
                let _ = private::remove_all(&dir);
            }
        }
    }

    /// A record decides about nothing outside of its run's directory, which is a real one and no link.
    fn refuse_foreign(&self, record: &Record) -> Result<(), String> {
        let dir = self.worktrees.join(&record.run);
        let inside = record.path.parent() == Some(dir.as_path()) && record.path.file_name().is_some();
        let plain =
            !record.run.is_empty() && record.run.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let real = is_own_dir(&dir) && (is_own_dir(&record.path) || record.path.symlink_metadata().is_err());
        if inside && plain && real { Ok(()) } else { Err("it is not where a worktree of its run is".into()) }
    }

    fn tip(&self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}^{{commit}}");
        git(&self.root, ["rev-parse", "--verify", "--quiet", &name]).ok()
    }

    /// On a branch of a person, here or at a remote.
    fn is_elsewhere(&self, commit: &str) -> Result<bool, String> {
        let args =
            ["for-each-ref", "--contains", commit, "--format=%(refname)", "refs/heads", "refs/remotes"];
        Ok(git(&self.root, args)?.lines().any(|name| !name.starts_with(OURS)))
    }

    /// The record last: as long as it is there, the rest is looked for.
    fn forget(&self, record: &Record) -> Result<(), String> {
        let dir = self.worktrees.join(&record.run);
        let told = |error: std::io::Error| error.to_string();
        let mut file = record.path.clone().into_os_string();
        file.push(".json");
        match private::remove_file(Path::new(&file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(told(error)),
            _ => {}
        }
        if has_only_hooks(&dir) {
            private::remove_all(&dir).map_err(told)?;
        }
        Ok(())
    }

    fn hold(&self) -> Result<File, String> {
        let path = self.common_dir.join(lock::FILE);
        let told = |error: std::io::Error| format!("cannot lock `{}`: {error}", path.display());
        let file = lock::open(&self.common_dir).map_err(told)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(told(error)),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err("others make worktrees right now".into());
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }
}

/// No worktree, no record, and nothing that somebody put aside.
fn has_only_hooks(run_dir: &Path) -> bool {
    let Ok(entries) = private::list(run_dir) else { return false };
    entries.iter().all(|entry| entry.name.to_string_lossy().starts_with('.'))
}
