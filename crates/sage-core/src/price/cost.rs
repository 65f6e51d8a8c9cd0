//! An exact amount of money: sums of many small requests must not drift.

use super::Rate;

const PICO_PER_MICRO: u128 = 1_000_000;

/// Millionths of a millionth of a dollar: tokens times millionths of a dollar per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Cost {
    pub fn of(tokens: u64, rate: Rate) -> Cost {
        Cost(u128::from(tokens).saturating_mul(u128::from(rate.micro_usd())))
    }

    #[must_use]
    pub fn saturating_add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }

    /// Rounded half up.
    pub fn micro_usd(self) -> u64 {
        let rounded = self.0.saturating_add(PICO_PER_MICRO / 2) / PICO_PER_MICRO;
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }

    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e12
    }
}
