//! How sure a synthesis is. Never surer than the best independent evidence.
//!
//! ```text
//! group      sources that count once; its c is the best of them; an echo has none of its own
//! side       best = max c;  low = best * (1 - 1/2 * product of (1 - c) over the other groups);  high = best
//!            strength = 1 - product of (1 - c) over all groups
//! conflict   value = best of the first side * its share of all strengths;  low = 0;  high = best
//! whole      mean over all topics of value, low and high; low * share of the sources that made claims
//! ```
//! So agreement narrows the range from below and never moves its top; a conflict of two equals is worth at
//! most a half; who is missing widens the range. Values are cut to four digits, never rounded up.

use super::group::Side;
use super::independence::{Independent, Ties};
use super::output::Confidence;

/// A side, weighed.
#[derive(Debug)]
pub struct Weight {
    pub best: f64,
    pub low: f64,
    pub strength: f64,
    pub independent: Independent,
}

impl Weight {
    pub fn of(side: &Side, ties: &Ties<'_>) -> Weight {
        let independent = ties.independent(&side.support);
        let mut shares = independent.shares.clone();
        shares.sort_by(|a, b| b.total_cmp(a));
        let best = shares.first().copied().unwrap_or(0.0);
        let doubt = |shares: &[f64]| shares.iter().map(|share| 1.0 - share).product::<f64>();
        let others = doubt(shares.get(1..).unwrap_or_default());
        Weight { best, low: best * (1.0 - others / 2.0), strength: 1.0 - doubt(&shares), independent }
    }
}

/// What is left of the first side when the others have spoken.
pub fn contested(weights: &[Weight]) -> f64 {
    let all: f64 = weights.iter().map(|weight| weight.strength).sum();
    match weights.first() {
        Some(first) if all > 0.0 => first.best * first.strength / all,
        _ => 0.0,
    }
}

/// The whole: means over all topics.
#[derive(Debug, Default)]
pub struct Sum {
    count: f64,
    value: f64,
    low: f64,
    high: f64,
}

impl Sum {
    pub fn add(&mut self, value: f64, low: f64, high: f64) {
        self.count += 1.0;
        self.value += value;
        self.low += low;
        self.high += high;
    }

    pub fn whole(&self, answered: usize, asked: usize, independent: usize) -> Confidence {
        if self.count == 0.0 {
            return Confidence::default();
        }
        let share = answered as f64 / asked.max(1) as f64;
        Confidence {
            value: cut(self.value / self.count),
            low: cut(self.low / self.count * share),
            high: cut(self.high / self.count),
            independent,
        }
    }
}

/// Four digits. The tiny surplus keeps 0.29, which is a little less than that in binary, 0.29.
pub fn cut(share: f64) -> f64 {
    (share * 1e4 + 1e-6).floor() / 1e4
}
