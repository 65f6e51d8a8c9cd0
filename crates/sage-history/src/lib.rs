//! Every run, step and attempt of a project in one SQLite file, `.sage/history.db`, for queries and statistics (P9).
//!
//! ```text
//! journals (the truth) --sync--> history.db --> list, stats, sql
//! ```
//! It is an index: whatever it says follows from the journals, so it may be deleted at any time and no power cut can
//! hurt it. `sync` folds the runs whose journals changed since, and replaces their rows in one transaction. Rows of
//! runs that `sage gc` removed stay.

mod attempts;
mod file;
mod letters;
mod query;
mod rows;
mod stats;
mod sync;

use std::path::PathBuf;

use rusqlite::Connection;

pub use rows::RunRow;
pub use stats::{By, Rates, Stat};
pub use sync::Synced;

#[derive(Debug)]
pub struct History {
    db: Connection,
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the history cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the query failed: {0}")]
    Query(String),
    #[error(transparent)]
    Runs(#[from] sage_engine::open::OpenError),
}

impl HistoryError {
    /// The place cannot be written: the history can still be made in memory.
    pub fn is_unwritable(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
        match self {
            HistoryError::Io { .. } => true,
            HistoryError::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
            ),
            HistoryError::Query(_) | HistoryError::Runs(_) => false,
        }
    }
}
