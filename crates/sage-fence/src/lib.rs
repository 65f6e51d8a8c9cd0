//! The fence around a project: the one place that decides which file a path means and whether it may be used.
//!
//! ```text
//! path -> real (links followed, every name on the way checked) -> opened beneath the root without following any link
//! ```
//! What must stay true: nothing outside of the root is read or written; nothing that configures agents is
//! written, in any spelling, through any link, and wherever a link at its name leads; whatever is swapped between
//! the check and the opening is refused, and what cannot be told counts as protected. A file is replaced as a whole,
//! so that a hard link to it keeps what it had.

mod beneath;
mod folder;
mod links;
pub mod own;
pub mod private;
mod real;
mod rules;
#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sage_core::fence::{is_private, is_private_entry, protected_part};

pub use folder::{Entry, Folder, syncs};
pub use links::targets;
use real::{Walk, broken, walk};
pub use real::{real, real_dir};
pub use rules::{has_plain_rules, has_plain_rules_above};

/// Why a path is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is outside the project")]
    Outside(String),
    #[error("`{0}` is protected: it configures agents or Sage, so steps and agents cannot write it")]
    Protected(String),
    #[error("`{0}` is private to Sage")]
    Private(String),
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    #[error("`{path}` is too large: {bytes} bytes")]
    TooLarge { path: String, bytes: u64 },
    #[error("`{path}`: {source}")]
    Io { path: String, source: io::Error },
}

impl Refused {
    /// Whether there is simply no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Refused::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A directory that paths must not leave.
#[derive(Clone, Debug)]
pub struct Fence {
    root: PathBuf,
    /// Where relative paths begin.
    base: PathBuf,
    /// Directories of Sage that are not called `.sage`, or lie in the project by accident.
    closed: Vec<PathBuf>,
    /// The root is a directory that somebody chose inside of a protected one.
    sealed: bool,
}

impl Fence {
    /// Relative paths begin at `root`.
    pub fn new(root: &Path) -> Fence {
        let root = canonical(root);
        Fence { base: root.clone(), root, closed: Vec::new(), sealed: false }
    }

    /// The project, or the step's own directory if that is elsewhere; relative paths begin at `cwd`.
    pub fn around(project: &Path, cwd: &Path) -> Fence {
        let (project, base) = (canonical(project), canonical(cwd));
        let inside = base.starts_with(&project);
        let sealed = !inside && protected_part(&base.to_string_lossy()).is_some();
        let root = if inside { project } else { base.clone() };
        Fence { root, base, closed: Vec::new(), sealed }
    }

    /// Also closes directories of Sage that have another name or place than `.sage`. One that holds the root
    /// is left out: a step in a worktree works inside of `.sage`.
    #[must_use]
    pub fn closing(mut self, closed: &[PathBuf]) -> Fence {
        let closed = closed.iter().map(|dir| canonical(dir));
        self.closed = closed.filter(|dir| dir.starts_with(&self.root)).collect();
        self
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path below the root of the file that is meant, whatever links lead there; it need not exist.
    pub fn locate(&self, path: &Path) -> Result<PathBuf, Refused> {
        self.inside(&self.walk(path)?, path)
    }

    fn walk(&self, path: &Path) -> Result<Walk, Refused> {
        walk(&self.base, path).map_err(|source| Refused::Io { path: shown(path), source })
    }

    fn inside(&self, walk: &Walk, path: &Path) -> Result<PathBuf, Refused> {
        if walk.is_broken {
            return Err(Refused::Io { path: shown(path), source: broken() });
        }
        match walk.real.strip_prefix(&self.root) {
            Ok(inside) if inside.to_str().is_some() => Ok(inside.to_path_buf()),
            _ => Err(Refused::Outside(shown(path))),
        }
    }

    /// As `locate`, for a file that is to be read.
    pub fn readable(&self, path: &Path) -> Result<PathBuf, Refused> {
        let walk = self.walk(path)?;
        let inside = self.inside(&walk, path)?;
        let passes = |wanted: fn(&str) -> bool| self.names(&walk).any(|name| wanted(&name));
        let refused = passes(is_private) || self.closed.iter().any(|dir| self.is_closed_entry(dir, &inside));
        if refused { Err(Refused::Private(shown(path))) } else { Ok(inside) }
    }

    /// As `locate`, for a file that is to be written: not the root, nothing protected.
    pub fn writable(&self, path: &Path) -> Result<PathBuf, Refused> {
        let walk = self.walk(path)?;
        if self.passes_protected(&walk) {
            return Err(Refused::Protected(shown(path)));
        }
        let inside = self.inside(&walk, path)?;
        if inside.as_os_str().is_empty() {
            return Err(Refused::NotAFile(shown(path)));
        }
        if self.is_protected(&inside) { Err(Refused::Protected(shown(path))) } else { Ok(inside) }
    }

    /// Whether a path, also one outside of the root, leads to something that is protected, also if it leads there by
    /// a link to what does not exist yet. A path that cannot be followed counts as protected.
    pub fn protects(&self, path: &Path) -> bool {
        let Ok(walk) = walk(&self.base, path) else { return true };
        match walk.real.strip_prefix(&self.root) {
            Ok(inside) => self.passes_protected(&walk) || self.is_protected(inside),
            Err(_) => walk
                .passed
                .iter()
                .chain([&walk.real])
                .any(|it| protected_part(&it.to_string_lossy()).is_some()),
        }
    }

    /// Paths below the root of everything on the way.
    fn names<'a>(&'a self, walk: &'a Walk) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
        let all = walk.passed.iter().chain([&walk.real]);
        all.filter_map(|path| path.strip_prefix(&self.root).ok()).map(Path::to_string_lossy)
    }

