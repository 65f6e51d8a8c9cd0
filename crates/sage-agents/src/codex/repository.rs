//! The git repository that an agent may record its work in: all of it but what makes git run or read something else.

use std::path::{Path, PathBuf};

/// Entries of a git directory that name programs, or another place for them. `commondir` and `config.worktree` are rarely
/// there: those that are not are looked for after the turn (`newcomer`).
pub const SETTINGS: [&str; 7] =
    ["config", "config.worktree", "hooks", "info", "modules", "worktrees", "commondir"];

/// The git directory of the repository around `cwd`. A worktree has none of its own: Sage commits what is left there.
pub fn git_dir(cwd: &Path) -> Option<PathBuf> {
    let cwd = cwd.canonicalize().ok()?;
    let found = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.symlink_metadata().is_ok())?;
    let is_repository = ["HEAD", "config"].iter().all(|name| found.join(name).is_file());
    found.symlink_metadata().is_ok_and(|about| about.is_dir() && is_repository).then_some(found)
}
