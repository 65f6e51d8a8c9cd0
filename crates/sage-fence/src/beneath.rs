//! Opening a path below a directory without following any link on the way.
//!
//! The kernel does it in one call (`openat2`); where it cannot, each part is opened from the one before.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a file for reading. Never waits: a pipe in its place is opened and then refused by its kind.
pub fn open_file(root: &Path, inside: &Path) -> io::Result<File> {
    open(root, inside, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
}

/// Opens a directory that exists.
pub fn open_dir(root: &Path, inside: &Path) -> io::Result<OwnedFd> {
    open(root, inside, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn open(root: &Path, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    if inside.as_os_str().is_empty() {
        return step(&root, Path::new("."), flags);
    }
    match at_once(&root, inside, flags) {
        Some(opened) => opened,
        None => by_steps(root, inside, flags),
    }
}

/// `None` if this kernel, or the sandbox that we are in, does not have the call.
#[cfg(target_os = "linux")]
fn at_once(root: &OwnedFd, inside: &Path, flags: OFlags) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened.map_err(io::Error::from)),
    }
}

/// Opens a path none of whose parts may be a link. `None` as above.
#[cfg(target_os = "linux")]
pub fn no_links(path: &Path, flags: OFlags, mode: Mode) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::{CWD, ResolveFlags};
    use rustix::io::Errno;
    match rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
    {
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
pub fn no_links(_path: &Path, _flags: OFlags, _mode: Mode) -> Option<io::Result<OwnedFd>> {
    None
}

#[cfg(not(target_os = "linux"))]
fn at_once(_root: &OwnedFd, _inside: &Path, _flags: OFlags) -> Option<io::Result<OwnedFd>> {
    None
}

fn by_steps(root: OwnedFd, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut dir = root;
    let mut parts = inside.components().peekable();
    while let Some(part) = parts.next() {
        let std::path::Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let last = parts.peek().is_none();
        let flags = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY };
        dir = step(&dir, Path::new(name), flags)?;
    }
    Ok(dir)
}

/// One part of a path, which must not be a link.
pub fn step(dir: &OwnedFd, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    // covers: R17
    #[test]
    fn both_ways_open_the_same_and_follow_no_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("root/a/b")).unwrap();
        std::fs::write(dir.path().join("root/a/b/file"), "x").unwrap();
        std::fs::write(dir.path().join("outside"), "x").unwrap();
        let root = dir.path().join("root");
        symlink("../outside", root.join("up")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("/", root.join("slash")).unwrap();
        let handle = || OwnedFd::from(File::open(&root).unwrap());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let once = |path: &str| at_once(&handle(), Path::new(path), flags).map(|opened| opened.is_ok());
        let steps = |path: &str| by_steps(handle(), Path::new(path), flags).is_ok();
        assert!(steps("a/b/file"));
        assert!(once("a/b/file").unwrap_or(true));
        for path in ["up", "link/b/file", "slash/etc", "../outside", "a/../../outside", "/etc", "none", ""] {
            assert!(!steps(path) || path.is_empty(), "{path}");
            assert!(!once(path).unwrap_or(false), "{path}");
        }
    }
}
