//! Starts a keeper with its program: lifeline, pipes, environment.
//!
//! Everything is closed-on-exec but the children lock and the proofs of limits, which the whole tree holds
//! on purpose. They are inheritable only while `SPAWN` is held, so that no child of another run gets them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use super::keeper::KEEPER_ARG;

static SPAWN: Mutex<()> = Mutex::new(());

/// While this is held, a child that is started inherits nothing of a run.
pub(crate) fn hold_spawns() -> MutexGuard<'static, ()> {
    SPAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to start. `program` is looked up in `PATH` of `env` or, without one there, of this process.
#[derive(Clone, Debug)]
pub struct Spec {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// Added to the inherited environment.
    pub env: Vec<(OsString, OsString)>,
    /// Taken out of it before.
    pub unset: Vec<OsString>,
    /// Nothing is inherited: `env` is all.
    pub bare: bool,
    /// A file, never a pipe: a program that does not read cannot block anybody.
    pub stdin: Option<PathBuf>,
}

/// A keeper that has just been started, with the owner's ends of everything.
#[derive(Debug)]
pub struct Spawned {
    pub keeper: Child,
    pub lifeline: UnixStream,
    pub stdout: Receiver,
    pub stderr: Receiver,
}

pub fn spawn<'a>(
    keeper: &Path,
    spec: &Spec,
    inherited: impl Iterator<Item = &'a File>,
) -> io::Result<Spawned> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let lifeline = UnixStream::from_std(ours)?;
    let (stdout, stdout_end) = io::pipe()?;
    let (stderr, stderr_end) = io::pipe()?;

    let mut command = Command::new(keeper);
    command
        .arg0("sage-keeper")
        .arg(KEEPER_ARG)
        .arg(spec.stdin.as_deref().unwrap_or(Path::new("-")))
        .arg("--")
        .arg(&spec.program)
        .args(&spec.args)
        .current_dir(&spec.cwd);
    if spec.bare {
        command.env_clear();
    }
    command
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(stdout_end))
        .stderr(Stdio::from(stderr_end))
        .process_group(0);
    for name in &spec.unset {
        if !spec.env.iter().any(|(own, _)| own == name) {
            command.env_remove(name);
        }
    }

    let guard = hold_spawns();
    let inherited = inherited.map(inheritable).collect::<io::Result<Vec<File>>>()?;
    let keeper = command.spawn();
    drop(inherited);
    drop(guard);

    Ok(Spawned {
        keeper: keeper?,
        lifeline,
        stdout: Receiver::from_owned_fd(stdout.into())?,
        stderr: Receiver::from_owned_fd(stderr.into())?,
    })
}

/// A duplicate without the close-on-exec flag: it shares the lock, and is closed again right after the start.
fn inheritable(lock: &File) -> io::Result<File> {
    let duplicate = lock.try_clone()?;
    rustix::io::fcntl_setfd(&duplicate, rustix::io::FdFlags::empty())?;
    Ok(duplicate)
}
