//! Runs git once: no pager, no prompt, no programs that a repository's settings name, at most some seconds and bytes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A log of thousands of commits takes a fraction of this.
const DEADLINE: Duration = Duration::from_secs(8);
/// What comes after is not read; whole lines up to there are.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Why there is no history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Absent {
    #[error("git is not installed")]
    NoGit,
    #[error("the project is no git repository, or has no commits")]
    NoHistory,
    #[error("git did not answer within {} seconds", DEADLINE.as_secs())]
    Slow,
}

/// What git prints.
pub(crate) fn git(project: &Path, arguments: &[&str]) -> Result<String, Absent> {
    let mut child = command(project).args(arguments).spawn().map_err(|_| Absent::NoGit)?;
    let out = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.map(|out| out.take(MAX_BYTES).read_to_end(&mut bytes));
        // Nobody waits any more after the deadline, and then nobody is told.
        let _ = sender.send(read.is_some_and(|read| read.is_ok()).then_some(bytes));
    });
    let bytes = receiver.recv_timeout(DEADLINE);
    let enough = matches!(&bytes, Ok(Some(bytes)) if bytes.len() as u64 == MAX_BYTES);
    if enough || bytes.is_err() {
        // It may have ended by itself just now.
        let _ = child.kill();
    }
    let ended = child.wait().is_ok_and(|status| status.success());
    match bytes {
        Ok(Some(bytes)) if ended || enough => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(_) => Err(Absent::NoHistory),
        Err(_) => Err(Absent::Slow),
    }
}

fn command(project: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(project).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A repository or a caller may name programs to run, other folders to look in, or servers to ask.
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_str().is_some_and(|name| name.starts_with("GIT_"))) {
        command.env_remove(name);
    }
    command
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C");
    for setting in [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.quotePath=false",
        "log.showSignature=false",
    ] {
        command.args(["-c", setting]);
    }
    command.arg("--no-pager");
    command
}
