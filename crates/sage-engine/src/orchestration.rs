//! `logs/orchestration.jsonl`: one short JSON object a line, for people and monitors (P11). Handled wakes, groups
//! of stages that came to their end, and how runs performed.
//!
//! Every process of the project appends to it, whole lines only, one writer at a time by the file's own lock. Views
//! of what is kept elsewhere: it is not synced, and a power cut may cost its end. Its size is bounded: the old
//! file is kept beside it, once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sage_core::event::Event;
use sage_core::run::Run;
use sage_core::wire::{rfc3339, told};
use sage_fence::own;
use serde_json::{Value, json};

use crate::teller::Listener;
use crate::vfs::{self, open_regular};

const MAX_BYTES: u64 = 32 << 20;
/// Longer than whatever one writer may have to look for.
const TAIL_BYTES: u64 = 1 << 20;
/// Others may take the file away while it is opened, but not for ever.
const TRIES: u32 = 20;

#[derive(Clone, Debug)]
pub struct OrchestrationLog {
    path: PathBuf,
}

impl OrchestrationLog {
    /// `logs` is the project's directory of logs.
    pub fn new(logs: &Path) -> OrchestrationLog {
        OrchestrationLog { path: logs.join("orchestration.jsonl") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whole lines, each with its line break.
    pub fn append(&self, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut file = self.lock()?;
        let whole = ends_a_line(&mut file)?;
        // Half a line of somebody who died stays half a line.
        if whole { file.write_all(lines.as_bytes()) } else { file.write_all(format!("\n{lines}").as_bytes()) }
    }

    /// The last lines, whole ones only.
    pub fn tail(&self) -> io::Result<String> {
        let mut file = match open_regular(&self.path, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            other => other?,
        };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.rfind('\n').map_or(String::new(), |end| text[..=end].to_string()))
    }

    /// The file, locked, with room for more.
    fn lock(&self) -> io::Result<File> {
        for _ in 0..TRIES {
            let file = self.open()?;
            file.lock()?;
            let own = file.metadata()?;
            let there = self.path.symlink_metadata();
            // Somebody else has put it aside meanwhile.
            if !there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())) {
                continue;
            }
            if own.len() <= MAX_BYTES {
                return Ok(file);
            }
            own::rename(&self.path, &vfs::with_suffix(&self.path, ".1"))?;
        }
        Err(io::Error::other("the log is always being replaced"))
    }

    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        match open_regular(&self.path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Only the last one: a project that was removed does not come back.
                own::make_dir(vfs::parent(&self.path)).and_then(|()| open_regular(&self.path, flags))
            }
            other => other,
        }
    }
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

impl Listener for OrchestrationLog {
    type News = Vec<Value>;
    const MARK: &'static str = "orchestration";

    fn news(event: &Event, seq: u64, ts_ms: u64, run: &Run) -> Option<Vec<Value>> {
        let entries: Vec<Value> = told(event, run)
            .into_iter()
            .enumerate()
            .map(|(number, told)| {
                let mut entry = json!({
                    "event": told.kind, "id": format!("{}:{seq}:{number}", run.id), "at": rfc3339(ts_ms),
                    "feature": run.feature, "workflowId": run.id, "seq": seq,
                });
                if let (Some(entry), Value::Object(fields)) = (entry.as_object_mut(), told.fields) {
                    entry.extend(fields);
                }
                entry
            })
            .collect();
        (!entries.is_empty()).then_some(entries)
    }

    fn tell(&self, entries: &Vec<Value>) -> io::Result<()> {
        self.append(&entries.iter().map(|entry| format!("{entry}\n")).collect::<String>())
    }

    fn knows(&self, entries: &Vec<Value>) -> bool {
        let mark = |entry: &Value| format!("\"id\":{}", entry["id"]);
        let tail = self.tail().unwrap_or_default();
        entries.iter().all(|entry| tail.contains(&mark(entry)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P11
    #[test]
    fn whole_lines_in_a_file_of_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let log = OrchestrationLog::new(&dir.path().join("logs"));
        log.append("{\"a\":1}\n").unwrap();
        std::fs::OpenOptions::new().append(true).open(log.path()).unwrap().write_all(b"{\"half").unwrap();
        assert_eq!(log.tail().unwrap(), "{\"a\":1}\n");
        log.append("{\"b\":2}\n").unwrap();
        assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "{\"a\":1}\n{\"half\n{\"b\":2}\n");
        File::options().write(true).open(log.path()).unwrap().set_len(MAX_BYTES + 1).unwrap();
        log.append("{\"c\":3}\n").unwrap();
        assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "{\"c\":3}\n");
        let old = vfs::with_suffix(log.path(), ".1");
        assert_eq!(old.metadata().unwrap().len(), MAX_BYTES + 1, "the old one is kept, once");
        assert_eq!(log.path().metadata().unwrap().mode() & 0o777, 0o600);
    }

    // covers: P11
    #[test]
    fn many_writers_lose_no_line_when_it_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let log = OrchestrationLog::new(dir.path());
        log.append("{}\n").unwrap();
        File::options().write(true).open(log.path()).unwrap().set_len(MAX_BYTES - 2000).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let log = log.clone();
                scope.spawn(move || {
                    (0..100).for_each(|n| log.append(&format!("{{\"w\":{writer},\"n\":{n}}}\n")).unwrap());
                });
            }
        });
        let old = std::fs::read(vfs::with_suffix(log.path(), ".1")).unwrap();
        let old = String::from_utf8_lossy(&old[old.len() - 4000..]).into_owned();
        let all = old + &std::fs::read_to_string(log.path()).unwrap();
        for (writer, n) in (0..4).flat_map(|writer| (0..100).map(move |n| (writer, n))) {
            let line = format!("{{\"w\":{writer},\"n\":{n}}}\n");
            assert_eq!(all.matches(&line).count(), 1, "{line}");
        }
    }
}
