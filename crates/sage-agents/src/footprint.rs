//! What a step left in the project: a new commit, changed files. Compared with how it was before the step's first
//! attempt, so that an attempt that was cut off and went on later is not said to have done nothing.
//!
//! Files are compared by size, time and mode, as git's index does. What git ignores, caches of tools, `.git` and
//! `.sage` do not count. In a worktree the branch tells: all that a step leaves there is committed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sage_core::digest::Digest;
use sage_core::port::{Changes, Head, StepCall, StepCx, Watch};
use serde::{Deserialize, Serialize};

use crate::executor::ExecutorConfig;
use crate::worktree::Git;

/// Where the first attempt notes how the project was, beside the folders of the step's attempts.
const FILE: &str = "before.json";
/// What tools leave beside the sources; folders that say so themselves (`CACHEDIR.TAG`) are left out as well.
const CACHES: &[&str] = &[".git", ".sage", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache"];

/// A project before a step.
#[derive(Debug, Serialize, Deserialize)]
pub struct Before {
    head: Option<String>,
    files: Option<Digest>,
}

/// Takes down how the project is, or reads what an earlier attempt of the step has taken down.
pub async fn before(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Option<Before> {
    let watch = cx.watch.as_ref()?;
    let file = cx.scratch.parent().map_or_else(|| PathBuf::from(FILE), |step| step.join(FILE));
    let again = call.attempt > 1 && !call.fresh;
    let known = || serde_json::from_slice(&std::fs::read(&file).ok()?).ok();
    if let Some(known) = again.then(known).flatten() {
        return Some(known);
    }
    let head = if watch.head { head(config, cx, call).await.unwrap_or_default() } else { None };
    let before = Before { head, files: files(&cx.project).await };
    // Without it, an attempt that goes on after a crash is compared with its own beginning.
    let _ = serde_json::to_vec(&before).map(|text| sage_fence::private::write(&file, &text));
    Some(before)
}

/// Tells what is different now.
pub async fn tell(config: &ExecutorConfig, cx: &StepCx, call: &StepCall, before: Before) {
    let Some(watch) = &cx.watch else { return };
    let now = files(&cx.project).await;
    let files = before.files.zip(now).map(|(before, now)| before != now);
    let head = if watch.head { compared(config, cx, call, before.head).await } else { None };
    watch.tell(Changes { files, head });
}

/// Of a worktree: `moved` says whether its branch has a commit of the step.
pub fn tell_worktree(watch: &Watch, moved: bool, base: &str) {
    let head = if moved { Head::New } else { Head::Old(base.to_string()) };
    watch.tell(Changes { files: Some(moved), head: Some(head) });
}

async fn compared(
    config: &ExecutorConfig,
    cx: &StepCx,
    call: &StepCall,
    before: Option<String>,
) -> Option<Head> {
    let Some(now) = head(config, cx, call).await? else {
        let git = Git::new(config, cx, call).ok()?;
        let inside = git.ask(&cx.project, ["rev-parse", "--git-dir"]).await.ok()?;
        return Some(if inside.is_ok() { Head::Unborn } else { Head::NoRepository });
    };
    let Some(before) = before else { return Some(Head::New) };
    let git = Git::new(config, cx, call).ok()?;
    match git.new_commits(&cx.project, &before, &now).await {
        Some(true) => Some(Head::New),
        Some(false) => Some(Head::Old(now)),
        None => None,
    }
}

/// Where HEAD is; `Some(None)` without a commit or a repository, `None` where git cannot be asked.
async fn head(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Option<Option<String>> {
    let git = Git::new(config, cx, call).ok()?;
    let answer = git.ask(&cx.project, ["rev-parse", "--verify", "--quiet", "HEAD"]).await.ok()?;
    Some(answer.ok())
}

/// `None` if the project cannot be read.
async fn files(project: &Path) -> Option<Digest> {
    let project = project.to_path_buf();
    tokio::task::spawn_blocking(move || digest(&project).ok()).await.ok()?
}

fn digest(project: &Path) -> io::Result<Digest> {
    std::fs::read_dir(project)?;
    let seen = seen(project, true);
    // A folder that one above it ignores is a project all the same.
    let all = if seen.is_empty() { self::seen(project, false) } else { seen };
    Ok(Digest::of(&all))
}

/// `above`: whether folders above the project say what is ignored, too.
fn seen(project: &Path, above: bool) -> Vec<u8> {
    let walk = ignore::WalkBuilder::new(project)
        .hidden(false)
        .require_git(false)
        .parents(above)
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(|entry| !is_cache(entry))
        .build();
    let mut text = Vec::new();
    for entry in walk.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if !meta.is_dir() {
            text.extend_from_slice(entry.path().as_os_str().as_encoded_bytes());
            let facts = [meta.len(), meta.mtime() as u64, meta.mtime_nsec() as u64, u64::from(meta.mode())];
            facts.iter().for_each(|fact| text.extend_from_slice(&fact.to_le_bytes()));
        }
    }
    text
}

fn is_cache(entry: &ignore::DirEntry) -> bool {
    let named = entry.file_name().to_str().is_some_and(|name| CACHES.contains(&name));
    let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    named || (entry.depth() > 0 && folder && entry.path().join("CACHEDIR.TAG").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn files_count_and_what_tools_leave_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("src/a.py", "1");
        write(".gitignore", "*.log\n");
        let before = digest(dir.path()).unwrap();
        write("src/__pycache__/a.pyc", "x");
        write("out/CACHEDIR.TAG", "");
        write("out/a.o", "x");
        write(".sage/state/x", "x");
        write("run.log", "x");
        assert_eq!(digest(dir.path()).unwrap(), before);
        write("src/a.py", "22");
        let changed = digest(dir.path()).unwrap();
        assert_ne!(changed, before);
        write(".github/ci.yml", "x");
        assert_ne!(digest(dir.path()).unwrap(), changed, "hidden files count");
        write(".gitignore", "*\n");
        write("inner/a.py", "1");
        let inner = dir.path().join("inner");
        let before = digest(&inner).unwrap();
        write("inner/b.py", "1");
        assert_ne!(digest(&inner).unwrap(), before, "a project in an ignored folder");
    }
}
