//! Runs git to look at a repository that may have come from elsewhere: no hooks, no fsmonitor, no filters of the
//! repository's own configuration, nothing fetched, no locks.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::git::{SETTINGS, caller};
use crate::agent::search_path;

/// What git prints, or what it complains about.
pub fn git<S: AsRef<OsStr>>(cwd: &Path, args: impl IntoIterator<Item = S>) -> Result<String, String> {
    let mut command = command(cwd);
    without_filters(&mut command, &own_filters(cwd)?);
    command.args(args);
    let output = output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("git said: {}", said.lines().next().unwrap_or("nothing")))
}

/// Names of the settings of the repository that are programs for the content of its files. Those of the user's own
/// configuration are not among them.
fn own_filters(cwd: &Path) -> Result<Vec<String>, String> {
    let mut list = command(cwd);
    list.args(["config", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\."]);
    // Without any, git prints nothing.
    let printed = output(list)?.stdout;
    let text = String::from_utf8_lossy(&printed);
    let mut fields = text.split('\0');
    let mut names = Vec::new();
    while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
        if matches!(scope, "local" | "worktree") {
            names.push(name.to_string());
        }
    }
    Ok(names)
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

fn command(cwd: &Path) -> Command {
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    for name in caller() {
        command.env_remove(name);
    }
    let quiet = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")];
    let passive = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")];
    command.current_dir(cwd).envs(quiet).envs(passive).env("PATH", search_path()).stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("git: {error}"))
}
