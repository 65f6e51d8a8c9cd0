//! What a killed git or a careless step leaves behind in a worktree that is ours, and in nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_core::seal::Key;
use sage_fence::private;
use tokio::time::Instant;

use super::record::{Found, LeaseState, Record};
use crate::text_file;

/// A person's own git in the worktree needs less; a lock that stays longer is of a git that was killed.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// A path and a line break.
const MAX_PATH_BYTES: u64 = 8192;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The git directory that is registered for the worktree at `path`.
pub fn git_dir_of(common_dir: &Path, path: &Path) -> Option<PathBuf> {
    let wanted = path.join(".git");
    let registered = std::fs::read_dir(common_dir.join("worktrees")).ok()?.flatten();
    let is_ours = |dir: &PathBuf| {
        let text = text_file::read(&dir.join("gitdir"), MAX_PATH_BYTES).unwrap_or_default();
        Path::new(text.trim_end()) == wanted
    };
    registered.map(|entry| entry.path()).find(is_ours)
}

/// A git that was killed while it registered a worktree can leave an empty file on which every later
/// `git worktree` of the repository fails. Such halves go, if they are of a lease that was being made. Whoever
/// calls this holds the lock, so that nobody is making one now.
pub fn clear_half_made(common_dir: &Path, key: Option<&Key>) {
    let registered = std::fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    for dir in registered.map(|entry| entry.path()).filter(|dir| dir.join("locked").exists()) {
        let text = text_file::read(&dir.join("gitdir"), MAX_PATH_BYTES).unwrap_or_default();
        let Some(tree) = Path::new(text.trim_end()).parent() else { continue };
        let Some(name) = tree.file_name() else { continue };
        let file = tree.with_file_name(format!("{}.json", name.to_string_lossy()));
        if let Ok(Found::Record(record)) = Record::read(&file, key)
            && record.state == LeaseState::Creating
        {
            let _ = private::remove_all(&dir);
        }
    }
}

/// Writes the `.git` file of a worktree again that has lost it. False if there is nothing to tie it to, or git has not
/// finished making it: until then it is locked.
pub fn reattach(common_dir: &Path, path: &Path) -> bool {
    let Some(git_dir) = git_dir_of(common_dir, path).filter(|_| path.is_dir()) else { return false };
    if git_dir.join("locked").exists() {
        return false;
    }
    let file = path.join(".git");
    // A repository of the step's own is in its place: that is work, and not ours to change.
    if file.is_dir() {
        return false;
    }
    private::write(&file, format!("gitdir: {}\n", git_dir.display()).as_bytes()).is_ok()
}

/// Gives way without losing anything: `<path>.aside-1`, or the next number that is free.
pub fn put_aside(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let free = (1..1_000).map(|n| path.with_file_name(format!("{name}.aside-{n}")));
    let mut free = free.filter(|aside| aside.symlink_metadata().is_err());
    let aside = free.next().ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))?;
    private::rename(path, &aside)
}

/// Removes the locks of a git that was killed in this worktree.
pub async fn unlock(git_dir: &Path, common_dir: &Path, branch: &str) {
    let locks = [git_dir.join("index.lock"), git_dir.join("HEAD.lock")];
    let deadline = Instant::now() + LOCK_PATIENCE;
    while locks.iter().any(|lock| lock.exists()) && Instant::now() < deadline {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    for lock in locks {
        let _ = private::remove_file(&lock);
    }
    unlock_branch(common_dir, branch);
}

/// Nobody but the step writes to its branch.
pub fn unlock_branch(common_dir: &Path, branch: &str) {
    let _ = private::remove_file(&common_dir.join("refs/heads").join(format!("{branch}.lock")));
}
