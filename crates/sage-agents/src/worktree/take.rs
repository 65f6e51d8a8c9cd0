//! Taking a lease: the worktree is found again, made, or made anew where a crash left half of it.
//!
//! ```text
//! no record            -> record `creating` -> git worktree add -b -> record `active`
//! record `creating`    -> nobody has worked in it: removed, added again
//! any other record     -> whole: as it is | repaired | put aside and added again from its branch
//! ```

use std::io;
use std::path::{Path, PathBuf};

use sage_core::policy::FailureClass;
use sage_core::port::{StepCall, StepCx};
use sage_core::seal::Key;
use sage_fence::private;

use super::Lease;
use super::find::NoRepository;
use super::git::Git;
use super::record::{self, Found, LeaseState, Record};
use super::{guard, lock, name, repair};
use crate::executor::ExecutorConfig;
use crate::outcome::Miss;

/// The repository that the project belongs to.
#[derive(Debug)]
pub struct Repository {
    pub common_dir: PathBuf,
    pub top: PathBuf,
    /// The project's folder in it, empty for the root.
    prefix: PathBuf,
    head: String,
    /// What the user has checked out: `refs/heads/main`, or nothing.
    branch: Option<String>,
}

impl Lease {
    pub async fn take(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Result<Lease, Miss> {
        let git = Git::new(config, cx, call)?;
        let repository = Repository::of(&git, &cx.project).await?;
        let git = git.unfiltered(&repository.top).await?;
        if let Some(filter) = git.needed_filter(&repository.top).await {
            return Err(no_repository(&NoRepository::Filter(filter)));
        }
        let worktrees = config.worktrees.clone().unwrap_or_else(|| cx.project.join(".sage/worktrees"));
        let dir = record::prepare(&worktrees, &call.run).map_err(|error| unwritable(&worktrees, error))?;
        let folder = name::folder(&call.path);
        let (path, file) = (dir.join(&folder), dir.join(format!("{folder}.json")));
        let known = match Record::read(&file, config.key.as_ref()) {
            // It decides about no other place.
            Ok(Found::Record(record)) if record.path != path => Found::Damaged,
            known => known.map_err(|error| unwritable(&file, error))?,
        };
        let fresh = Record {
            branch: name::branch(&call.feature, &call.path, &call.run),
            base: repository.head.clone(),
            path,
            commit: None,
            step: call.path.clone(),
            run: call.run.clone(),
            feature: call.feature.clone(),
            state: LeaseState::Creating,
            stash: Vec::new(),
        };
        guard::write_hook(&dir, &repository, repository.branch.as_deref())
            .map_err(|error| unwritable(&dir, error))?;
        let key = config.key.clone();
        let maker = Maker { git: &git, cx, repository: &repository, file: &file, key: key.as_ref() };
        let (mut record, git_dir) = maker.get(known, fresh).await?;
        // Of an attempt that nobody could settle.
        guard::restore_stash(&git, &repository, &record.stash).await?;
        record.stash = guard::stash(&git, &repository).await?;
        record.state = LeaseState::Active;
        maker.write(&record)?;
        let project = record.path.join(&repository.prefix);
        private::create_dir_all(&project).map_err(|error| unwritable(&project, error))?;
        Ok(Lease { git, repository, record, file, key, git_dir, project })
    }
}

impl Repository {
    async fn of(git: &Git, project: &Path) -> Result<Repository, Miss> {
        let wanted =
            ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-prefix"];
        let answer = match git.ask(project, wanted.into_iter().chain(["HEAD"])).await? {
            Ok(answer) => answer,
            Err(refused) => return Err(no_repository(&NoRepository::of(project, &refused.message))),
        };
        let mut lines = answer.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (top, common_dir, prefix, head) = (next(), next(), next(), next());
        if head.is_empty() {
            return Err(Miss::invalid(format!("git did not say where its repository is: `{answer}`")));
        }
        let branch = git.ask(project, ["symbolic-ref", "--quiet", "HEAD"]).await?.ok();
        Ok(Repository {
            branch,
            common_dir: common_dir.into(),
            top: top.into(),
            prefix: prefix.into(),
            head: head.into(),
        })
    }
}

fn no_repository(why: &NoRepository) -> Miss {
    Miss::invalid(format!("no worktree can be made of the git repository: {why}; {}", why.hint()))
}

struct Maker<'a> {
    git: &'a Git,
    cx: &'a StepCx,
    repository: &'a Repository,
    file: &'a Path,
    key: Option<&'a Key>,
}

