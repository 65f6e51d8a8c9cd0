//! Runs git to look at a repository that may have come from elsewhere: no hooks, no fsmonitor, no filters of the
//! repository's own configuration, nothing fetched, no locks.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use super::filters::Filters;
use super::git::{QUIET, SETTINGS, caller};
use crate::agent::search_path;
use crate::process::{Said, Silent, Spec, ask_at_length};

/// A configuration can include a pipe, and then git waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// A diff can be long.
const KEPT_BYTES: u64 = 64 << 20;

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
    let spec = command(cwd, args).with(Filters::of(cwd)?.variables()).with(variables.iter().cloned());
    let spec = Spec { stdin: stdin.map(Path::to_path_buf), ..spec };
    let said = output(spec)?;
    if said.succeeded() {
        return Ok(said.stdout);
    }
    let said = String::from_utf8_lossy(&said.stderr);
    Err(format!("git said: {}", said.lines().next().unwrap_or("nothing")))
}

/// Filters of the repository are still in it.
pub(super) fn command<S: AsRef<OsStr>>(cwd: &Path, args: impl IntoIterator<Item = S>) -> Spec {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(OsString::from);
    let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
    let spec = Spec::new("git", settings.chain(args), cwd).with(QUIET.iter().copied());
    let spec = spec.with([("GIT_OPTIONAL_LOCKS", "0")]).with([("PATH", search_path())]);
    Spec { unset: caller().into_iter().collect(), ..spec }
}

pub(super) fn output(command: Spec) -> Result<Said, String> {
    ask_git(command).map_err(|error| format!("git: {error}"))
}

pub(super) fn ask_git(command: Spec) -> Result<Said, Silent> {
    ask_at_length(&command, PATIENCE, KEPT_BYTES)
}
