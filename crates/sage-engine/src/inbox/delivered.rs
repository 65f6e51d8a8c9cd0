//! What a delivery did.

use std::time::Duration;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    pub handled: usize,
    /// Had been handled before and were only acknowledged.
    pub repeated: usize,
    pub failed: usize,
    pub dead: usize,
    /// Still there: they wait for another try, behind such a one, or are being written.
    pub left: usize,
    /// Another process delivers.
    pub busy: bool,
    /// When it is worth looking again, if something is left.
    pub again: Option<Duration>,
}

impl Delivered {
    /// This one, and one more after it.
    pub fn then(self, next: Delivered) -> Delivered {
        Delivered {
            handled: self.handled + next.handled,
            repeated: self.repeated + next.repeated,
            failed: self.failed + next.failed,
            dead: self.dead + next.dead,
            ..next
        }
    }

    pub(super) fn again_in(&mut self, wait: Duration) {
        self.again = Some(self.again.map_or(wait, |known| known.min(wait)));
    }
}