impl Maker<'_> {
    /// The lease's record and the git directory of its worktree.
    async fn get(&self, known: Found, fresh: Record) -> Result<(Record, PathBuf), Miss> {
        if let Found::Record(record) = &known
            && record.state != LeaseState::Creating
            && let Some(git_dir) = self.whole(&record.path).await?
        {
            repair::unlock(&git_dir, &self.repository.common_dir, &record.branch).await;
            return Ok((Record::clone(record), git_dir));
        }
        let lock = lock::hold(&self.repository.common_dir, self.cx).await?;
        repair::clear_half_made(&self.repository.common_dir, self.key);
        let git = self.git.clone().holding(lock);
        let locked = Maker { git: &git, ..*self };
        let record = match known {
            Found::Nothing => locked.make(fresh).await?,
            Found::Record(record) if record.state == LeaseState::Creating => {
                remove(&record.path).map_err(|error| unwritable(&record.path, error))?;
                locked.add(*record).await?
            }
            Found::Record(record) => locked.bring_back(*record).await?,
            Found::Damaged => {
                let base = locked.base_of(&fresh).await?;
                locked.bring_back(Record { base, ..fresh }).await?
            }
        };
        let git_dir = self.whole(&record.path).await?.ok_or_else(|| {
            Miss::failed(FailureClass::Failed, format!("`{}` is not a worktree", record.path.display()))
        })?;
        Ok((record, git_dir))
    }

    /// The worktree's own git directory, if it has one. Its parents' repositories do not count.
    async fn whole(&self, path: &Path) -> Result<Option<PathBuf>, Miss> {
        if !path.is_dir() {
            return Ok(None);
        }
        let Ok(git_dir) = self.git.ask(path, ["rev-parse", "--absolute-git-dir"]).await? else {
            return Ok(None);
        };
        let ours = repair::git_dir_of(&self.repository.common_dir, path);
        Ok(ours.filter(|ours| ours.canonicalize().ok() == Path::new(&git_dir).canonicalize().ok()))
    }

    /// Nothing is known about it: whatever has its name belongs to somebody else.
    async fn make(&self, record: Record) -> Result<Record, Miss> {
        if record.path.symlink_metadata().is_ok() {
            let path = record.path.display();
            return Err(Miss::invalid(format!(
                "`{path}` is in the way of the step's worktree; move it away: mv {path} {path}.old"
            )));
        }
        if self.has_branch(&record.branch).await? {
            let branch = &record.branch;
            return Err(Miss::invalid(format!(
                "the branch `{branch}` exists already and sage did not make it for this step; \
                 rename it: git branch -m {branch} {branch}-old"
            )));
        }
        self.write(&record)?;
        self.add(record).await
    }

    /// Work may be in it: it is repaired where it stands, or put aside, never removed.
    async fn bring_back(&self, mut record: Record) -> Result<Record, Miss> {
        if repair::reattach(&self.repository.common_dir, &record.path)
            && let Some(git_dir) = self.whole(&record.path).await?
        {
            repair::unlock(&git_dir, &self.repository.common_dir, &record.branch).await;
            return Ok(record);
        }
        repair::put_aside(&record.path).map_err(|error| unwritable(&record.path, error))?;
        // From here on there is nothing in it that a crash could take.
        record.state = LeaseState::Creating;
        self.write(&record)?;
        self.add(record).await
    }

    /// The branch goes on where it stands, if it is there. Twice `--force`: a worktree that is gone, or was
    /// never finished, may still be registered for this path. It is ours.
    async fn add(&self, record: Record) -> Result<Record, Miss> {
        repair::unlock_branch(&self.repository.common_dir, &record.branch);
        let path = record.path.as_os_str().to_owned();
        let mut args: Vec<std::ffi::OsString> =
            ["worktree", "add", "--quiet", "--force", "--force"].map(Into::into).to_vec();
        if self.has_branch(&record.branch).await? {
            args.extend([path, (&record.branch).into()]);
        } else {
            args.extend(["-b".into(), (&record.branch).into(), path, (&record.base).into()]);
        }
        let what = format!("the worktree of `{}` could not be made", record.step);
        self.git.run(&what, &self.repository.top, args).await?;
        Ok(record)
    }

    async fn has_branch(&self, branch: &str) -> Result<bool, Miss> {
        let name = format!("refs/heads/{branch}");
        let args = ["show-ref", "--verify", "--quiet", &name];
        Ok(self.git.ask(&self.repository.top, args).await?.is_ok())
    }

    /// Of a lease whose record is damaged.
    async fn base_of(&self, record: &Record) -> Result<String, Miss> {
        let args = ["merge-base", "HEAD", &record.branch];
        let found = self.git.ask(&self.repository.top, args).await?;
        Ok(found.unwrap_or_else(|_| record.base.clone()))
    }

    fn write(&self, record: &Record) -> Result<(), Miss> {
        record.write(self.file, self.key).map_err(|error| unwritable(self.file, error))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match private::remove_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

pub fn unwritable(path: &Path, error: io::Error) -> Miss {
    Miss::of_io(&error, format!("cannot use `{}`: {error}", path.display()))
}
