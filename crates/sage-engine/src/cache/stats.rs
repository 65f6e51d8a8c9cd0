//! How often there was a result, over all runs of the project. For people: a count that is lost is no harm.

use serde::{Deserialize, Serialize};

use super::Cache;
use crate::vfs;

const FILE: &str = "stats.json";
const CAP_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    pub hits: u64,
    pub misses: u64,
    pub saved_tokens: u64,
    pub saved_ms: u64,
}

impl Counts {
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits.saturating_add(self.misses);
        (all > 0).then(|| (self.hits as f64 / all as f64 * 1000.0).round() / 1000.0)
    }

    /// What has come since `before`.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            hits: self.hits.saturating_sub(before.hits),
            misses: self.misses.saturating_sub(before.misses),
            saved_tokens: self.saved_tokens.saturating_sub(before.saved_tokens),
            saved_ms: self.saved_ms.saturating_sub(before.saved_ms),
        }
    }
}

impl Cache {
    pub fn counts(&self) -> Counts {
        if self.is_strange() {
            return Counts::default();
        }
        let bytes = self.vfs.read(&self.dir.join(FILE), CAP_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Best effort: of two runs that end in the same moment, one may not be counted.
    pub(crate) fn count(&self, more: Counts) {
        if more == Counts::default() {
            return;
        }
        let all = self.counts();
        let all = Counts {
            hits: all.hits.saturating_add(more.hits),
            misses: all.misses.saturating_add(more.misses),
            saved_tokens: all.saved_tokens.saturating_add(more.saved_tokens),
            saved_ms: all.saved_ms.saturating_add(more.saved_ms),
        };
        let Ok(text) = serde_json::to_vec(&all) else { return };
        let _ = vfs::write_atomic(self.vfs.as_ref(), &self.dir.join(FILE), &text);
    }
}
