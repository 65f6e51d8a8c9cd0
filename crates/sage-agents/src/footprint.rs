//! What a step left in the project: a new commit, changed files. Compared with how it was before the step's first
//! attempt, so that an attempt that was cut off and went on later is not said to have done nothing.
//!
//! Files are compared by size, time and mode, as git's index does, and where these differ by mode and content. Ignored
//! files, caches of tools, `.git` and `.sage` do not count. A commit is new if no ref had it before. In a worktree the
//! branch tells: all that a step leaves there is committed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sage_core::digest::Digest;
use sage_core::port::{Changes, Head, StepCall, StepCx, Watch};
use sage_fence::{has_plain_rules, has_plain_rules_above, private};
use serde::{Deserialize, Serialize};

use crate::executor::ExecutorConfig;
use crate::worktree::Git;

/// Where the first attempt notes how the project was, beside the folders of the step's attempts.
const FILE: &str = "before.json";
/// What tools leave beside the sources; folders that say so themselves (`CACHEDIR.TAG`) are left out as well.
const CACHES: &[&str] = &[".git", ".sage", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache"];

/// Larger files are compared by size, time and mode alone.
const READ_BYTES: u64 = 16 << 20;
/// Digests and the ids of commits.
const MAX_BYTES: u64 = 1 << 20;
/// So many refs fit into a command line; of more, the newest count.
const REFS: &str = "--count=1000";

/// A project before a step.
#[derive(Debug, Serialize, Deserialize)]
pub struct Before {
    head: Option<String>,
    files: Option<Digest>,
    #[serde(default)]
    content: Option<Digest>,
    /// The commits of all refs.
    #[serde(default)]
    refs: Vec<String>,
}

/// How the files of a project look, without reading them; `None` if the project cannot be read. Results of runs in
/// `docs/specs` do not count.
pub fn look(project: &Path) -> Option<Digest> {
    digest(project, By::Look { specs: false }).ok()
}

/// Takes down how the project is, or reads what an earlier attempt of the step has taken down.
pub async fn before(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Option<Before> {
    let watch = cx.watch.as_ref()?;
    let file = cx.scratch.parent().map_or_else(|| PathBuf::from(FILE), |step| step.join(FILE));
    let again = call.attempt > 1 && !call.fresh;
    let known = || serde_json::from_slice(&private::read(&file, MAX_BYTES).ok()?).ok();
    if let Some(known) = again.then(known).flatten() {
        return Some(known);
    }
    let (head, refs) = match watch.head {
        true => (head(config, cx, call).await.unwrap_or_default(), refs(config, cx, call).await),
        false => (None, Vec::new()),
    };
    let files = files(&cx.project, By::Look { specs: true }).await;
    let before = Before { head, files, content: self::files(&cx.project, By::Content).await, refs };
    // Without it, an attempt that goes on after a crash is compared with its own beginning.
    let _ = serde_json::to_vec(&before).map(|text| private::write(&file, &text));
    Some(before)
}

/// Tells what is different now.
pub async fn tell(config: &ExecutorConfig, cx: &StepCx, call: &StepCall, before: Before) {
    let Some(watch) = &cx.watch else { return };
    let files = changed(&cx.project, &before).await;
    let head = if watch.head { compared(config, cx, call, before).await } else { None };
    watch.tell(Changes { files, head });
}

/// Of a worktree: `moved` says whether its branch has a commit of the step.
pub fn tell_worktree(watch: &Watch, moved: bool, base: &str) {
    let head = if moved { Head::New } else { Head::Old(base.to_string()) };
    watch.tell(Changes { files: Some(moved), head: Some(head) });
}

async fn compared(config: &ExecutorConfig, cx: &StepCx, call: &StepCall, before: Before) -> Option<Head> {
    let Some(now) = head(config, cx, call).await? else {
        let git = Git::new(config, cx, call).ok()?;
        let inside = git.ask(&cx.project, ["rev-parse", "--git-dir"]).await.ok()?;
        return Some(if inside.is_ok() { Head::Unborn } else { Head::NoRepository });
    };
    let mut known = before.refs;
    known.extend(before.head);
    if known.is_empty() {
        return Some(Head::New);
    }
    let git = Git::new(config, cx, call).ok()?;
    match git.new_commits(&cx.project, &known, &now).await {
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

/// Where all refs are.
async fn refs(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Vec<String> {
    let Ok(git) = Git::new(config, cx, call) else { return Vec::new() };
    let args = ["for-each-ref", "--sort=-committerdate", REFS, "--format=%(objectname)"];
    let Ok(Ok(answer)) = git.ask(&cx.project, args).await else { return Vec::new() };
    answer.lines().map(str::to_string).collect()
}

/// A file that was only touched, or written with the same content, has not changed.
async fn changed(project: &Path, before: &Before) -> Option<bool> {
    if files(project, By::Look { specs: true }).await? == before.files? {
        return Some(false);
    }
    match before.content {
        Some(content) => Some(files(project, By::Content).await? != content),
        None => Some(true),
    }
}

/// What two states of a file are compared by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Size, time and mode.
    Look { specs: bool },
    /// Mode and content.
    Content,
}

/// `None` if the project cannot be read.
async fn files(project: &Path, by: By) -> Option<Digest> {
    let project = project.to_path_buf();
    tokio::task::spawn_blocking(move || digest(&project, by).ok()).await.ok()?
}

fn digest(project: &Path, by: By) -> io::Result<Digest> {
    std::fs::read_dir(project)?;
    let above = has_plain_rules_above(project);
    let plain = above || has_plain_rules(project);
    let ignoring = |above| plain.then(|| seen(project, by, Ignored::ByRules { above })).flatten();
    let all = match ignoring(above) {
        // A folder that one above it ignores is a project all the same.
        Some(seen) if seen.is_empty() => ignoring(false),
        seen => seen,
    };
    let all = all.or_else(|| seen(project, by, Ignored::Nothing));
    Ok(Digest::of(&all.unwrap_or_default()))
}

/// What of a project is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ignored {
    /// As git does; `above`: by the rules of folders above, too.
    ByRules {
        above: bool,
    },
    Nothing,
}

/// `None` if there are rules that cannot be read.
fn seen(project: &Path, by: By, ignored: Ignored) -> Option<Vec<u8>> {
    let rules = ignored != Ignored::Nothing;
    let odd = Arc::new(AtomicBool::new(false));
    let odd_too = odd.clone();
    let may_enter = move |entry: &ignore::DirEntry| {
        let is_odd = rules && !has_plain_rules(entry.path());
        odd_too.fetch_or(is_odd, Ordering::Relaxed);
        !is_odd
    };
    let walk = ignore::WalkBuilder::new(project)
        .hidden(false)
        .require_git(false)
        .ignore(rules)
        .git_ignore(rules)
        .git_global(rules)
        .git_exclude(rules)
        .parents(ignored == Ignored::ByRules { above: true })
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(move |entry| !is_cache(entry) && (!is_folder(entry) || may_enter(entry)))
        .build();
    let mut text = Vec::new();
    for entry in walk.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let spec = by == (By::Look { specs: false }) && entry.path().starts_with(project.join("docs/specs"));
        if !meta.is_dir() && !spec {
            text.extend_from_slice(entry.path().as_os_str().as_encoded_bytes());
            text.extend_from_slice(&u64::from(meta.mode()).to_le_bytes());
            match (by == By::Content).then(|| content(&entry, &meta)).flatten() {
                Some(content) => text.extend_from_slice(content.to_string().as_bytes()),
                None => {
                    let facts = [meta.len(), meta.mtime() as u64, meta.mtime_nsec() as u64];
                    facts.iter().for_each(|fact| text.extend_from_slice(&fact.to_le_bytes()));
                }
            }
        }
    }
    (!odd.load(Ordering::Relaxed)).then_some(text)
}

fn is_folder(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// Of a link, where it leads.
fn content(entry: &ignore::DirEntry, meta: &std::fs::Metadata) -> Option<Digest> {
    if meta.file_type().is_symlink() {
        let to = std::fs::read_link(entry.path()).ok()?;
        return Some(Digest::of(to.as_os_str().as_encoded_bytes()));
    }
    let readable = meta.is_file() && meta.len() <= READ_BYTES;
    readable.then(|| std::fs::read(entry.path()).ok()).flatten().map(|bytes| Digest::of(&bytes))
}

fn is_cache(entry: &ignore::DirEntry) -> bool {
    let named = entry.file_name().to_str().is_some_and(|name| CACHES.contains(&name));
    named || (entry.depth() > 0 && is_folder(entry) && entry.path().join("CACHEDIR.TAG").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(project: &Path) -> Digest {
        digest(project, By::Look { specs: true }).unwrap()
    }

    // covers: R6
    #[test]
    fn a_file_that_was_only_touched_has_the_same_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.py");
        std::fs::write(&path, "1").unwrap();
        let both = || [By::Look { specs: true }, By::Content].map(|by| digest(dir.path(), by).unwrap());
        let [before, content] = both();
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(7);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_ne!(both()[0], before);
        assert_eq!(both()[1], content);
        std::fs::write(&path, "2").unwrap();
        assert_ne!(both()[1], content);
    }

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
        let before = look(dir.path());
        write("src/__pycache__/a.pyc", "x");
        write("out/CACHEDIR.TAG", "");
        write("out/a.o", "x");
        write(".sage/state/x", "x");
        write("run.log", "x");
        assert_eq!(look(dir.path()), before);
        write("src/a.py", "22");
        let changed = look(dir.path());
        assert_ne!(changed, before);
        write(".github/ci.yml", "x");
        assert_ne!(look(dir.path()), changed, "hidden files count");
        write(".gitignore", "*\n");
        write("inner/a.py", "1");
        let inner = dir.path().join("inner");
        let before = look(&inner);
        write("inner/b.py", "1");
        assert_ne!(look(&inner), before, "a project in an ignored folder");
    }
}
