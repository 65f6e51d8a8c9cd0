//! Runs git to look at a repository that may have come from elsewhere: no hooks, no fsmonitor, no filters of the
//! repository's own configuration, nothing fetched, no locks.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::filters::Filters;
use super::git::{QUIET, SETTINGS, caller};
use crate::agent::search_path;

/// What git prints, or what it complains about.
pub fn git<S: AsRef<OsStr>>(cwd: &Path, args: impl IntoIterator<Item = S>) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&git_with(cwd, args, &[])?).trim_end().to_string())
}

/// The same, byte for byte, with more variables.
pub fn git_with<S: AsRef<OsStr>>(
    cwd: &Path,
    args: impl IntoIterator<Item = S>,
    variables: &[(OsString, OsString)],
) -> Result<Vec<u8>, String> {
    git_reading(cwd, args, variables, None)
}

/// The same, with a file as its standard input.
pub fn git_reading<S: AsRef<OsStr>>(
    cwd: &Path,
    args: impl IntoIterator<Item = S>,
    variables: &[(OsString, OsString)],
    stdin: Option<&Path>,
) -> Result<Vec<u8>, String> {
    let mut command = command(cwd);
    if let Some(path) = stdin {
        let file = std::fs::File::open(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        command.stdin(Stdio::from(file));
    }
    command.envs(Filters::of(cwd)?.variables());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.args(args);
    let output = output(command)?;
    if output.status.success() {
        return Ok(output.stdout);
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
