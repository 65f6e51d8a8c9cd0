//! Chance that is the same every time: a small generator that starts from a seed.

use std::cell::Cell;

#[derive(Debug, Default)]
pub(super) struct Chance(Cell<u64>);

impl Chance {
    pub fn seed(&self, seed: u64) {
        self.0.set(seed);
    }

    /// From 0 up to but not 1, all 53 bits of it: SplitMix64.
    pub fn draw(&self) -> f64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}
