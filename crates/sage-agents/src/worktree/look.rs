//! Runs git to look at a repository that may have come from elsewhere: no hooks, no fsmonitor, no filters of the
//! repository's own configuration, nothing fetched, no locks.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::filters::Filters;
use super::git::{QUIET, SETTINGS, caller};
use crate::agent::search_path;

/// What git prints, or what it complains about.
pub fn git<S: AsRef<OsStr>>(cwd: &Path, args: impl IntoIterator<Item = S>) -> Result<String, String> {
    let mut command = command(cwd);
    command.envs(Filters::of(cwd)?.variables());
    command.args(args);
    let output = output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("git said: {}", said.lines().next().unwrap_or("nothing")))
}

/// Filters of the repository are still in it.
pub(super) fn command(cwd: &Path) -> Command {
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    for name in caller() {
        command.env_remove(name);
    }
    command.current_dir(cwd).envs(QUIET.iter().copied()).env("GIT_OPTIONAL_LOCKS", "0");
    command.env("PATH", search_path()).stdin(Stdio::null());
    command
}

pub(super) fn output(mut command: Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("git: {error}"))
}
