//! A project as it was at a commit: its files are laid out in a temporary folder and read like any other project.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::baseline::Baseline;
use super::order;
use crate::git::{git, git_with};
use crate::request::Request;

/// A larger repository takes too long.
const MOST_FILES: usize = 20_000;

/// A folder that goes with its value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nothing if git cannot tell.
pub fn baseline(request: &Request, commit: &str) -> Option<Baseline> {
    let project = &request.project;
    let files = git(project, &["ls-tree", "-r", "--name-only", "-z", "--full-tree", commit]).ok()?;
    (files.split('\0').count() <= MOST_FILES).then_some(())?;
    let folder = Folder(std::env::temp_dir().join(format!("sage-commit-{}", std::process::id())));
    create(&folder.0)?;
    let tree = lay_out(project, commit, &folder.0)?;
    Baseline::take(&tree, &order::named_lines(request))
}

/// A new folder, for this user alone.
fn create(path: &Path) -> Option<()> {
    std::fs::DirBuilder::new().mode(0o700).create(path).ok()
}

/// Where the project's files are below `folder`.
fn lay_out(project: &Path, commit: &str, folder: &Path) -> Option<PathBuf> {
    let index = folder.join("index");
    let files = folder.join("files");
    create(&files)?;
    let run = |arguments: &[&str]| git_with(project, arguments, &[("GIT_INDEX_FILE", &index)]).ok();
    run(&["read-tree", commit])?;
    run(&["checkout-index", "--all", "--force", &format!("--prefix={}/", files.to_str()?)])?;
    let prefix = git(project, &["rev-parse", "--show-prefix"]).unwrap_or_default();
    Some(files.join(prefix.trim_end_matches('\n')))
}
