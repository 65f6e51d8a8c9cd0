//! What the machine has: git, descriptors, a clock, a place for what all projects share.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};
use sage_engine::user_key;

use super::check::Check;
use crate::cli::context;
use crate::cli::failure::Failure;
use crate::trust::user;
use sage_agents::agent::search_path;
use sage_agents::{Spec, ask_aside, worktree};

const GIT_PATIENCE: Duration = Duration::from_secs(5);
/// `git worktree` with all that sage asks of it.
const GIT_VERSION: (u32, u32) = (2, 20);
/// Some ten for each step that runs, and a few hundred for everything else.
const DESCRIPTORS: u64 = 1_024;
/// No clock is right that is before this program: 2026-01-01.
const BUILT_S: u64 = 1_767_225_600;

pub fn checks(directory: Option<&Path>) -> Result<Vec<Check>, Failure> {
    let runtime = context::runtime()?;
    let version = runtime.block_on(git_version());
    runtime.shutdown_background();
    Ok(vec![git(version), repository(directory), descriptors(), clock(), shared(), key()])
}

/// State is sealed with it. Looking creates none.
fn key() -> Check {
    let Some(dir) = user::dir() else {
        return Check::warn("key", "neither XDG_STATE_HOME nor HOME is set: state cannot be sealed")
            .hint("XDG_STATE_HOME=<a directory of yours>");
    };
    match user_key::read(&dir) {
        Ok(Some(_)) => Check::good("key", format!("{}: state is sealed with it", dir.join("key").display())),
        Ok(None) => Check::good("key", "none yet: the first run creates it"),
        Err(error) => {
            Check::warn("key", error.to_string()).hint(format!("chmod 600 {}", dir.join("key").display()))
        }
    }
}

async fn git_version() -> Option<String> {
    let git = Spec::new("git", ["--version"], Path::new("/")).with([("PATH", search_path())]);
    let said = ask_aside(git, GIT_PATIENCE).await?;
    Some(said.text().split_whitespace().nth(2)?.to_string())
}

fn git(version: Option<String>) -> Check {
    let Some(version) = version else {
        return Check::warn("git", "there is no git: agents cannot work in worktrees of their own")
            .hint("install git");
    };
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < GIT_VERSION {
        let says = format!("git {version} is older than {}.{}", GIT_VERSION.0, GIT_VERSION.1);
        return Check::warn("git", says).hint("install a newer git");
    }
    Check::good("git", format!("git {version}"))
}

/// As a run finds it.
fn repository(directory: Option<&Path>) -> Check {
    let here = directory.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default();
    match worktree::repository(&here) {
        Ok(top) => Check::good("repository", top.display().to_string()),
        Err(why) => Check::warn("repository", format!("{why}: agents cannot work in worktrees of their own"))
            .hint(why.hint()),
    }
}

fn descriptors() -> Check {
    let most = getrlimit(Resource::Nofile).maximum;
    match most {
        Some(most) if most < DESCRIPTORS => Check::warn(
            "files",
            format!("only {most} files may be open at once: fewer steps can run together"),
        )
        .hint(format!("ulimit -Hn {DESCRIPTORS}    (as root, or in limits.conf)")),
        Some(most) => Check::good("files", format!("{most} may be open at once")),
        None => Check::good("files", "any number may be open at once"),
    }
}

/// Retries, quotas and timeouts live by it.
fn clock() -> Check {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let shown = sage_core::wire::rfc3339(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    if now.as_secs() < BUILT_S {
        return Check::bad("clock", format!("it says {shown}, which is over"))
            .hint("set the clock, e.g. `timedatectl set-ntp true`");
    }
    Check::good("clock", shown)
}

fn shared() -> Check {
    let Some(dir) = user::dir() else {
        let says = "there is no home directory: limits of providers hold in each project alone";
        return Check::warn("shared", says).hint("XDG_STATE_HOME=<a directory of yours>");
    };
    let shown = dir.display();
    match writable(&dir) {
        Ok(()) => Check::good("shared", format!("{shown}: limits of providers, for all projects")),
        Err(why) => {
            let says =
                format!("cannot write in `{shown}` ({why}): limits of providers hold in each project alone");
            Check::warn("shared", says).hint("XDG_STATE_HOME=<a directory of yours>")
        }
    }
}

/// Whether something could be written there, now or after its directories are made. Nothing is made here.
pub fn writable(dir: &Path) -> Result<(), String> {
    let parents: Vec<PathBuf> = dir.ancestors().map(Path::to_path_buf).collect();
    let existing =
        parents.iter().find(|path| path.symlink_metadata().is_ok()).ok_or("there is no such place")?;
    if !existing.is_dir() {
        return Err(format!("`{}` is not a directory", existing.display()));
    }
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| error.to_string())
}
