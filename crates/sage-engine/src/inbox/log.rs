//! `logs/orchestration.jsonl`: handled wakes, one short line each, for people and monitors.
//!
//! A copy for reading along; the ledger is what counts. It gets each wake once, too: whoever takes the turn after
//! a death in between looks which of the last lines are missing. It is not synced: a power cut may cost its end.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use serde_json::json;

use super::Inbox;
use super::ledger::{Handled, Reader};
use crate::vfs::{self, Vfs};

/// Longer than any batch, however much others write between its lines.
const TAIL_BYTES: u64 = 1 << 20;
/// The old one is kept beside it, once.
const MAX_BYTES: u64 = 32 << 20;
const SUMMARY_CHARS: usize = 200;

impl Inbox {
    pub fn log(&self) -> PathBuf {
        vfs::parent(&self.dir).join("logs").join("orchestration.jsonl")
    }

    /// Entries that the ledger has just taken.
    pub(super) fn log_handled(&self, entries: &[Handled]) -> io::Result<()> {
        let path = self.log();
        let lines: String = entries.iter().filter_map(line).collect();
        let length = self.disk.metadata(&path).map_or(0, |meta| meta.len);
        if length > MAX_BYTES {
            self.disk.rename(&path, &vfs::with_suffix(&path, ".1"))?;
        }
        let mut file = match self.disk.open_append(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Only the last one: a project that was removed does not come back.
                match std::fs::DirBuilder::new().mode(0o700).create(vfs::parent(&path)) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                self.disk.create_new(&path)?
            }
            other => other?,
        };
        vfs::write_all(file.as_mut(), lines.as_bytes())
    }

    /// The deliverer before died while it wrote down what it had handled: what is missing is added.
    pub(super) fn mend_log(&self, batch: usize) -> io::Result<()> {
        let mut last = Vec::new();
        Reader::new(&self.dir).read(&mut |handled| last.push(handled))?;
        let last = last.split_off(last.len().saturating_sub(batch));
        let (path, length) = (self.log(), self.disk.metadata(&self.log()).map_or(0, |meta| meta.len));
        let tail = match self.disk.read_from(&path, length.saturating_sub(TAIL_BYTES), TAIL_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let tail = String::from_utf8_lossy(&tail);
        let whole = tail.rfind('\n').map_or("", |end| &tail[..=end]);
        let known = |handled: &Handled| whole.contains(&mark(handled));
        let missing: Vec<Handled> = last.into_iter().filter(|handled| !known(handled)).collect();
        if whole.len() < tail.len() {
            // Half a line stays half a line.
            let mut file = self.disk.open_append(&path)?;
            vfs::write_all(file.as_mut(), b"\n")?;
        }
        if missing.is_empty() { Ok(()) } else { self.log_handled(&missing) }
    }
}

/// How an id looks in a line.
fn mark(handled: &Handled) -> String {
    format!("\"wakeId\":{}", json!(handled.wake_id))
}

fn line(handled: &Handled) -> Option<String> {
    let wake = handled.wake.as_ref()?;
    let summary: String = wake.summary.chars().take(SUMMARY_CHARS).collect();
    let entry = json!({
        "event": "wake", "wakeId": wake.wake_id, "at": handled.at, "type": wake.kind, "status": wake.status,
        "session_id": wake.session_id, "agent_role": wake.agent_role, "summary": summary,
    });
    Some(format!("{entry}\n"))
}
