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
    #[error("git could not be started: {0}")]
    NotStarted(String),
    #[error("the project is no git repository, or has no commits")]
    NoHistory,
    #[error("git did not answer within {} seconds", DEADLINE.as_secs())]
    Slow,
}

/// What git prints.
pub(crate) fn git(project: &Path, arguments: &[&str]) -> Result<String, Absent> {
    git_with(project, arguments, &[])
}

/// With these variables.
pub(crate) fn git_with(
    project: &Path,
    arguments: &[&str],
    variables: &[(&str, &Path)],
) -> Result<String, Absent> {
    let mut command = command(project);
    command.args(arguments).envs(variables.iter().copied());
    without_filters(&mut command, &own_filters(project)?);
    run(command)
}

/// Settings of the repository that name programs for the content of its files. A filter of the user's own
/// configuration is not among them.
fn own_filters(project: &Path) -> Result<Vec<String>, Absent> {
    let mut list = command(project);
    list.args(["config", "--show-scope", "--name-only", "--get-regexp", "^filter\\."]);
    let text = match run(list) {
        Ok(text) => text,
        // There are none.
        Err(Absent::NoHistory) => return Ok(Vec::new()),
        Err(absent) => return Err(absent),
    };
    let own = text.lines().filter_map(|line| line.split_once('\t'));
    let own = own.filter(|(scope, _)| matches!(*scope, "local" | "worktree"));
    Ok(own.map(|(_, name)| name.to_string()).collect())
}

/// As variables, because a name may have any character.
fn without_filters(command: &mut Command, names: &[String]) {
    command.env("GIT_CONFIG_COUNT", names.len().to_string());
    for (number, name) in names.iter().enumerate() {
        let value = if name.ends_with(".required") { "false" } else { "" };
        command.env(format!("GIT_CONFIG_KEY_{number}"), name);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
}

fn run(mut command: Command) -> Result<String, Absent> {
    let mut child = command.spawn().map_err(not_started)?;
    let out = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    let reading = std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = out.map(|out| out.take(MAX_BYTES).read_to_end(&mut bytes));
        // Nobody waits any more after the deadline, and then nobody is told.
        let _ = sender.send(read.is_some_and(|read| read.is_ok()).then_some(bytes));
    });
    if let Err(error) = reading {
        let _ = child.kill();
        let _ = child.wait();
        return Err(not_started(error));
    }
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

fn not_started(error: std::io::Error) -> Absent {
    match error.kind() {
        std::io::ErrorKind::NotFound => Absent::NoGit,
        _ => Absent::NotStarted(error.to_string()),
    }
}

/// Without relative folders: the working directory is the project.
fn search_path() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let absolute = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let path = std::env::join_paths(absolute).unwrap_or_default();
    // An empty one would mean the working directory.
    if path.is_empty() { "/usr/local/bin:/usr/bin:/bin".into() } else { path }
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
        .env("LC_ALL", "C")
        .env("PATH", search_path());
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
