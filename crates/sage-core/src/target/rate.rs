//! One limit per minute: a token bucket that fills continuously, in whole numbers.
//!
//! It counts what is missing, so the default is a full bucket whatever its capacity. The unit is 1/60,000 of
//! a token: `limit` per minute is then exactly `limit` units per ms and no remainder is ever lost, however
//! often somebody asks.

use serde::{Deserialize, Serialize};

use super::park::Park;
use crate::port::Level;

const UNITS: u64 = 60_000;

/// More than that per minute is no limit, and 60 minutes of it still fit the numbers.
const MAX_LIMIT: u64 = 1_000_000_000_000;

/// A call can use far more than was estimated; nobody waits longer than this for it.
const MAX_DEBT_MINUTES: u64 = 60;

pub(super) const MAX_PARK_MS: u64 = 60 * 60_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Rate {
    /// What the target's answers say; counts where the policy says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// Missing from the bucket at `at_ms`. More than the capacity: a debt.
    used: u64,
    at_ms: u64,
    #[serde(skip_serializing_if = "Park::is_free")]
    park: Park,
}

impl Rate {
    pub(super) fn is_default(&self) -> bool {
        *self == Rate::default()
    }

    /// The limit that counts. 0 is taken for 1: the strictest that still lets something through.
    pub(super) fn limit(&self, stated: Option<u64>) -> Option<u64> {
        stated.or(self.limit).map(|limit| limit.clamp(1, MAX_LIMIT))
    }

    fn used_at(&self, limit: u64, now_ms: u64) -> u64 {
        let most = limit * UNITS * MAX_DEBT_MINUTES;
        let refilled = now_ms.saturating_sub(self.at_ms).saturating_mul(limit);
        self.used.min(most).saturating_sub(refilled)
    }

    fn set(&mut self, limit: u64, now_ms: u64, used: u64) {
        self.used = used.min(limit * UNITS * MAX_DEBT_MINUTES);
        self.at_ms = now_ms;
    }

    pub(super) fn parked_until(&self, now_ms: u64) -> Option<u64> {
        self.park.until(now_ms)
    }

    /// When the bucket has room for `amount`; `None`: now. What is larger than the bucket needs it full.
    pub(super) fn room_at(&self, stated: Option<u64>, now_ms: u64, amount: u64) -> Option<u64> {
        let limit = self.limit(stated)?;
        let capacity = limit * UNITS;
        let wanted = amount.saturating_mul(UNITS).min(capacity);
        let excess = (self.used_at(limit, now_ms) + wanted).saturating_sub(capacity);
        (excess > 0).then(|| now_ms.saturating_add(excess.div_ceil(limit)))
    }

    pub(super) fn take(&mut self, stated: Option<u64>, now_ms: u64, amount: u64) {
        if let Some(limit) = self.limit(stated)
            && amount > 0
        {
            let used = self.used_at(limit, now_ms).saturating_add(amount.saturating_mul(UNITS));
            self.set(limit, now_ms, used);
        }
    }

    /// The call is over: what was taken for it becomes what it used.
    pub(super) fn correct(&mut self, stated: Option<u64>, now_ms: u64, estimated: u64, real: u64) {
        if real >= estimated {
            self.take(stated, now_ms, real - estimated);
        } else if let Some(limit) = self.limit(stated) {
            let spared = (estimated - real).saturating_mul(UNITS);
            let used = self.used_at(limit, now_ms).saturating_sub(spared);
            self.set(limit, now_ms, used);
        }
    }

    pub(super) fn learn(&mut self, stated: Option<u64>, now_ms: u64, level: &Level) {
        let reset_after_ms = level.reset_after_ms.unwrap_or(0);
        // No limit is 0: it was not stated. With nothing else in it the level says nothing.
        if level.limit == 0 && level.left == 0 && reset_after_ms == 0 {
            return;
        }
        if stated.is_none() && level.limit > 0 {
            self.limit = Some(level.limit);
        }
        if let Some(limit) = self.limit(stated) {
            let missing = limit.saturating_sub(level.left) * UNITS;
            if missing > self.used_at(limit, now_ms) {
                self.set(limit, now_ms, missing);
            }
        }
        if level.left == 0 {
            self.park.extend(now_ms, reset_after_ms.min(MAX_PARK_MS));
        }
    }

    pub(super) fn settle(&mut self, now_ms: u64) {
        self.park.settle(now_ms);
        // After a jump back it would not fill before the clock is where it was.
        self.at_ms = self.at_ms.min(now_ms);
    }
}
