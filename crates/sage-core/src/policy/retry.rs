//! `retry`: how often, how long between, for which failures. Randomness is an argument.

use super::FailureClass;
use crate::event::RetryLevel;

/// How a pause is spread, so that those who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jitter {
    None,
    /// Anything from nothing to the whole pause.
    Full,
    /// Half of it fixed, half of it random.
    Equal,
    /// Between the first pause and three times the last one: grows and spreads at once.
    #[default]
    Decorrelated,
}

/// How many of a run's calls may be retries, so that a broken target is not made worse by all of its callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudget {
    pub share: f64,
    /// So many are always allowed: a small run has few calls to take a share of.
    pub floor: u32,
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
    pub jitter: Jitter,
    /// Empty: every class that repeating can help.
    pub on: Vec<FailureClass>,
    /// The second try repeats the attempt, later ones the step from its rendering on, the last one the whole phase.
    pub progressive: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 1,
            backoff: Backoff::Exponential,
            delay_ms: 1_000,
            max_delay_ms: 60_000,
            jitter: Jitter::Decorrelated,
            on: Vec::new(),
            progressive: false,
        }
    }
}

impl Retry {
    pub fn covers(&self, class: FailureClass) -> bool {
        if self.on.is_empty() {
            use FailureClass::{Auth, Budget, Invalid, Rejected, Unchecked};
            !matches!(class, Invalid | Auth | Rejected | Budget | Unchecked)
        } else {
            self.on.contains(&class)
        }
    }

    /// How far back the next try goes after `tries` failed ones; `None` if none is left. `whole_phase`: the phase
    /// may still begin again, which it does once.
    pub fn level(&self, tries: u32, class: FailureClass, whole_phase: bool) -> Option<RetryLevel> {
        if tries >= self.attempts || !self.covers(class) {
            return None;
        }
        Some(match tries {
            _ if !self.progressive => RetryLevel::Attempt,
            1 => RetryLevel::Attempt,
            _ if tries + 1 == self.attempts && whole_phase => RetryLevel::Phase,
            _ => RetryLevel::Step,
        })
    }

    /// Pause before attempt `next` (2 is the first retry), given the last pause. `random` is in 0..1.
    pub fn delay_before_ms(&self, next: u32, last_ms: Option<u64>, random: f64) -> u64 {
        let random = random.clamp(0.0, 1.0);
        let steps = u64::from(next.saturating_sub(2));
        let base = match self.backoff {
            Backoff::Constant => self.delay_ms,
            Backoff::Linear => self.delay_ms.saturating_mul(steps + 1),
            Backoff::Exponential => self.delay_ms.saturating_mul(1u64 << steps.min(32)),
        };
        let capped = base.min(self.max_delay_ms);
        match self.jitter {
            Jitter::None => capped,
            Jitter::Full => (capped as f64 * random) as u64,
            Jitter::Decorrelated if self.backoff == Backoff::Exponential => {
                let most = last_ms.unwrap_or(self.delay_ms).saturating_mul(3).max(self.delay_ms);
                let spread = (most - self.delay_ms) as f64 * random;
                self.delay_ms.saturating_add(spread as u64).min(self.max_delay_ms)
            }
            Jitter::Equal | Jitter::Decorrelated => (capped as f64 * (0.5 + 0.5 * random)) as u64,
        }
    }
}

impl RetryBudget {
    /// As a template states it: who says none means none.
    pub fn of(share: f64) -> RetryBudget {
        RetryBudget { share, floor: u32::from(share > 0.0) }
    }

    /// Whether one more retry is within the budget of a run that has made so many calls and retries.
    pub fn allows(self, calls: u32, retries: u32) -> bool {
        retries < self.floor || f64::from(retries) < self.share * f64::from(calls)
    }
}

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget { share: 0.2, floor: 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R7
    #[test]
    fn backoff_grows_and_is_capped() {
        let retry = Retry {
            attempts: 9,
            jitter: Jitter::None,
            delay_ms: 100,
            max_delay_ms: 1_000,
            ..Retry::default()
        };
        let delays: Vec<u64> = (2..8).map(|n| retry.delay_before_ms(n, None, 0.0)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_000, 1_000]);
        let linear = Retry { backoff: Backoff::Linear, ..retry.clone() };
        assert_eq!(linear.delay_before_ms(4, None, 0.0), 300);
        let equal = Retry { jitter: Jitter::Equal, ..retry.clone() };
        assert_eq!(equal.delay_before_ms(2, None, 0.0), 50);
        assert_eq!(equal.delay_before_ms(2, None, 1.0), 100);
        assert_eq!(equal.delay_before_ms(u32::MAX, None, 1.0), 1_000);
        let full = Retry { jitter: Jitter::Full, ..retry.clone() };
        assert_eq!((full.delay_before_ms(3, None, 0.0), full.delay_before_ms(3, None, 1.0)), (0, 200));
    }

    // covers: R7
    #[test]
    fn decorrelated_pauses_spread_up_to_three_times_the_last() {
        let retry = Retry { attempts: 9, delay_ms: 100, max_delay_ms: 1_000, ..Retry::default() };
        assert_eq!(retry.delay_before_ms(2, None, 0.0), 100);
        assert_eq!(retry.delay_before_ms(2, None, 1.0), 300);
        assert_eq!(retry.delay_before_ms(3, Some(300), 0.5), 500);
        assert_eq!(retry.delay_before_ms(4, Some(900), 1.0), 1_000);
        assert_eq!(retry.delay_before_ms(4, Some(u64::MAX), 1.0), 1_000);
    }

    // covers: R7
    #[test]
    fn retries_are_a_share_of_the_calls_with_a_floor() {
        let budget = RetryBudget::default();
        assert!(budget.allows(1, 0) && budget.allows(3, 9) && !budget.allows(20, 10));
        assert!(budget.allows(100, 19) && !budget.allows(100, 20));
        assert!(!RetryBudget::of(0.0).allows(100, 0));
        assert!(RetryBudget::of(0.1).allows(3, 0) && !RetryBudget::of(0.1).allows(3, 1));
    }

    // covers: R7
    #[test]
    fn attempts_count_all_tries_and_the_last_progressive_one_takes_the_phase() {
        use RetryLevel::{Attempt, Phase, Step};
        let levels = |attempts, progressive, whole_phase| {
            let retry = Retry { attempts, progressive, ..Retry::default() };
            let level = |tries| retry.level(tries, FailureClass::Failed, whole_phase);
            (1..).map_while(level).collect::<Vec<_>>()
        };
        assert_eq!(levels(3, false, true), [Attempt, Attempt]);
        assert_eq!(levels(5, true, true), [Attempt, Step, Step, Phase]);
        assert_eq!(levels(5, true, false), [Attempt, Step, Step, Step]);
        assert_eq!((levels(3, true, true), levels(2, true, true)), (vec![Attempt, Phase], vec![Attempt]));
        assert_eq!(levels(1, true, true), []);
        let retry = Retry { attempts: 9, ..Retry::default() };
        assert_eq!(retry.level(1, FailureClass::Invalid, true), None);
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
