//! The policies that a template can choose: joins, failures, retries, unknown outcomes.
//!
//! Pure data and arithmetic. Randomness (jitter) is an argument, never drawn here.

mod cache;
mod cause;
mod fallback;
mod hedge;
mod retry;
mod stall;
mod system;

use serde::{Deserialize, Serialize};

pub use cache::CachePolicy;
pub use cause::Cause;
pub use fallback::{Alternative, Fallback, FallbackOn};
pub use hedge::Hedge;
pub use retry::{Backoff, Jitter, Retry, RetryBudget};
pub use stall::{Rung, Stall, StallEnd, StallPolicy};
pub use system::SystemError;

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
    /// A race for more than one place: as soon as so many have succeeded, the others are cancelled.
    FirstCount(u32),
    FirstShare(f64),
}

impl Join {
    /// How many of `members` (skipped ones not counted) must succeed.
    pub fn needed(self, members: u32) -> u32 {
        match self {
            Join::All => members,
            Join::Any => members.min(1),
            Join::AtLeastCount(count) | Join::FirstCount(count) => count.min(members),
            // A tiny tolerance keeps 0.75 x 4 at 3 although 0.7 x 10 is 7.000000000000001.
            Join::AtLeastShare(share) | Join::FirstShare(share) => {
                (share * f64::from(members) - 1e-9).ceil().max(0.0) as u32
            }
        }
    }
}

impl Join {
    /// Whether those who are late are cancelled once it is reached.
    pub fn is_race(self) -> bool {
        matches!(self, Join::Any | Join::FirstCount(_) | Join::FirstShare(_))
    }
}

/// What happens to the run when a join is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnJoin {
    #[default]
    Fail,
    Pause,
}

/// What happens to a step when a budget above it has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBudget {
    /// It waits, and the run pauses when nothing else is left to do.
    #[default]
    Pause,
    Fail,
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
    /// A person decides, unless it is known that twice is as good as once.
    AskUnlessRepeatable,
    /// A command decides: exit 0 means done and its stdout is the result, anything else means run again.
    Reconcile(String),
}

impl OnUnknown {
    /// Whether a person has to decide about a step; `repeatable` is what was known of it when it started.
    pub fn asks(&self, repeatable: bool) -> bool {
        match self {
            OnUnknown::Ask => true,
            OnUnknown::AskUnlessRepeatable => !repeatable,
            OnUnknown::Retry | OnUnknown::Reconcile(_) => false,
        }
    }
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
    /// What it may spend was used up.
    Budget,
    /// A check that could not be made: it has not passed, and nothing is known to be wrong.
    Unchecked,
    /// The machine had no room, descriptors or processes for it: not a failure of the step, which waits and keeps
    /// its tries.
    System,
}

impl FailureClass {
    /// Those that a step can fail with.
    pub const ALL: [FailureClass; 11] = [
        FailureClass::Failed,
        FailureClass::Transient,
        FailureClass::RateLimit,
        FailureClass::Quota,
        FailureClass::Auth,
        FailureClass::Invalid,
        FailureClass::Timeout,
        FailureClass::Lost,
        FailureClass::Rejected,
        FailureClass::Budget,
        FailureClass::Unchecked,
    ];

    /// What a person can do about an agent that failed like this, where there is more to say than the message.
    pub fn hint(self) -> Option<&'static str> {
        Some(match self {
            FailureClass::Auth => "log in to the agent (`sage agents` shows who is), then resume",
            FailureClass::Transient => "its service had trouble; resume later, nothing that is done is lost",
            FailureClass::RateLimit => "its provider wants fewer calls at once (`sage limits`)",
            FailureClass::Quota => "its account is used up; resume after the reset, or name a `fallback`",
            FailureClass::Timeout => {
                "it was cut off; `sage logs` shows where it stood, `timeout` gives it more"
            }
            FailureClass::Lost => "its program ended without a word; `sage logs` shows its last ones",
            FailureClass::Invalid => "what it was given or what it answered is wrong; `sage logs` shows it",
            FailureClass::Budget => "`sage budget` shows what was spent and raises the cap",
            FailureClass::Failed
            | FailureClass::Rejected
            | FailureClass::Unchecked
            | FailureClass::System => return None,
        })
    }

    /// The target refused the work without doing it: nothing is wrong with the step itself.
    pub fn refused(self) -> bool {
        matches!(self, FailureClass::RateLimit | FailureClass::Quota)
    }

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
            FailureClass::Budget => "budget",
            FailureClass::Unchecked => "unchecked",
            FailureClass::System => "system",
        }
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
}
