//! A target: whatever a step depends on outside of the run (a provider's account, a model, an agent, an MCP
//! server, a host, a command). Its breaker says whether it is healthy, its quota how fast it may be used.
//!
//! Pure state machines: time is an argument. The state is shared by all runs, so it is plain data.

mod breaker;
mod quota;

use serde::{Deserialize, Serialize};

pub use breaker::{Breaker, BreakerPolicy, BreakerState, Transition};
pub use quota::{Quota, QuotaPolicy};

use crate::policy::FailureClass;
use crate::port::{QuotaSignal, Refusal, Usage};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetPolicy {
    pub breaker: BreakerPolicy,
    pub quota: QuotaPolicy,
}

/// The state of a target, as all runs see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    pub breaker: Breaker,
    pub quota: Quota,
}

/// May a call be made now?
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// `probe`: it is the one that finds out whether the target is well again.
    Go {
        probe: bool,
    },
    Wait(Hold),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub reason: HoldReason,
    /// When it is worth asking again, in ms since the epoch, if that is known.
    pub until: Option<u64>,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldReason {
    Breaker,
    /// A person switched it off.
    Isolated,
    RateLimit,
    Quota,
}

/// What a call is expected to use, for the per-minute limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReport {
    pub probe: bool,
    /// `None`: it succeeded, or we stopped it ourselves (`stopped`).
    pub failure: Option<FailureClass>,
    pub stopped: bool,
    pub ms: u64,
    pub usage: Usage,
    pub refusal: Option<Refusal>,
    pub signal: Option<QuotaSignal>,
    /// Calls to this target that were under way when it ended, itself included: what was too many.
    pub in_flight: u32,
    pub message: String,
}
