//! What the files that a step declares amount to: one digest of their names and contents.
//!
//! Walked as git sees the project (ignored files are no part of it, nor is `.sage`). Contents are read once per
//! process as long as nothing about a file changes. Large files, and all after a bound, count by size and time.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::OFlags;
use sage_core::digest::Digest;
use sage_fence::{has_plain_rules, has_plain_rules_above};

use crate::vfs::open_regular;

/// A larger file counts by size and time.
const FILE_BYTES: u64 = 16 << 20;
/// So much is read for one step; what comes after counts by size and time.
const TOTAL_BYTES: u64 = 256 << 20;

/// What tells that a file has not been written since: its number, its size, and two times. The second is that of
/// any change, which nobody can set back.
type Stamp = (u64, u64, (i64, i64), (i64, i64));

#[derive(Debug, Default)]
pub struct Memo {
    contents: Mutex<HashMap<PathBuf, (Stamp, Digest)>>,
    /// Of one moment: nobody writes meanwhile, so the same globs are the same files.
    moment: Option<Mutex<HashMap<Vec<String>, Declared>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    pub digest: Digest,
    /// Some of them count by size and time only.
    pub by_time: bool,
}

/// `Err` if a glob cannot be read.
pub fn declared(project: &Path, sage: &Path, globs: &[String], memo: &Memo) -> Result<Declared, String> {
    let moment = || memo.moment.as_ref().map(|all| all.lock().unwrap_or_else(PoisonError::into_inner));
    if let Some(known) = moment().and_then(|all| all.get(globs).copied()) {
        return Ok(known);
    }
    let found = look(project, sage, globs, memo)?;
    moment().map(|mut all| all.insert(globs.to_vec(), found));
    Ok(found)
}

fn look(project: &Path, sage: &Path, globs: &[String], memo: &Memo) -> Result<Declared, String> {
    let wanted = matcher(project, globs)?;
    let (mut digests, mut read, mut by_time) = (Vec::new(), 0u64, false);
    for path in walk(project, sage, &wanted) {
        // Gone since the walk: it is as if it had not been there.
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        let name = path.strip_prefix(project).unwrap_or(&path);
        digests.push(Digest::of(name.as_os_str().as_encoded_bytes()));
        if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap_or_default();
            digests.push(Digest::of(target.as_os_str().as_encoded_bytes()));
            continue;
        }
        // Something else took its place since the walk.
        if !meta.is_file() {
            continue;
        }
        let large = meta.len() > FILE_BYTES || read + meta.len() > TOTAL_BYTES;
        let content = if large { None } else { memo.content(&path, &meta) };
        match content {
            Some(digest) => {
                read += meta.len();
                digests.push(digest);
            }
            None => {
                by_time = true;
                let known = (meta.len(), meta.mtime(), meta.mtime_nsec());
                digests.push(Digest::of(format!("{known:?}").as_bytes()));
            }
        }
    }
    Ok(Declared { digest: Digest::of_all(&digests), by_time })
}

fn stamp(meta: &std::fs::Metadata) -> Stamp {
    (meta.ino(), meta.len(), (meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()))
}

impl Memo {
    pub fn of_a_moment() -> Memo {
        Memo { moment: Some(Mutex::default()), ..Memo::default() }
    }

    fn content(&self, path: &Path, meta: &std::fs::Metadata) -> Option<Digest> {
        let stamp = stamp(meta);
        if let Some((known, digest)) = self.known().get(path)
            && *known == stamp
        {
            return Some(*digest);
        }
        let file = open_regular(path, OFlags::RDONLY).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
        let digest = Digest::of(&bytes);
        self.known().insert(path.to_owned(), (stamp, digest));
        Some(digest)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Stamp, Digest)>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn matcher(project: &Path, globs: &[String]) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(project);
    for glob in globs {
        let bad = |error: ignore::Error| format!("`cache.files`: `{}`: {error}", glob.escape_debug());
        builder.add(&whole_folder(project, glob)).map_err(bad)?;
    }
    builder.build().map_err(|error| format!("`cache.files`: {error}"))
}