    /// A protected name stands on the way, wherever a link leads from there.
    fn passes_protected(&self, walk: &Walk) -> bool {
        self.names(walk).any(|name| protected_part(&name).is_some())
    }

    fn is_protected(&self, inside: &Path) -> bool {
        let path = self.root.join(inside);
        let closed = || self.closed.iter().any(|dir| path.starts_with(dir));
        let named = protected_part(&inside.to_string_lossy()).is_some();
        let folders = || inside.ancestors().skip(1).map(|folder| self.root.join(folder));
        let led_to = || folders().flat_map(|folder| targets(&folder)).any(|target| path.starts_with(target));
        self.sealed || named || closed() || self.is_alias(inside) || led_to()
    }

    /// The whole file, if it is one and not larger than `most_bytes`.
    pub fn read(&self, path: &Path, most_bytes: u64) -> Result<Vec<u8>, Refused> {
        let inside = self.readable(path)?;
        let failed = |source: io::Error| Refused::Io { path: shown(path), source };
        let file = beneath::open_file(&self.root, &inside).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(Refused::NotAFile(shown(path)));
        }
        if self.is_token(&about) {
            return Err(Refused::Private(shown(path)));
        }
        let mut bytes = Vec::new();
        file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > most_bytes {
            return Err(Refused::TooLarge { path: shown(path), bytes: about.len() });
        }
        Ok(bytes)
    }

    /// Replaces the file, or makes it with the folders that it needs; returns its path below the root.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<PathBuf, Refused> {
        let inside = self.writable(path)?;
        let failed = |source: io::Error| Refused::Io { path: shown(path), source };
        let (folder, name) = self.folder_of(&inside).map_err(failed)?;
        if folder.entry(&name).map_err(failed)?.is_some_and(|entry| !entry.is_file()) {
            return Err(Refused::NotAFile(shown(path)));
        }
        folder.replace(&name, content).map_err(failed)?;
        Ok(inside)
    }

    /// The folder that holds a writable path, made if it is missing, and the file's name in it.
    pub fn folder_of(&self, inside: &Path) -> io::Result<(Folder, std::ffi::OsString)> {
        let name = inside.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = inside.parent().unwrap_or(Path::new(""));
        Ok((Folder::open(&self.root, parent)?, name))
    }

    /// Whether something on the path is the same file or folder as a protected one: a hard link, the target of
    /// a link, or a spelling that this file system takes for the same.
    fn is_alias(&self, inside: &Path) -> bool {
        let identity = |path: &Path| path.metadata().ok().map(|about| (about.dev(), about.ino()));
        let ancestors = inside.ancestors().filter(|part| !part.as_os_str().is_empty());
        let own: Vec<(u64, u64)> = ancestors.filter_map(|part| identity(&self.root.join(part))).collect();
        if own.is_empty() {
            return false;
        }
        let folders = inside.ancestors().skip(1).map(|folder| self.root.join(folder));
        folders
            .flat_map(|folder| sage_core::fence::PROTECTED.map(|name| folder.join(name)))
            .filter_map(|path| identity(&path))
            .any(|protected| own.contains(&protected))
    }

    fn is_closed_entry(&self, dir: &Path, inside: &Path) -> bool {
        let path = self.root.join(inside);
        let Ok(rest) = path.strip_prefix(dir) else { return false };
        let entry = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        entry.is_some_and(|entry| is_private_entry(&entry))
    }

    /// A hard link to the token of `sage serve`.
    fn is_token(&self, about: &std::fs::Metadata) -> bool {
        let own = self.root.join(".sage");
        let dirs = self.closed.iter().chain([&own]);
        let tokens = dirs.filter_map(|dir| dir.join("state/serve.json").metadata().ok());
        about.nlink() > 1
            && tokens.into_iter().any(|token| (token.dev(), token.ino()) == (about.dev(), about.ino()))
    }
}

/// Makes a folder of the project, and its missing parents, through no link. `dir` is a real path.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    let inside = dir.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    Folder::open(Path::new("/"), inside).map(drop)
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn shown(path: &Path) -> String {
    sage_core::diagnostic::printable(&path.to_string_lossy())
}
