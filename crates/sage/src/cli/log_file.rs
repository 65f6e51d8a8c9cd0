//! Logs of processes that no terminal sees: private, and never larger than twice a megabyte.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sage_engine::project::Project;
use sage_engine::vfs::{DiskFs, Vfs, with_suffix};
use sage_fence::private;

/// Then it becomes `.1`, in place of the one before.
const MAX_BYTES: u64 = 1 << 20;

pub fn path(project: &Project, name: &str) -> PathBuf {
    project.logs().join(format!("{name}.log"))
}

/// Opens a log for appending.
pub fn open(path: &Path) -> io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    private::create_dir_all(dir)?;
    if path.symlink_metadata().is_ok_and(|meta| meta.len() > MAX_BYTES) {
        private::rename(path, &with_suffix(path, ".1"))?;
    }
    private::append(path)
}

/// The last line that says something: why a process ended.
pub fn last_words(path: &Path) -> Option<String> {
    const TAIL_BYTES: u64 = 4 << 10;
    let length = path.metadata().ok()?.len();
    let tail =
        DiskFs::default().read_from(path, length.saturating_sub(TAIL_BYTES), TAIL_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&tail).into_owned();
    let mut lines = text.lines().rev().map(str::trim);
    let told = lines.clone().find(|line| line.starts_with("error: "));
    told.or_else(|| lines.find(|line| !line.is_empty())).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    // covers: S1
    #[test]
    fn a_log_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/x.log");
        let line = vec![b'x'; MAX_BYTES as usize + 1];
        for _ in 0..3 {
            open(&path).unwrap().write_all(&line).unwrap();
        }
        writeln!(open(&path).unwrap(), "error: no disk\nhint: buy one\n").unwrap();
        assert_eq!(last_words(&path).unwrap(), "error: no disk");
        let sizes: u64 = std::fs::read_dir(dir.path().join("logs"))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(sizes < 3 * MAX_BYTES, "{sizes}");
    }
}
