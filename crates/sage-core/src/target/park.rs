//! A time until which nothing is asked of a target, and how long that was meant to be.

use serde::{Deserialize, Serialize};

/// The default is no park at all. `span_ms` is kept because a clock may jump back: what is left is then never
/// more than the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Park {
    until_ms: u64,
    span_ms: u64,
}

impl Park {
    pub(super) fn is_free(&self) -> bool {
        *self == Park::default()
    }

    /// When it ends; `None`: it does not hold any more.
    pub(super) fn until(&self, now_ms: u64) -> Option<u64> {
        let until_ms = self.until_ms.min(now_ms.saturating_add(self.span_ms));
        (until_ms > now_ms).then_some(until_ms)
    }

    /// Never shortens.
    pub(super) fn extend(&mut self, now_ms: u64, span_ms: u64) {
        let until_ms = now_ms.saturating_add(span_ms);
        if until_ms > self.until(now_ms).unwrap_or(now_ms) {
            *self = Park { until_ms, span_ms };
        }
    }

    /// Forgets what is over, so that a clock that jumps back does not bring it back, and keeps the end that a
    /// jump has brought nearer.
    pub(super) fn settle(&mut self, now_ms: u64) {
        if self.is_free() {
            return;
        }
        match self.until(now_ms) {
            Some(until_ms) => self.until_ms = until_ms,
            None => *self = Park::default(),
        }
    }
}
