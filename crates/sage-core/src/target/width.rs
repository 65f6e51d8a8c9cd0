//! How many calls at once a target bears, learned from its refusals: halved by one, grown again by successes.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Width {
    width: u32,
    /// Where it is forgotten if the policy states no width: twice what was under way when it was cut.
    ceiling: u32,
    /// Since it last grew.
    successes: u32,
}

impl Width {
    /// At least 1: nothing would ever grow again.
    pub(super) fn get(&self) -> u32 {
        self.width.max(1)
    }

    pub(super) fn cut(last: Option<Width>, concurrent: Option<u32>, in_flight: u32) -> Option<Width> {
        let half = (in_flight / 2).max(1);
        // What still ran from before the last cut must not widen it.
        let width = last.map_or(half, |last| last.get().min(half));
        Width { width, ceiling: in_flight.max(1).saturating_mul(2), successes: 0 }.below(concurrent)
    }

    pub(super) fn grow(self, concurrent: Option<u32>) -> Option<Width> {
        let successes = self.successes.saturating_add(1);
        let next = if successes >= self.get() {
            Width { width: self.get().saturating_add(1), successes: 0, ..self }
        } else {
            Width { successes, ..self }
        };
        next.below(concurrent)
    }

    fn below(self, concurrent: Option<u32>) -> Option<Width> {
        (self.get() < concurrent.unwrap_or(self.ceiling)).then_some(self)
    }
}
