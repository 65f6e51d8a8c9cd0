//! Reading files of a project that somebody else may have written.
//!
//! What stands at a name can be a link to a file of the user, which reports would quote, or a pipe, whose opening
//! waits for a writer. Only regular files inside of the project are read, and only so much of them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Of a source file or a manifest, however large people let them grow.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// The text of a file below `root`, if links do not lead out of it and it is not larger than `most_bytes`.
pub(crate) fn text(root: &Path, path: &Path, most_bytes: u64) -> Option<String> {
    let file = open_in(root, path)?;
    let small = file.metadata().is_ok_and(|about| about.len() <= most_bytes);
    small.then(|| read(file, most_bytes)).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// A file that `root` holds, whatever links inside of it lead there.
pub(crate) fn open_in(root: &Path, path: &Path) -> Option<File> {
    open(&real_in(root, path)?)
}

/// Where a path leads, if that is in `root`.
pub(crate) fn real_in(root: &Path, path: &Path) -> Option<PathBuf> {
    let real = root.join(path).canonicalize().ok()?;
    root.canonicalize().is_ok_and(|root| real.starts_with(root)).then_some(real)
}

/// A regular file that is no link. Opening never waits.
pub(crate) fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

/// At most so much of it.
pub(crate) fn read(file: File, most_bytes: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    // covers: R17
    #[test]
    fn only_regular_files_of_the_project_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(root.join("in/own"), "own").unwrap();
        std::fs::write(dir.path().join("secret"), "hush").unwrap();
        symlink("in/own", root.join("near")).unwrap();
        symlink("../secret", root.join("far")).unwrap();
        symlink("../..", root.join("in/up")).unwrap();
        symlink("/dev/zero", root.join("zero")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let read = |path: &str| text(&root, Path::new(path), 3);
        assert_eq!(read("in/own").as_deref(), Some("own"));
        assert_eq!(read("near").as_deref(), Some("own"));
        for path in ["far", "in/up/secret", "zero", "pipe", "in", "none", "../secret"] {
            assert_eq!(read(path), None, "{path}");
        }
        assert_eq!(text(&root, Path::new("in/own"), 2), None, "too large");
        assert!(open(&root.join("near")).is_none() && open(&root.join("in/own")).is_some());
    }
}
