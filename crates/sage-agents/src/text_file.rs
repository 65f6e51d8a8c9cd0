//! Text files of a project, read with a limit: what a clone puts in a file's place is a pipe, a device or too large,
//! and reading it would never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The text of a regular file of at most `max_bytes`. Links are followed.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<String> {
    // NONBLOCK: opening a pipe must not wait for its writer. Regular files ignore it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
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
        for name in ["pipe", "zero", "."] {
            assert_eq!(read(&path(name), 4).unwrap_err().to_string(), "not a regular file", "{name}");
        }
        assert_eq!(read(&path("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
