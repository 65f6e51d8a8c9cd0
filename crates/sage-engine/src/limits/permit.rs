//! What an attempt holds while it is under way.

use std::fs::File;
use std::sync::Arc;

use sage_core::target::{BreakerPolicy, CallReport, Estimate, Transition};

use super::member::Seat;
use super::place::Scope;
use super::store::Probe;

/// The right to make one attempt. Dropping it gives back units, concurrency and the probe; if a lock is busy
/// then, with the member's next turn.
#[derive(Debug)]
pub struct Permit {
    /// None if nothing was wanted.
    seat: Option<Arc<Seat>>,
    units: Vec<(Scope, String, u32)>,
    calls: Vec<Call>,
    estimate: Estimate,
}

#[derive(Debug)]
struct Call {
    scope: Scope,
    target: String,
    counted: bool,
    probe: Option<Probe>,
}

impl Permit {
    pub(super) fn empty() -> Self {
        Self { seat: None, units: Vec::new(), calls: Vec::new(), estimate: Estimate::default() }
    }

    pub(super) fn new(seat: Arc<Seat>, estimate: Estimate) -> Self {
        Self { seat: Some(seat), units: Vec::new(), calls: Vec::new(), estimate }
    }

    pub(super) fn holds(&mut self, scope: Scope, pool: String, units: u32) {
        self.units.push((scope, pool, units));
    }

    pub(super) fn calls(&mut self, scope: Scope, target: &str, counted: bool, probe: Option<Probe>) {
        self.calls.push(Call { scope, target: target.to_owned(), counted, probe });
    }

    /// Proofs that its member lives, for the attempt's processes: what it holds is free when they are gone too.
    #[must_use]
    pub fn proofs(&self) -> Vec<Arc<File>> {
        let Some(seat) = &self.seat else { return Vec::new() };
        let held = |scope: &Scope| self.units.iter().any(|(of, ..)| of == scope);
        let proof = |scope: Scope| seat.limits.place(scope).enter().store.proof(&seat.id);
        Scope::ALL.into_iter().filter(held).filter_map(proof).collect()
    }

    /// Whether this attempt finds out if a target is well again.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.calls.iter().any(|call| call.probe.is_some())
    }

    /// Records how the attempt ended on all of its targets. `probe`, `in_flight` and `estimate` are filled in.
    ///
    /// A provider's refusal is about its account: it says nothing about the agent and the model that asked. A
    /// program that crashes says nothing about its provider, unless `on` of the provider's breaker says so.
    pub fn report(&self, report: &CallReport, now_ms: u64) -> Vec<(String, Transition)> {
        let mut transitions = Vec::new();
        let Some(seat) = &self.seat else {
            return transitions;
        };
        let refused = report.failure.is_some_and(|class| class.refused());
        let provided = self.calls.iter().any(|call| call.scope == Scope::User);
        for call in &self.calls {
            let aside = provided && call.scope != Scope::User;
            if aside && refused {
                continue;
            }
            let mut state = seat.limits.place(call.scope).enter();
            let report = CallReport {
                probe: call.probe.is_some(),
                estimate: self.estimate,
                in_flight: state.in_flight(&call.target, call.counted),
                signal: report.signal.filter(|_| !aside),
                ..report.clone()
            };
            let policy = seat.limits.policy(&call.target);
            let spared =
                report.own && is_remote(&call.target) && policy.breaker.on == BreakerPolicy::default().on;
            let report = if spared { CallReport { failure: None, stopped: true, ..report } } else { report };
            let told = state.record(&call.target, policy, &report, now_ms);
            transitions.extend(told.into_iter().map(|transition| (call.target.clone(), transition)));
        }
        transitions
    }

    #[cfg(test)]
    pub(super) fn drop_probes(&mut self) {
        self.calls.iter_mut().for_each(|call| call.probe = None);
    }
}

/// What an agent's program only talks to.
fn is_remote(target: &str) -> bool {
    ["provider:", "model:"].iter().any(|kind| target.starts_with(kind))
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(seat) = self.seat.take() else {
            return;
        };
        for (scope, pool, units) in self.units.drain(..) {
            seat.owe(scope, &pool, units);
        }
        for scope in Scope::ALL {
            let owes = !seat.ledgers()[scope as usize].owed.is_empty();
            let lands = self.calls.iter().any(|call| call.scope == scope);
            if owes || lands {
                let mut state = seat.limits.place(scope).enter();
                for call in self.calls.iter().filter(|call| call.scope == scope) {
                    state.landed(&call.target);
                }
                if owes {
                    seat.settle_in(scope, &mut state);
                }
            }
        }
    }
}
