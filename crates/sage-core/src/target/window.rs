//! What became of the calls of the last while, in at most ten slots.

use serde::{Deserialize, Serialize};

const SLOTS: u64 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Window {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Slot {
    start_ms: u64,
    pub(super) calls: u32,
    pub(super) failures: u32,
    pub(super) slow: u32,
}

impl Window {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Counts a call and gives the sums.
    pub(super) fn count(&mut self, window_ms: u64, now_ms: u64, failed: bool, slow: bool) -> Slot {
        let width_ms = window_ms.div_ceil(SLOTS).max(1);
        let start_ms = now_ms - now_ms % width_ms;
        // The future is from before the clock jumped back: nobody knows how old it is.
        self.slots.retain(|slot| {
            slot.start_ms <= start_ms && now_ms - slot.start_ms < width_ms.saturating_mul(SLOTS)
        });
        if self.slots.last().is_none_or(|last| last.start_ms != start_ms) {
            // Another width of slots (the policy was changed) can leave more of them than this one has.
            let surplus = (self.slots.len() + 1).saturating_sub(SLOTS as usize);
            self.slots.drain(..surplus);
            self.slots.push(Slot { start_ms, ..Slot::default() });
        }
        if let Some(slot) = self.slots.last_mut() {
            slot.calls = slot.calls.saturating_add(1);
            slot.failures = slot.failures.saturating_add(u32::from(failed));
            slot.slow = slot.slow.saturating_add(u32::from(slow));
        }
        self.slots.iter().fold(Slot { start_ms, ..Slot::default() }, |sum, slot| Slot {
            start_ms,
            calls: sum.calls.saturating_add(slot.calls),
            failures: sum.failures.saturating_add(slot.failures),
            slow: sum.slow.saturating_add(slot.slow),
        })
    }
}
