//! Whether a project has a git repository that worktrees can be made of. Git itself is asked, in the same way as later
//! when one is made: what it says now is what it will say then.

use std::path::{Path, PathBuf};

use super::filters::Filters;
use super::look;

/// Why no worktree can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRepository {
    #[error("git is not installed")]
    NoGit,
    #[error("`{}` is not in a git repository", .0.display())]
    Outside(PathBuf),
    #[error("the git repository of `{}` has no commit yet", .0.display())]
    NoCommit(PathBuf),
    #[error("the git repository of `{}` is bare", .0.display())]
    Bare(PathBuf),
    #[error(
        "the repository's configuration runs its own programs on files (filter `{0}`): Sage starts only yours"
    )]
    Filter(String),
    #[error("git refused: {0}")]
    Refused(String),
}

impl NoRepository {
    /// From what git said instead of an answer.
    pub(super) fn of(project: &Path, said: &str) -> NoRepository {
        let project = project.to_path_buf();
        match said {
            _ if said.contains("not a git repository") => NoRepository::Outside(project),
            _ if said.contains("'HEAD'") => NoRepository::NoCommit(project),
            _ if said.contains("must be run in a work tree") => NoRepository::Bare(project),
            _ => NoRepository::Refused(said.trim().to_string()),
        }
    }

    /// What to type.
    pub fn hint(&self) -> &'static str {
        match self {
            NoRepository::Filter(name) if name == "lfs" => {
                "git lfs install    (for all of your repositories)"
            }
            NoRepository::Filter(_) => {
                "git config --global --edit    (a filter of your own configuration is used)"
            }
            NoRepository::NoGit => "install git",
            NoRepository::Outside(_) => "git init && git add -A && git commit -m start",
            NoRepository::NoCommit(_) => "git add -A && git commit -m start",
            NoRepository::Bare(_) => "git worktree add ../checkout && cd ../checkout",
            NoRepository::Refused(_) => "git status",
        }
    }
}

/// The top of the checkout that the project is in, if worktrees can be made of it.
pub fn repository(project: &Path) -> Result<PathBuf, NoRepository> {
    let top = top(project)?;
    let filters = Filters::of(&top).map_err(NoRepository::Refused)?;
    filters.needed(&top).map_or(Ok(top), |name| Err(NoRepository::Filter(name)))
}

/// The top of the checkout that the project is in.
pub fn top(project: &Path) -> Result<PathBuf, NoRepository> {
    let asked = ["rev-parse", "--path-format=absolute", "--show-toplevel", "HEAD"];
    let said = look::ask_git(look::command(project, asked)).map_err(|silent| match silent.is_missing() {
        true => NoRepository::NoGit,
        false => NoRepository::Refused(format!("git: {silent}")),
    })?;
    if !said.succeeded() {
        return Err(NoRepository::of(project, &String::from_utf8_lossy(&said.stderr)));
    }
    Ok(PathBuf::from(said.text().lines().next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S6, R23
    #[test]
    fn what_git_says_becomes_a_reason_and_a_way_out() {
        let of = |said: &str| NoRepository::of(Path::new("/p"), said);
        let outside = of("fatal: not a git repository (or any of the parent directories): .git");
        assert_eq!(outside.to_string(), "`/p` is not in a git repository");
        assert!(outside.hint().starts_with("git init"));
        let unborn = of("fatal: ambiguous argument 'HEAD': unknown revision");
        assert_eq!(unborn, NoRepository::NoCommit("/p".into()));
        assert_eq!(of("fatal: this operation must be run in a work tree"), NoRepository::Bare("/p".into()));
        assert_eq!(of("fatal: dubious ownership\n").to_string(), "git refused: fatal: dubious ownership");
    }
}
