//! Whose project this is. Configuration that another user wrote is refused, as git refuses repositories: on a shared
//! machine anybody can put a `sage.toml` into a directory above. Git's own `safe.directory` says what is all right.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_agents::{Spec, ask};

use crate::cli::failure::Failure;
use crate::display::text::argument;

/// Files that are obeyed because of where they are.
const FILES: [&str; 2] = ["sage.toml", ".mcp.json"];

const GIT_PATIENCE: Duration = Duration::from_secs(10);

/// `start` is where the project was looked for.
pub fn check(root: &Path, start: &Path) -> Result<(), Failure> {
    let Some((path, uid)) = FILES.iter().find_map(|name| of_another(&root.join(name))) else { return Ok(()) };
    if is_safe(root, &safe_directories()) {
        return Ok(());
    }
    let shown = path.display();
    let message = format!("`{shown}` belongs to another user (uid {uid}), so Sage does not use this project");
    let place = argument(&root.display().to_string());
    let failure = Failure::usage(message).hint(format!(
        "git config --global --add safe.directory {place}    (if you trust everyone who can write there)"
    ));
    Err(if root == start {
        failure
    } else {
        failure.hint("mkdir .sage    (if this directory is a project of its own)")
    })
}

/// The file with its owner, if that is neither this user nor root.
fn of_another(path: &Path) -> Option<(PathBuf, u32)> {
    let me = rustix::process::geteuid().as_raw();
    // As in git: root by sudo may work on the project of the user who called sudo.
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).filter(|_| me == 0);
    let owners = [path.symlink_metadata().ok()?.uid(), path.metadata().ok()?.uid()];
    let uid = owners.into_iter().find(|uid| ![Some(me), Some(0), caller].contains(&Some(*uid)))?;
    Some((path.to_path_buf(), uid))
}

/// What the user's own configuration of git calls safe. None without git.
fn safe_directories() -> Vec<String> {
    let words = ["config", "--show-scope", "--type=path", "-z", "--get-all", "safe.directory"];
    let git = Spec::new("git", words, Path::new("/"));
    let git = git.with([("PATH", sage_agents::agent::search_path()), ("LC_ALL", "C".into())]);
    let names = std::env::vars_os().map(|(name, _)| name);
    let unset = names.filter(|name| name.to_string_lossy().starts_with("GIT_")).collect();
    let text = ask(&Spec { unset, ..git }, GIT_PATIENCE).map(|said| said.text()).unwrap_or_default();
    let mut fields = text.split('\0');
    let mut found: Vec<String> = Vec::new();
    while let (Some(scope), Some(value)) = (fields.next(), fields.next()) {
        match (scope, value) {
            // An empty one takes back what came before.
            ("global" | "system", "") => found.clear(),
            ("global" | "system", value) => found.push(value.to_string()),
            _ => {}
        }
    }
    found
}

fn is_safe(root: &Path, safe: &[String]) -> bool {
    let below = |dir: &str| dir.strip_suffix("/*").is_some_and(|dir| root.starts_with(dir));
    safe.iter().any(|dir| dir == "*" || Path::new(dir) == root || below(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn what_is_safe_is_named_as_in_git() {
        let is_safe = |dir: &str| is_safe(Path::new("/srv/team/shop"), &[dir.to_string()]);
        assert!(is_safe("*") && is_safe("/srv/team/shop") && is_safe("/srv/team/shop/") && is_safe("/srv/*"));
        assert!(!is_safe("/srv/team") && !is_safe("/srv/team/shop2") && !is_safe("/other/*"));
    }
}
