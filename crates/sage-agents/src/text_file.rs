//! Text files of a project, read with a limit: what a clone puts in a file's place is a pipe, a device or too large,
//! and reading it would never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// As `read`, for a file of the project at `root`: one that a link leads out of it is refused. A clone could name any
/// file of the user, and messages quote what they complain about.
pub fn read_in(root: &Path, path: &Path, max_bytes: u64) -> io::Result<String> {
    let own = std::path::absolute(path)?;
    let real_root = root.canonicalize()?;
    let is_inside = own.starts_with(root) || own.starts_with(&real_root);
    if is_inside && !own.canonicalize()?.starts_with(&real_root) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a symlink that leads out of the project"));
    }
    read(path, max_bytes)
}

/// The text of a regular file of at most `max_bytes`. Links are followed, but not to what the kernel makes up.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<String> {
    // NONBLOCK: opening a pipe must not wait for its writer. Regular files ignore it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || is_of_kernel(&file) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    // Counted while reading, too: the file may grow.
    if metadata.len() <= max_bytes && file.take(max_bytes + 1).read_to_string(&mut text)? as u64 <= max_bytes
    {
        return Ok(text);
    }
    let message = format!("larger than {}", size(max_bytes));
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// In `/proc` or `/sys`: the environment, the memory, settings of the machine.
#[cfg(target_os = "linux")]
fn is_of_kernel(file: &File) -> bool {
    const SYSFS_MAGIC: u64 = 0x6265_6572;
    let found = rustix::fs::fstatfs(file).map(|about| about.f_type as u64);
    found.is_ok_and(|magic| magic == rustix::fs::PROC_SUPER_MAGIC as u64 || magic == SYSFS_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_of_kernel(_file: &File) -> bool {
    false
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R15
    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("small"), "1234").unwrap();
        assert_eq!(read(&path("small"), 4).unwrap(), "1234");
        assert_eq!(read(&path("small"), 3).unwrap_err().to_string(), "larger than 0 KiB");
        std::os::unix::fs::symlink(path("small"), path("link")).unwrap();
        assert_eq!(read(&path("link"), 4).unwrap(), "1234");
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        std::os::unix::fs::symlink("/proc/self/environ", path("environ")).unwrap();
        for name in ["pipe", "zero", "environ", "."] {
            assert_eq!(read(&path(name), 4).unwrap_err().to_string(), "not a regular file", "{name}");
        }
        assert_eq!(read(&path("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    // covers: R17
    #[test]
    fn a_link_does_not_lead_out_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(root.join("in/own"), "own").unwrap();
        std::fs::write(dir.path().join("secret"), "hush").unwrap();
        std::os::unix::fs::symlink("in/own", root.join("near")).unwrap();
        std::os::unix::fs::symlink("../secret", root.join("far")).unwrap();
        std::os::unix::fs::symlink("../..", root.join("in/up")).unwrap();
        assert_eq!(read_in(&root, &root.join("near"), 9).unwrap(), "own");
        // A person may name any file.
        assert_eq!(read_in(&root, &dir.path().join("secret"), 9).unwrap(), "hush");
        for far in ["far", "in/up/secret"] {
            let why = read_in(&root, &root.join(far), 9).unwrap_err().to_string();
            assert_eq!(why, "a symlink that leads out of the project", "{far}");
        }
        assert_eq!(read_in(&root, &root.join("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
