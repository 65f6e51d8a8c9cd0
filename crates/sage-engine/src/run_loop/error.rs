//! How a loop ends without an end of its run.

use sage_core::run::FoldError;

use super::{Interrupts, Tell};
use crate::journal::JournalError;

#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    #[error("cannot save the run: {0}")]
    Storage(#[from] JournalError),
    #[error("internal: an event does not fit the run: {0}")]
    Fold(#[from] FoldError),
    /// The run could not be saved, and its owner did not wait until it could.
    #[error("the run is paused: {0}")]
    Paused(String),
    /// Somebody interrupted its owner while it waited.
    #[error("interrupted while the run could not be saved: {0}")]
    Interrupted(String),
}

/// A loop that has ended without an end of its run, and what the next one takes over.
pub struct Stopped {
    pub(crate) error: LoopError,
    pub(crate) interrupts: Interrupts,
    pub(crate) tell: Option<Tell>,
}

impl std::fmt::Debug for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopped").field("error", &self.error).finish_non_exhaustive()
    }
}

impl Stopped {
    pub fn into_error(self) -> LoopError {
        self.error
    }
}
