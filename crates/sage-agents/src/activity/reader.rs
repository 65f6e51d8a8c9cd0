//! Follows an attempt's activity from any process.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::FILE;
use super::entry::Entry;

/// Read at once; at least one entry is shorter.
const PIECE_BYTES: u64 = 2 << 20;

#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    offset: u64,
}

impl Reader {
    pub fn new(scratch: &Path) -> Reader {
        Reader { path: scratch.join(FILE), offset: 0 }
    }

    /// Whether the step tells what it does in this way; all others only print.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The entries that are new; empty when there are none. A line that is being written comes with the next call.
    pub fn read(&mut self) -> Vec<Entry> {
        // Shorter than before: the attempt was started again.
        if self.path.metadata().is_ok_and(|meta| meta.len() < self.offset) {
            self.offset = 0;
        }
        let piece = piece(&self.path, self.offset, PIECE_BYTES).unwrap_or_default();
        let end = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        self.offset += end as u64;
        entries(&piece[..end]).collect()
    }
}

/// Whatever is no entry is passed over.
pub(super) fn entries(bytes: &[u8]) -> impl DoubleEndedIterator<Item = Entry> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// At most `most` bytes of a regular file, from `offset` on.
pub(super) fn piece(path: &Path, offset: u64, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Opening a pipe would wait for its writer.
    if !path.symlink_metadata()?.is_file() {
        return Ok(bytes);
    }
    let mut file = File::open(path)?;
    if file.seek(SeekFrom::Start(offset))? == offset {
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{What, Writer};
    use super::*;

    // covers: R8
    #[test]
    fn whole_entries_come_once_and_garbage_never() {
        let dir = tempfile::tempdir().unwrap();
        let mut reader = Reader::new(dir.path());
        assert!(!reader.exists() && reader.read().is_empty());
        let mut writer = Writer::open(dir.path());
        let note = |text: &str| What::Note { text: text.into() };
        writer.write(note("a"));
        writer.write(note("b"));
        let said = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.what).collect::<Vec<_>>();
        assert_eq!(said(reader.read()), [note("a"), note("b")]);
        assert!(reader.read().is_empty());
        let path = dir.path().join(FILE);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"\xff no json\n{\"at\":1,\"kind\":\"note\",");
        std::fs::write(&path, &text).unwrap();
        assert!(reader.read().is_empty());
        text.extend_from_slice(b"\"text\":\"c\"}\n");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(said(reader.read()), [note("c")]);
    }
}
