//! What was acknowledged, to be found again in the journal.
//!
//! A checkpoint names the journal's head. A journal that does not have that record, or another one in its place, has
//! lost what was acknowledged, unless a record says that it stands in its place: a repair gave up what was damaged.

use std::path::Path;

use serde::Deserialize;

use super::{Head, JournalError, Reader, Record};
use crate::vfs::Vfs;

/// The kind of record that may stand in the place of what was lost.
const STANDS_IN: &str = "run.imported";

#[derive(Deserialize)]
struct Replaces {
    #[serde(default)]
    replaces: Option<Head>,
}

/// Follows a journal and says in the end whether it has what was acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watermark {
    want: Option<Head>,
    /// The record in the place of the one that was acknowledged, if it is another one.
    other: Option<Head>,
    replaced: bool,
}

impl Watermark {
    pub fn new(want: Option<Head>) -> Watermark {
        Watermark { want, other: None, replaced: false }
    }

    pub fn see(&mut self, record: &Record<'_>) {
        let Some(want) = self.want else { return };
        if record.seq == want.seq && record.head() != want {
            self.other = Some(record.head());
        }
        if record.kind == STANDS_IN {
            let replaces = serde_json::from_str(record.data).ok().and_then(|Replaces { replaces }| replaces);
            self.replaced |= replaces == Some(want);
        }
    }

    /// Whether some record of the file says that it stands in the place of what was acknowledged. Remembers it.
    pub fn is_replaced_in(&mut self, vfs: &dyn Vfs, path: &Path) -> Result<bool, JournalError> {
        let bytes = vfs.read(path, u64::MAX - 1).map_err(JournalError::io("read", path))?;
        let mut rest = Watermark::new(self.want);
        // What comes after damage explains nothing.
        let _ = Reader::new().feed(&bytes, &mut |record: Record<'_>| -> Result<(), JournalError> {
            rest.see(&record);
            Ok(())
        });
        self.replaced |= rest.replaced;
        Ok(self.replaced)
    }

    /// Another record is in the place of the one that was acknowledged.
    pub fn is_contradicted(&self) -> bool {
        self.other.is_some() && !self.replaced
    }

    /// `head` is the last record.
    pub fn judge(&self, head: Head) -> Result<(), JournalError> {
        match self.want {
            Some(want) if !self.replaced && (self.other.is_some() || head.seq < want.seq) => {
                Err(JournalError::LostAcked { have: self.other.unwrap_or(head), want })
            }
            _ => Ok(()),
        }
    }
}
