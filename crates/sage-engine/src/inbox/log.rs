//! Handled wakes in `logs/orchestration.jsonl`, one short line each, for people and monitors.
//!
//! A copy for reading along; the ledger is what counts. It gets each wake once, too: whoever takes the turn after
//! a death in between looks which of the last lines are missing.

use std::io;
use std::path::PathBuf;

use serde_json::json;

use super::Inbox;
use super::ledger::{Handled, Reader};
use crate::orchestration::OrchestrationLog;
use crate::vfs;

const SUMMARY_CHARS: usize = 200;

impl Inbox {
    pub fn log(&self) -> PathBuf {
        self.orchestration().path().to_path_buf()
    }

    fn orchestration(&self) -> OrchestrationLog {
        OrchestrationLog::new(&vfs::parent(&self.dir).join("logs"))
    }

    /// Entries that the ledger has just taken.
    pub(super) fn log_handled(&self, entries: &[Handled]) -> io::Result<()> {
        self.orchestration().append(&entries.iter().filter_map(line).collect::<String>())
    }

    /// The deliverer before died while it wrote down what it had handled: what is missing is added.
    pub(super) fn mend_log(&self, batch: usize) -> io::Result<()> {
        let mut last = Vec::new();
        Reader::new(&self.dir).read(&mut |handled| last.push(handled))?;
        let last = last.split_off(last.len().saturating_sub(batch));
        let tail = self.orchestration().tail()?;
        let missing: Vec<Handled> =
            last.into_iter().filter(|handled| !tail.contains(&mark(handled))).collect();
        self.log_handled(&missing)
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
