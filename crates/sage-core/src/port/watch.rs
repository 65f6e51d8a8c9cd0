//! What an attempt did to the project: a new commit, changed files. Looked at by the executor, which alone knows where
//! the attempt worked; compared with how it was before the step's first attempt.

use std::sync::{Arc, Mutex, PoisonError};

/// Asks an executor to look; it tells at the end of an attempt that succeeded.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Also look at HEAD, which needs git.
    pub head: bool,
    seen: Arc<Mutex<Option<Changes>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether a file is another one; `None` where nobody could look.
    pub files: Option<bool>,
    pub head: Option<Head>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// It has a commit that it did not have before.
    New,
    /// It is at this commit, and had it before.
    Old(String),
    /// There is no commit at all.
    Unborn,
    NoRepository,
}

impl Watch {
    pub fn new(head: bool) -> Watch {
        Watch { head, ..Watch::default() }
    }

    pub fn tell(&self, changes: Changes) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(changes);
    }

    pub fn seen(&self) -> Changes {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }
}
