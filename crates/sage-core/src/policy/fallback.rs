//! `fallback`: what takes a step's place when its own way is closed.

use serde_json::Value;

/// Tried in order; the last one that does not help is the step's failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    pub to: Vec<Alternative>,
    pub on: Vec<FallbackOn>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Alternative {
    /// The step's result in an earlier run of the same feature, however old.
    Cache,
    /// Another agent, another model, or both.
    Agent {
        agent: Option<String>,
        model: Option<String>,
    },
    Value(Value),
}

/// When a fallback is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackOn {
    /// Its tries are used up.
    Failure,
    /// A breaker on its way is open.
    Breaker,
    /// Its account has no quota left until a later time.
    Quota,
}

impl Fallback {
    /// Failures and open breakers; whoever would rather switch than wait for a quota says so.
    pub const DEFAULT_ON: [FallbackOn; 2] = [FallbackOn::Failure, FallbackOn::Breaker];
}

impl FallbackOn {
    pub const ALL: [FallbackOn; 3] = [FallbackOn::Failure, FallbackOn::Breaker, FallbackOn::Quota];

    pub fn name(self) -> &'static str {
        match self {
            FallbackOn::Failure => "failure",
            FallbackOn::Breaker => "breaker",
            FallbackOn::Quota => "quota",
        }
    }
}
