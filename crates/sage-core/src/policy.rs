//! The policies that a template can choose: joins, failures, retries, unknown outcomes.
//!
//! Pure data and arithmetic. Randomness (jitter) is an argument, never drawn here.

use serde::{Deserialize, Serialize};

/// How many members of a phase must succeed for the phase to count as reached.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Join {
    #[default]
    All,
    /// A race: the first success wins and the others are cancelled.
    Any,
    AtLeastCount(u32),
    /// 0 < share < 1, of the members that were not skipped, rounded up.
    AtLeastShare(f64),
}

impl Join {
    /// How many of `members` (skipped ones not counted) must succeed.
    pub fn needed(self, members: u32) -> u32 {
        match self {
            Join::All => members,
            Join::Any => members.min(1),
            Join::AtLeastCount(count) => count.min(members),
            // A tiny tolerance keeps 0.75 x 4 at 3 although 0.7 x 10 is 7.000000000000001.
            Join::AtLeastShare(share) => (share * f64::from(members) - 1e-9).ceil().max(0.0) as u32,
        }
    }
}

/// What happens to the run when a join is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnJoin {
    #[default]
    Fail,
    Pause,
}

/// What happens to siblings when a member fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    #[default]
    Continue,
    FailFast,
}

/// How many items of a fan-out may fail while the fan-out still succeeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerate {
    Count(u32),
    Share(f64),
}

impl Tolerate {
    pub fn allowed(self, items: u32) -> u32 {
        match self {
            Tolerate::Count(count) => count,
            Tolerate::Share(share) => (share * f64::from(items) + 1e-9).floor() as u32,
        }
    }
}

/// What to do with a step whose outcome is unknown after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum OnUnknown {
    /// At-least-once: run it again; `SAGE_KEY` is the idempotency key.
    #[default]
    Retry,
    /// A person decides.
    Ask,
    /// A command decides: exit 0 means done and its stdout is the result, anything else means run again.
    Reconcile(String),
}

/// Why an attempt failed, as far as a retry policy cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The program said no: a non-zero exit, an error result.
    Failed,
    /// A passing trouble of a target: connection, overload, 5xx.
    Transient,
    RateLimit,
    Quota,
    Auth,
    /// The input or the result is wrong: bad expression, schema, missing artifact. Repeating does not help.
    Invalid,
    Timeout,
    /// The process vanished or ended without a result.
    Lost,
    Rejected,
}

impl FailureClass {
    pub const ALL: [FailureClass; 9] = [
        FailureClass::Failed,
        FailureClass::Transient,
        FailureClass::RateLimit,
        FailureClass::Quota,
        FailureClass::Auth,
        FailureClass::Invalid,
        FailureClass::Timeout,
        FailureClass::Lost,
        FailureClass::Rejected,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Failed => "failed",
            FailureClass::Transient => "transient",
            FailureClass::RateLimit => "rate-limit",
            FailureClass::Quota => "quota",
            FailureClass::Auth => "auth",
            FailureClass::Invalid => "invalid",
            FailureClass::Timeout => "timeout",
            FailureClass::Lost => "lost",
            FailureClass::Rejected => "rejected",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backoff {
    Constant,
    Linear,
    #[default]
    Exponential,
}

/// `retry`: how often, how long between, for which failures, and whether later tries go back further.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// All tries together; 1 means no retry.
    pub attempts: u32,
    pub backoff: Backoff,
    pub delay_ms: u64,
    pub max_delay_ms: u64,
    pub jitter: bool,
    /// Empty: every class that repeating can help.
    pub on: Vec<FailureClass>,
    /// First the attempt again, then the step from its rendering on, at last the whole phase once (R7).
    pub progressive: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 1,
            backoff: Backoff::Exponential,
            delay_ms: 1_000,
            max_delay_ms: 60_000,
            jitter: true,
            on: Vec::new(),
            progressive: false,
        }
    }
}

impl Retry {
    pub fn covers(&self, class: FailureClass) -> bool {
        if self.on.is_empty() {
            !matches!(class, FailureClass::Invalid | FailureClass::Auth | FailureClass::Rejected)
        } else {
            self.on.contains(&class)
        }
    }

    /// Pause before attempt `next` (2 is the first retry). `jitter` is a random number in 0..1.
    pub fn delay_before_ms(&self, next: u32, jitter: f64) -> u64 {
        let steps = u64::from(next.saturating_sub(2));
        let base = match self.backoff {
            Backoff::Constant => self.delay_ms,
            Backoff::Linear => self.delay_ms.saturating_mul(steps + 1),
            Backoff::Exponential => self.delay_ms.saturating_mul(1u64 << steps.min(32)),
        };
        let capped = base.min(self.max_delay_ms);
        if self.jitter { (capped as f64 * (0.5 + 0.5 * jitter.clamp(0.0, 1.0))) as u64 } else { capped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R7
    #[test]
    fn shares_round_up_and_never_ask_for_more_than_there_is() {
        assert_eq!(Join::AtLeastShare(0.75).needed(4), 3);
        assert_eq!(Join::AtLeastShare(0.7).needed(10), 7);
        assert_eq!(Join::AtLeastShare(0.5).needed(3), 2);
        assert_eq!(Join::AtLeastCount(5).needed(3), 3);
        assert_eq!(Join::Any.needed(0), 0);
        assert_eq!(Join::All.needed(7), 7);
    }

    // covers: R7
    #[test]
    fn backoff_grows_and_is_capped() {
        let retry =
            Retry { attempts: 9, jitter: false, delay_ms: 100, max_delay_ms: 1_000, ..Retry::default() };
        let delays: Vec<u64> = (2..8).map(|n| retry.delay_before_ms(n, 0.0)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_000, 1_000]);
        let linear = Retry { backoff: Backoff::Linear, ..retry.clone() };
        assert_eq!(linear.delay_before_ms(4, 0.0), 300);
        let jittered = Retry { jitter: true, ..retry };
        assert_eq!(jittered.delay_before_ms(2, 0.0), 50);
        assert_eq!(jittered.delay_before_ms(2, 1.0), 100);
        assert_eq!(jittered.delay_before_ms(u32::MAX, 1.0), 1_000);
    }

    #[test]
    fn what_repeating_cannot_help_is_not_repeated() {
        let retry = Retry::default();
        assert!(retry.covers(FailureClass::Lost));
        assert!(!retry.covers(FailureClass::Invalid));
        let only = Retry { on: vec![FailureClass::Invalid], ..retry };
        assert!(only.covers(FailureClass::Invalid) && !only.covers(FailureClass::Lost));
    }
}