/// `src` and `src/` mean all that is in it.
fn whole_folder(project: &Path, glob: &str) -> String {
    let (not, name) = glob.strip_prefix('!').map_or(("", glob), |name| ("!", name));
    let bare = name.trim_start_matches("./").trim_end_matches('/');
    let folder = name.ends_with('/') || (!bare.is_empty() && project.join(bare).is_dir());
    if folder { format!("{not}/{bare}/**") } else { format!("{not}{}", name.trim_start_matches("./")) }
}

fn walk(project: &Path, sage: &Path, wanted: &Override) -> Vec<PathBuf> {
    let sage = sage.to_owned();
    let mut walk = WalkBuilder::new(project);
    walk.hidden(false).ignore(false).git_global(false).require_git(false).sort_by_file_path(Path::cmp);
    walk.filter_entry(move |entry| {
        let own = entry.path() == sage || entry.file_name() == ".sage" || entry.file_name() == ".git";
        !(entry.depth() > 0 && own) && has_plain_rules(entry.path())
    });
    let (plain, above) = (has_plain_rules(project), has_plain_rules_above(project));
    walk.git_ignore(plain).git_exclude(plain).parents(above);
    // Of pipes, sockets and devices nothing can be read.
    let plain = |kind: std::fs::FileType| kind.is_file() || kind.is_symlink();
    let files = walk.build().flatten().filter(|entry| entry.file_type().is_some_and(plain));
    files.map(|entry| entry.into_path()).filter(|path| !wanted.matched(path, false).is_ignore()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(project: &Path, globs: &[&str]) -> Digest {
        let globs: Vec<String> = globs.iter().map(ToString::to_string).collect();
        declared(project, &project.join(".sage"), &globs, &Memo::default()).unwrap().digest
    }

    // covers: R11
    #[test]
    fn a_change_of_a_declared_file_is_seen_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for path in ["src/a.rs", "src/deep/b.rs", "docs/x.md", ".sage/state/s.rs", "target/t.rs", ".env.rs"] {
            write(path, "1");
        }
        write(".gitignore", "target\n");
        let rust = ["**/*.rs", "!src/deep/**"];
        let memo = Memo::default();
        let now = || {
            let globs: Vec<String> = rust.iter().map(ToString::to_string).collect();
            declared(dir.path(), &dir.path().join(".sage"), &globs, &memo).unwrap().digest
        };
        let before = now();
        for path in ["src/deep/b.rs", "docs/x.md", ".sage/state/s.rs", "target/t.rs"] {
            write(path, "2");
            assert_eq!(now(), before, "{path}");
        }
        write("src/a.rs", "2");
        let changed = now();
        assert_ne!(changed, before, "also through the memo, at the same size");
        write("src/a.rs", "1");
        assert_eq!(now(), before, "only contents count");
        write("src/c.rs", "1");
        assert_ne!(now(), before, "a new file");
        write(".env.rs", "2");
        assert_ne!(now(), changed, "hidden files are files");
        let folder = of(dir.path(), &["src/"]);
        assert_eq!((of(dir.path(), &["src"]), of(dir.path(), &["src/**"])), (folder, folder));
        write("src/deep/b.rs", "3");
        assert_ne!(of(dir.path(), &["src"]), folder);
        let all_but = of(dir.path(), &["!docs"]);
        write("docs/x.md", "9");
        assert_eq!(of(dir.path(), &["!docs"]), all_but, "only what is left out is left out");
        assert!(declared(dir.path(), dir.path(), &["[".into()], &memo).unwrap_err().contains("cache.files"));
    }

    // covers: R11, R15
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.rs"), "1").unwrap();
        let before = of(dir.path(), &["**"]);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(of(dir.path(), &["**"]), before);
        let memo = Memo::default();
        assert_eq!(memo.content(&pipe, &pipe.symlink_metadata().unwrap()), None);
    }

    // covers: R11
    #[test]
    fn large_files_count_by_size_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("big")).unwrap();
        file.set_len(FILE_BYTES + 1).unwrap();
        let now = || declared(dir.path(), dir.path(), &["big".into()], &Memo::default()).unwrap();
        let before = now();
        assert!(before.by_time);
        assert_eq!(now(), before);
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_ne!(now(), before);
    }
}
