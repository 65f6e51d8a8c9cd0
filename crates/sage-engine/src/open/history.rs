//! What steps used in earlier runs of the project: the estimates of budgets and dry runs.
//!
//! A courtesy, not truth: it may be deleted, and a run goes on without it.

use std::path::Path;

use sage_core::budget::History;
use sage_fence::private;

use crate::vfs::{self, DiskFs};

const FILE: &str = "usage.json";
const MAX_BYTES: u64 = 4 << 20;

pub fn load(state: &Path) -> History {
    let text = private::read(&state.join(FILE), MAX_BYTES).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Whole or not at all. Of two runs that end at once the later one wins: estimates can bear it.
pub(super) fn save(state: &Path, used: &History) {
    if used.is_empty() || *used == load(state) {
        return;
    }
    let Ok(text) = serde_json::to_vec(used) else { return };
    let _ = vfs::replace(&DiskFs::default(), &state.join(FILE), &text);
}
