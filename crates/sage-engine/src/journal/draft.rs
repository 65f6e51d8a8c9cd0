//! A journal in memory, to be put in its place as a whole.

use serde::Serialize;

use super::{Head, Journal, JournalError, Sealing};

/// Each record is a batch of its own: damage in one of them must not look like a write that was cut off.
#[derive(Debug)]
pub(crate) struct Draft {
    journal: Journal,
    pub bytes: Vec<u8>,
}

impl Draft {
    pub fn new(sealing: &Sealing) -> Draft {
        Draft { journal: Journal::new(sealing), bytes: Vec::new() }
    }

    /// Goes on after `head`, whose line is the last one in `bytes`.
    pub fn after(sealing: &Sealing, head: Head, epoch: u64, bytes: Vec<u8>) -> Draft {
        Draft { journal: Journal::resume(sealing, head, epoch), bytes }
    }

    pub fn add(&mut self, kind: &str, ts_ms: u64, data: &impl Serialize) -> Result<(), JournalError> {
        self.journal.append(kind, ts_ms, data)?;
        self.bytes.extend(self.journal.take_batch().map(|batch| batch.bytes).unwrap_or_default());
        Ok(())
    }
}
