//! What worktrees share with the user's checkout, and how it is kept from the steps: the stash, and the
//! branch that the user has checked out.
//!
//! A hook in the step's environment refuses to change them. Git drops a stash entry without asking any hook,
//! so entries are remembered before an attempt and brought back after it. Other hooks are off in a worktree.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sage_fence::private;
use serde::{Deserialize, Serialize};

use super::git::Git;
use super::lock;
use super::take::Repository;
use crate::outcome::Miss;

const HOOKS: &str = ".hooks";

/// One entry of the user's stash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stashed {
    pub commit: String,
    pub message: String,
}

/// Newest first.
pub async fn stash(git: &Git, repository: &Repository) -> Result<Vec<Stashed>, Miss> {
    let args = ["stash", "list", "--format=%H%x09%gs"];
    let list = git.run("the stash could not be read", &repository.top, args).await?;
    let entry = |line: &str| {
        let (commit, message) = line.split_once('\t')?;
        Some(Stashed { commit: commit.into(), message: message.into() })
    };
    Ok(list.lines().filter_map(entry).collect())
}

/// Brings back what is missing. One at a time, so that nobody brings back the same entry twice.
pub async fn restore_stash(git: &Git, repository: &Repository, before: &[Stashed]) -> Result<(), Miss> {
    let missing = |now: &[Stashed]| -> Vec<Stashed> {
        let is_there = |entry: &&Stashed| now.iter().any(|other| other.commit == entry.commit);
        before.iter().filter(|entry| !is_there(entry)).cloned().collect()
    };
    if before.is_empty() || missing(&stash(git, repository).await?).is_empty() {
        return Ok(());
    }
    let lock = lock::hold(&repository.common_dir, git.cx()).await?;
    let git = git.clone().holding(lock);
    let now = stash(&git, repository).await?;
    if now.is_empty() {
        // The hook kept the name of the last entry, git has dropped its line: such a half is started anew.
        let _ = git.ask(&repository.top, ["update-ref", "-d", "refs/stash"]).await?;
    }
    for entry in missing(&now).iter().rev() {
        let mut args = git.author(&repository.top).await?;
        args.extend(["stash", "store", "--quiet", "-m", &entry.message, &entry.commit].map(String::from));
        git.run("an entry of the stash could not be brought back", &repository.top, args).await?;
    }
    Ok(())
}

/// Writes the hook for the steps of a run.
pub fn write_hook(run_dir: &Path, repository: &Repository, user_branch: Option<&str>) -> io::Result<()> {
    let dir = run_dir.join(HOOKS);
    private::create_dir_all(&dir)?;
    let own = user_branch.map(|name| format!("|{}", quoted(name))).unwrap_or_default();
    let text = format!(
        "#!/bin/sh\n\
         # Written by sage for steps in worktrees: the user's stash and branch are not theirs to change.\n\
         [ \"$1\" = prepared ] || exit 0\n\
         while read -r _ _ ref; do\n\
         \tcase \"$ref\" in refs/stash{own}) ;; *) continue ;; esac\n\
         \t[ \"$(git rev-parse --path-format=absolute --git-common-dir)\" = {} ] || continue\n\
         \techo \"sage: $ref belongs to the user's checkout; commit on the branch of this worktree\" >&2\n\
         \texit 1\n\
         done\n",
        quoted(&repository.common_dir.to_string_lossy())
    );
    // Renamed into its place, from a name of its own: steps of the same run use and write it at once.
    let new = dir.join(format!(".new-{}", ulid::Ulid::generate()));
    let mut file = private::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o700))?;
    private::rename(&new, &dir.join("reference-transaction"))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What ties git to one repository; a step in a worktree must not inherit it (a hook has such variables).
pub fn unwanted_variables() -> Vec<OsString> {
    let names = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    ];
    names.map(OsString::from).to_vec()
}

/// For the step's own git: the hook, and where to stop looking for a repository. A step that loses its
/// worktree must not find the user's. `project` is the one of the attempt: in the worktree.
pub fn variables(project: &Path) -> Vec<(OsString, OsString)> {
    let tree = project.ancestors().find(|dir| dir.join(".git").exists());
    let Some(run_dir) = tree.and_then(Path::parent) else { return Vec::new() };
    let given = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse::<u32>().ok());
    let number = given.unwrap_or(0);
    vec![
        ("GIT_CEILING_DIRECTORIES".into(), run_dir.into()),
        ("GIT_CONFIG_COUNT".into(), (number + 1).to_string().into()),
        (format!("GIT_CONFIG_KEY_{number}").into(), "core.hooksPath".into()),
        (format!("GIT_CONFIG_VALUE_{number}").into(), run_dir.join(HOOKS).into()),
    ]
}
