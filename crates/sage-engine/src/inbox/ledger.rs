//! The ledger: what was handled. One line is the effect of a wake and its acknowledgement at once.
//!
//! Only the deliverer whose turn it is appends; anybody reads. A line counts when it ends with a line break and
//! was synced: what a dead deliverer left unfinished is cut off, and those wakes are handled again.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::MAX_BYTES;
use super::wake::Wake;
use crate::vfs::{self, DiskFs, Vfs, open_regular};

pub const FILE: &str = "ledger.jsonl";
/// A line holds one wake and a few words; a longer one was not written by Sage.
const LINE_BYTES: u64 = 8 * MAX_BYTES;

/// A wake that was handled.
#[derive(Clone, Debug, PartialEq)]
pub struct Handled {
    pub wake_id: String,
    /// RFC 3339.
    pub at: String,
    /// Old entries keep only their id.
    pub wake: Option<Wake>,
}

impl Handled {
    /// `done` is the wake itself, acknowledged.
    pub fn new(wake: &Wake, now_ms: u64) -> Handled {
        let wake = Wake { acknowledged: true, ..wake.clone() };
        let at = sage_core::wire::rfc3339(now_ms);
        Handled { wake_id: wake.wake_id.clone(), at, wake: Some(wake) }
    }

    pub fn line(&self) -> io::Result<String> {
        let mut entry = json!({"wakeId": self.wake_id, "at": self.at});
        if let Some(wake) = &self.wake {
            entry["did"] = "recorded".into();
            entry["wake"] = serde_json::to_value(wake)?;
        }
        Ok(format!("{entry}\n"))
    }

    /// No journal holds what it says.
    fn must_last(&self) -> bool {
        self.wake.as_ref().is_none_or(|wake| !wake.repeats_a_record())
    }

    fn parse(line: &[u8]) -> Option<Handled> {
        let mut entry: Value = serde_json::from_slice(line).ok()?;
        let text = |field: &str| entry[field].as_str().map(str::to_string);
        let (wake_id, at) = (text("wakeId")?, text("at").unwrap_or_default());
        let wake = match entry["wake"].take() {
            Value::Object(body) => Wake::known(body).ok(),
            _ => None,
        };
        Some(Handled { wake_id, at, wake })
    }
}

/// Reads the ledger bit by bit, also while it grows and when it is replaced by a shorter one.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// Which file it was, and how far it was read.
    file: Option<(u64, u64)>,
    offset: u64,
}

impl Reader {
    pub fn new(dir: &Path) -> Reader {
        Reader { path: dir.join(FILE), file: None, offset: 0 }
    }

    /// What is new. True if that is all there is, because it was read from its beginning.
    pub fn read(&mut self, each: &mut dyn FnMut(Handled)) -> io::Result<bool> {
        let mut file = match open_regular(&self.path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (self.file, self.offset) = (None, 0);
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let meta = file.metadata()?;
        let identity = Some((meta.dev(), meta.ino()));
        let anew = identity != self.file || meta.len() < self.offset;
        if anew {
            (self.file, self.offset) = (identity, 0);
        }
        if meta.len() > self.offset {
            self.take(&mut file, each)?;
        }
        Ok(anew)
    }

    fn take(&mut self, file: &mut File, each: &mut dyn FnMut(Handled)) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.offset))?;
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        loop {
            line.clear();
            lines.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)?;
            // The end, or a line that is not finished.
            if line.last() != Some(&b'\n') {
                return Ok(());
            }
            self.offset += line.len() as u64;
            // A line that cannot be read tells nothing; those around it do.
            Handled::parse(&line).into_iter().for_each(&mut *each);
        }
    }
}

/// The deliverer's ledger: knows every id in it.
#[derive(Debug)]
pub struct Ledger {
    reader: Reader,
    ids: HashSet<String>,
}

impl Ledger {
    pub fn new(dir: &Path) -> Ledger {
        Ledger { reader: Reader::new(dir), ids: HashSet::new() }
    }

    pub fn path(&self) -> &Path {
        &self.reader.path
    }

    pub fn len(&self) -> u64 {
        self.reader.offset
    }

    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Learns what others have written. Only with the turn in hand: an unfinished end is cut off.
    pub fn catch_up(&mut self, disk: &DiskFs) -> io::Result<()> {
        let mut news = Vec::new();
        let anew = self.reader.read(&mut |handled| news.push(handled.wake_id))?;
        if anew {
            self.ids.clear();
        }
        self.ids.extend(news);
        match disk.metadata(self.path()) {
            Ok(meta) if meta.len > self.reader.offset => disk.truncate(self.path(), self.reader.offset),
            _ => Ok(()),
        }
    }

    /// Makes entries durable, unless journals hold all that they say. After an error nothing of them counts.
    pub fn append(&mut self, disk: &DiskFs, entries: &[Handled]) -> io::Result<()> {
        let lines = entries.iter().map(Handled::line).collect::<io::Result<String>>()?;
        let durable = entries.iter().any(Handled::must_last);
        let mut file = match disk.open_append(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = disk.create_new(self.path())?;
                disk.sync_dir(vfs::parent(self.path()))?;
                file
            }
            other => other?,
        };
        let written = vfs::write_all(file.as_mut(), lines.as_bytes());
        let written = written.and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // Read anew before the next try: nobody can say what is on the disk.
            let _ = file.set_len(self.reader.offset);
            (self.reader.file, self.reader.offset) = (None, 0);
            return Err(error);
        }
        drop(file);
        // Its own lines are read back like those of others: that is how it knows what the file holds.
        self.catch_up(disk)
    }
}
