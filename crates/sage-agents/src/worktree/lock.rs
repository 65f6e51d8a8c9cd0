//! One at a time makes a worktree in a repository: two `git worktree add` at once get in each other's way.
//!
//! The lock is a file in the repository's git directory, shared by all sages that work there. It is an OS
//! lock that git inherits: whoever dies frees it, and not before the git that it started is gone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::{Progress, StepCx, Stop};
use sage_fence::Fence;
use tokio::time::Instant;

use crate::outcome::Miss;

pub const FILE: &str = "sage-worktrees.lock";
/// Many steps may wait for a slow disk, one after the other; then something is wrong.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The lock's file. A link in its place, or on the way in the git directory, is refused.
pub fn open(git_common_dir: &Path) -> io::Result<File> {
    let (folder, name) = Fence::new(git_common_dir).folder_of(Path::new(FILE))?;
    match folder.create(&name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => folder.open_file(&name),
        made => made,
    }
}

pub async fn hold(git_common_dir: &Path, cx: &StepCx) -> Result<Arc<File>, Miss> {
    let path = git_common_dir.join(FILE);
    let refuse =
        |error: std::io::Error| Miss::of_io(&error, format!("cannot lock `{}`: {error}", path.display()));
    let file = open(git_common_dir).map_err(refuse)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Arc::new(file)),
            Err(TryLockError::Error(error)) => return Err(refuse(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if Instant::now() > deadline {
            let message = format!("waited too long for other worktrees to be made (`{}`)", path.display());
            return Err(Miss::failed(FailureClass::Transient, message));
        }
        // Waiting for one's turn is no silence.
        (cx.progress)(Progress::Alive);
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = cx.stop.reached(Stop::Graceful) => return Err(Miss::Stopped),
        }
    }
}
