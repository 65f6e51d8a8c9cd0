//! A target: whatever a step depends on outside of the run (a provider's account, a model, an agent, an MCP
//! server, a host, a command). Its breaker says whether it is healthy, its quota how fast it may be used.
//!
//! Pure state machines: time is an argument. The state is shared by all runs, so it is plain data.

mod breaker;
mod park;
mod quota;
mod rate;
#[cfg(test)]
mod tests;
mod width;
mod window;

use serde::{Deserialize, Serialize};

pub use breaker::{Breaker, BreakerPolicy, BreakerState, Ratio, Slow, Transition};
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
    /// Not a target's: other runs have all slots of a pool.
    Pool,
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
    /// The failure is the agent's program's or the step's own. It says nothing about the provider and the model.
    pub own: bool,
    pub ms: u64,
    /// As it was admitted with: `usage` replaces it.
    pub estimate: Estimate,
    pub usage: Usage,
    pub refusal: Option<Refusal>,
    pub signal: Option<QuotaSignal>,
    /// Calls to this target that were under way when it ended, itself included: what was too many.
    pub in_flight: u32,
    pub message: String,
}

impl Target {
    /// May a call with this estimate start? The breaker is asked first, then the quota; it takes from the
    /// buckets only when it may. `probe_free`: no other process is probing this target now.
    pub fn admit(
        &mut self,
        policy: &TargetPolicy,
        now_ms: u64,
        estimate: &Estimate,
        probe_free: bool,
    ) -> Admission {
        self.settle(policy, now_ms);
        let probe = match self.breaker.admit(&policy.breaker, now_ms, probe_free) {
            Ok(probe) => probe,
            Err(hold) => return Admission::Wait(hold),
        };
        match self.quota.admit(&policy.quota, now_ms, estimate) {
            Ok(()) => Admission::Go { probe },
            Err(hold) => Admission::Wait(hold),
        }
    }

    /// A look that changes nothing: is it isolated, open or parked now? Whether there is room for a certain
    /// call, only `admit` says. A clock's jump back is only got over for good by `settle`.
    pub fn hold(&self, policy: &TargetPolicy, now_ms: u64) -> Option<Hold> {
        self.breaker.hold(&policy.breaker, now_ms).or_else(|| self.quota.hold(now_ms))
    }

    /// A call is over. Gives what changed with the breaker.
    pub fn record(&mut self, policy: &TargetPolicy, now_ms: u64, report: &CallReport) -> Vec<Transition> {
        self.settle(policy, now_ms);
        self.quota.record(&policy.quota, now_ms, report);
        self.breaker.record(&policy.breaker, now_ms, report).into_iter().collect()
    }

    /// What a target says about its limits while a call is still under way.
    pub fn learn(&mut self, policy: &TargetPolicy, now_ms: u64, signal: &QuotaSignal) {
        self.settle(policy, now_ms);
        self.quota.learn(&policy.quota, now_ms, signal);
    }

    /// A person says that all is well: the breaker closes, and what was learned of the quota is forgotten.
    pub fn clear(&mut self, now_ms: u64, why: &str) {
        self.breaker.reset(now_ms, why);
        self.quota = Quota::default();
    }

    /// Nothing worth keeping: the same as no state at all.
    pub fn is_default(&self) -> bool {
        *self == Target::default()
    }

    /// Gets over a clock that was set back: what is left of a hold is never more than the whole. It counts once it is
    /// written; what is only computed starts anew with every look.
    pub fn settle(&mut self, policy: &TargetPolicy, now_ms: u64) {
        self.breaker.settle(&policy.breaker, now_ms);
        self.quota.settle(now_ms);
    }
}
