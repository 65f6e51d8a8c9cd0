//! How much a step reserves before anybody knows what it will use, and what earlier runs teach about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Amount, Cap};

/// Less than this does not get a step anywhere: it is not started on the last crumb.
pub const MIN_TOKENS: u64 = 1_000;
pub const MIN_MICRO_USD: u64 = 10_000;

/// What a step reserves of each unit that somebody limits: its own budget as far as those above have it, else
/// what earlier attempts used and a quarter, else an equal share of what is left.
///
/// `own` is what is left of the step's own budget, so that a second attempt does not want all of it again.
/// A unit that `history` has as 0 was never reported. Of `capped` and `left` only `left` is counted with;
/// `capped` says which units have a cap on the way at all.
pub fn reservation(
    own: Option<Cap>,
    history: Option<Amount>,
    left: Cap,
    steps_left: u32,
    capped: Cap,
) -> Amount {
    let own = own.unwrap_or_default();
    let history = history.unwrap_or_default();
    let share = |left: Option<u64>, least: u64| (left.unwrap_or(0) / u64::from(steps_left.max(1))).max(least);
    Amount {
        tokens: match (own.tokens, capped.tokens, history.tokens) {
            // Never nothing: a budget that is used up must not let a step through.
            (Some(own), _, _) => least(own, left.tokens, MIN_TOKENS).max(1),
            (None, None, _) => 0,
            (None, Some(_), 0) => share(left.tokens, MIN_TOKENS),
            (None, Some(_), mean) => and_a_quarter(mean),
        },
        micro_usd: match (own.micro_usd, capped.micro_usd, history.micro_usd) {
            (Some(own), _, _) => least(own, left.micro_usd, MIN_MICRO_USD).max(1),
            (None, None, _) => 0,
            (None, Some(_), 0) => share(left.micro_usd, MIN_MICRO_USD),
            (None, Some(_), mean) => and_a_quarter(mean),
        },
    }
}

/// All of its own budget, or what is left above it, if that gets it anywhere.
fn least(own: u64, left: Option<u64>, enough: u64) -> u64 {
    left.map_or(own, |left| own.min(left.max(enough)))
}

fn and_a_quarter(mean: u64) -> u64 {
    mean.saturating_add(mean.div_ceil(4))
}

/// What steps used in earlier attempts, by [`History::key`]. Stored per project between runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    steps: BTreeMap<String, Learned>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Learned {
    tokens: Tally,
    micro_usd: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tally {
    count: u64,
    mean: u64,
}

impl History {
    /// Beyond this the least used are forgotten: a file that is read at every start stays small.
    pub const MAX_KEYS: usize = 1_000;

    /// One key for all items of a fan-out: `review` and `check/files[3]` are `review/check/files`.
    pub fn key(template: &str, path: &str) -> String {
        format!("{template}/{}", crate::run::Run::path_without_index(path))
    }

    /// Takes 0 for "not reported": learning it as a number would make the next reservations too small.
    pub fn learn(&mut self, key: &str, used: Amount) {
        if used.is_zero() {
            return;
        }
        match self.steps.get_mut(key) {
            Some(learned) => learned.take(used),
            None => {
                // Before it is inserted: the newcomer is among the least used, and must get its chance.
                self.forget_down_to(Self::MAX_KEYS - 1);
                let mut learned = Learned::default();
                learned.take(used);
                self.steps.insert(key.to_owned(), learned);
            }
        }
    }

    /// `None` if nothing is known of it; 0 in a unit that was never reported.
    pub fn mean(&self, key: &str) -> Option<Amount> {
        let learned = self.steps.get(key)?;
        let mean = Amount { tokens: learned.tokens.mean, micro_usd: learned.micro_usd.mean };
        Some(mean).filter(|mean| !mean.is_zero())
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn forget_down_to(&mut self, len: usize) {
        while self.steps.len() > len {
            let least = self.steps.iter().min_by_key(|(_, learned)| learned.uses());
            let Some(key) = least.map(|(key, _)| key.clone()) else {
                return;
            };
            self.steps.remove(&key);
        }
    }
}

impl Learned {
    fn take(&mut self, used: Amount) {
        self.tokens.take(used.tokens);
        self.micro_usd.take(used.micro_usd);
    }

    fn uses(&self) -> u64 {
        self.tokens.count.max(self.micro_usd.count)
    }
}

impl Tally {
    fn take(&mut self, value: u64) {
        if value == 0 {
            return;
        }
        let sum = u128::from(self.mean) * u128::from(self.count) + u128::from(value);
        self.count = self.count.saturating_add(1);
        // Rounded to the nearest, so that many small roundings do not add up in one direction.
        let mean = (sum + u128::from(self.count / 2)) / u128::from(self.count);
        self.mean = u64::try_from(mean).unwrap_or(u64::MAX);
    }
}
