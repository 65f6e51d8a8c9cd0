//! Random histories: many callers, refusals, crashes, people, clocks that jump.

use proptest::prelude::*;

use super::*;
use crate::port::Level;

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    Ask(Estimate),
    /// Of the call at this place (modulo) among those under way.
    End(usize, How),
    Isolate,
    Reset,
    Clear,
    Jump(i64),
    /// The process dies: what it did is unknown, its lock on the probe is free. Others go on from the file.
    Crash,
}

#[derive(Clone, Debug)]
enum How {
    Well { usage: u64, ms: u64 },
    Failed(FailureClass),
    RateLimit(Option<u64>),
    Quota { reset_in_ms: Option<u64> },
    Stopped,
    Signal(Level),
}

fn ops(number: impl Strategy<Value = u64> + Clone + 'static) -> impl Strategy<Value = Op> {
    let some = || prop::option::of(number.clone());
    let level = (number.clone(), number.clone(), some());
    let how = prop_oneof![
        4 => (number.clone(), number.clone()).prop_map(|(usage, ms)| How::Well { usage, ms }),
        6 => prop::sample::select(&FailureClass::ALL[..]).prop_map(How::Failed),
        1 => some().prop_map(How::RateLimit),
        1 => some().prop_map(|reset_in_ms| How::Quota { reset_in_ms }),
        1 => Just(How::Stopped),
        1 => level.prop_map(|(limit, left, reset_after_ms)| How::Signal(Level { limit, left, reset_after_ms })),
    ];
    let estimate = (number.clone(), number.clone())
        .prop_map(|(input_tokens, output_tokens)| Estimate { input_tokens, output_tokens });
    prop_oneof![
        8 => number.clone().prop_map(Op::Advance),
        16 => estimate.prop_map(Op::Ask),
        12 => (any::<usize>(), how).prop_map(|(call, how)| Op::End(call, how)),
        1 => Just(Op::Isolate),
        1 => Just(Op::Reset),
        1 => Just(Op::Clear),
        1 => (number, any::<bool>())
            .prop_map(|(ms, back)| Op::Jump(i64::try_from(ms).unwrap_or(i64::MAX) * if back { -1 } else { 1 })),
        1 => Just(Op::Crash),
    ]
}

fn policies(number: impl Strategy<Value = u64> + Clone + 'static) -> impl Strategy<Value = TargetPolicy> {
    let some = || prop::option::of(number.clone());
    let small = 0u32..4;
    let breaker =
        (small.clone(), small.clone(), number.clone(), number.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(failures, successes, open_ms, window_ms, ratio, slow)| BreakerPolicy {
                failures,
                successes,
                open_ms,
                window_ms,
                ratio: ratio.then_some(Ratio { share: 0.5, minimum: 3 }),
                slow: slow.then_some(Slow { ms: 1_000, share: 0.8, minimum: 4 }),
                ..BreakerPolicy::default()
            });
    let quota = (prop::option::of(small), some(), some(), some()).prop_map(
        |(concurrent, requests_per_minute, input_tokens_per_minute, output_tokens_per_minute)| QuotaPolicy {
            concurrent,
            requests_per_minute,
            input_tokens_per_minute,
            output_tokens_per_minute,
        },
    );
    (breaker, quota).prop_map(|(breaker, quota)| TargetPolicy { breaker, quota })
}

fn sane() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0u64..20, 0u64..2_000, 0u64..90_000, Just(HOUR), Just(9 * DAY)]
}

fn extreme() -> impl Strategy<Value = u64> + Clone {
    let edge = prop::sample::select(vec![0, 1, 2, i64::MAX as u64, u64::MAX - 1, u64::MAX]);
    prop_oneof![edge, any::<u64>(), 0u64..90_000]
}

struct World {
    policy: TargetPolicy,
    target: Target,
    now_ms: u64,
    calls: Vec<(bool, Estimate)>,
    /// What refusals have asked for, told by the test itself; forgotten when the clock jumps.
    parked_until_ms: u64,
    /// Of admissions since the last jump.
    admitted_at_ms: Vec<u64>,
}

impl World {
    fn new(policy: TargetPolicy) -> World {
        World {
            policy,
            target: Target::default(),
            now_ms: NOW,
            calls: Vec::new(),
            parked_until_ms: 0,
            admitted_at_ms: Vec::new(),
        }
    }

    fn probing(&self) -> bool {
        self.calls.iter().any(|(probe, _)| *probe)
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Advance(ms) => self.now_ms = self.now_ms.saturating_add(*ms),
            Op::Ask(estimate) => drop(self.ask(estimate)),
            Op::End(call, how) if !self.calls.is_empty() => self.end(call % self.calls.len(), how),
            Op::End(..) => {}
            Op::Isolate => self.target.breaker.isolate(self.now_ms, "off"),
            Op::Reset => self.target.breaker.reset(self.now_ms, "on"),
            Op::Clear => {
                self.target.clear(self.now_ms, "clear");
                self.forget();
            }
            Op::Jump(ms) => {
                self.now_ms = self.now_ms.saturating_add_signed(*ms);
                self.forget();
            }
            Op::Crash => {
                self.calls.clear();
                let again = stored(&self.target);
                assert_eq!(again, self.target);
                self.target = again;
            }
        }
        assert!(self.calls.iter().filter(|(probe, _)| *probe).count() <= 1, "one probe at a time");
        assert!(self.target.breaker.changes.len() <= 20);
        assert!(self.target.quota.width(&self.policy.quota) != Some(0));
    }

    fn forget(&mut self) {
        self.parked_until_ms = 0;
        self.admitted_at_ms.clear();
    }

    fn ask(&mut self, estimate: &Estimate) -> Admission {
        let (now_ms, policy) = (self.now_ms, &self.policy);
        let hold = self.target.hold(policy, now_ms);
        let state = self.target.breaker.state(now_ms);
        let probe_free = !self.probing();
        let admission = self.target.admit(policy, now_ms, estimate, probe_free);
        match &admission {
            Admission::Go { probe } => {
                assert_eq!(hold, None, "it is held");
                assert!(now_ms >= self.parked_until_ms, "it is parked");
                assert_eq!(*probe, self.target.breaker.state(now_ms) == BreakerState::HalfOpen);
                assert!(
                    matches!(state, BreakerState::Closed | BreakerState::HalfOpen)
                        || policy.breaker.open_ms == 0
                );
                assert!(!probe || probe_free);
                self.calls.push((*probe, *estimate));
                self.admitted_at_ms.push(now_ms);
                self.check_rate();
            }
            Admission::Wait(wait) => {
                self.check_wait(wait);
                // Only `admit` knows of another probe.
                let behind_probe = wait.reason == HoldReason::Breaker && wait.until.is_none();
                assert!(behind_probe || hold.is_none_or(|hold| hold == *wait));
                // Asked again, the answer is the same: a refusal takes nothing.
                let before = self.target.clone();
                assert_eq!(self.target.admit(&self.policy, now_ms, estimate, probe_free), admission);
                assert_eq!(self.target, before);
            }
        }
        admission
    }

    fn check_rate(&self) {
        if let Some(limit) = self.policy.quota.requests_per_minute {
            let recent = self.admitted_at_ms.iter().rev().take_while(|at| self.now_ms - **at < MINUTE);
            assert!(recent.count() as u64 <= limit.max(1).saturating_mul(2), "too many in a minute");
        }
    }

    fn check_wait(&self, wait: &Hold) {
        let most_ms = match wait.reason {
            HoldReason::Breaker => self.policy.breaker.open_ms,
            HoldReason::RateLimit => HOUR,
            HoldReason::Quota => 8 * DAY,
            HoldReason::Isolated => 0,
            HoldReason::Pool => unreachable!("pools are not a target's affair"),
        };
        let until = wait.until.unwrap_or(self.now_ms);
        assert!(until <= self.now_ms.saturating_add(most_ms), "{wait:?} at {}", self.now_ms);
        let known =
            wait.reason != HoldReason::Isolated && !(wait.reason == HoldReason::Breaker && self.probing());
        assert!(!known || wait.until.is_some(), "{wait:?}");
        assert!(!wait.message.is_empty());
    }

    fn end(&mut self, call: usize, how: &How) {
        let in_flight = self.calls.len() as u32;
        let (probe, estimate) = self.calls.swap_remove(call);
        let report = CallReport { probe, estimate, in_flight, ms: 5, ..CallReport::default() };
        let report = match how {
            How::Well { usage, ms } => CallReport {
                ms: *ms,
                usage: Usage { input: Some(*usage), output: Some(*usage), ..Usage::default() },
                ..report
            },
            How::Failed(class) => CallReport { failure: Some(*class), ..report },
            How::RateLimit(retry_after_ms) => {
                let asked_ms = retry_after_ms.filter(|ms| *ms > 0).unwrap_or(SECOND).min(HOUR);
                self.parked_until_ms = self.parked_until_ms.max(self.now_ms.saturating_add(asked_ms));
                let refusal = Some(Refusal { retry_after_ms: *retry_after_ms, reset_at_ms: None });
                CallReport { failure: Some(FailureClass::RateLimit), refusal, ..report }
            }
            How::Quota { reset_in_ms } => {
                let asked_ms = reset_in_ms.filter(|ms| *ms > 0).unwrap_or(5 * MINUTE).min(8 * DAY);
                self.parked_until_ms = self.parked_until_ms.max(self.now_ms.saturating_add(asked_ms));
                let reset_at_ms = reset_in_ms.map(|ms| self.now_ms.saturating_add(ms));
                let refusal = Some(Refusal { retry_after_ms: None, reset_at_ms });
                CallReport { failure: Some(FailureClass::Quota), refusal, ..report }
            }
            How::Stopped => CallReport { stopped: true, ..report },
            How::Signal(level) => {
                let (requests, output_tokens) = (Some(*level), Some(*level));
                let signal = QuotaSignal { requests, output_tokens, input_tokens: None };
                CallReport { signal: Some(signal), ..report }
            }
        };
        let changes = self.target.record(&self.policy, self.now_ms, &report);
        let kept = &self.target.breaker.changes;
        assert_eq!(changes[..], kept[kept.len() - changes.len()..]);
        assert!(changes.iter().all(|change| change.from != change.to));
    }

    /// From here on all is well: does it find back to normal, and how soon?
    fn recover(&mut self) {
        self.step(&Op::Crash);
        if self.target.breaker.state(self.now_ms) == BreakerState::Isolated {
            self.target.breaker.reset(self.now_ms, "on");
        }
        let start_ms = self.now_ms;
        let mut successes = 0;
        for _ in 0..20 {
            match self.ask(&Estimate::default()) {
                Admission::Go { .. } => {
                    self.end(0, &How::Well { usage: 0, ms: 1 });
                    successes += 1;
                }
                Admission::Wait(hold) => self.now_ms = hold.until.unwrap(),
            }
            if successes > 4 {
                break;
            }
        }
        assert!(successes > 4, "still waits: {:?}", self.target);
        assert_eq!(self.target.breaker.state(self.now_ms), BreakerState::Closed);
        assert_eq!(self.target.hold(&self.policy, self.now_ms), None);
        assert!(self.now_ms - start_ms <= 9 * DAY + self.policy.breaker.open_ms);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    // covers: R7
    #[test]
    fn every_history_keeps_the_rules_and_leads_back(
        policy in policies(sane()),
        history in prop::collection::vec(ops(sane()), 0..60),
    ) {
        let mut world = World::new(policy);
        for op in &history {
            world.step(op);
        }
        world.recover();
    }

    // covers: R7
    #[test]
    fn no_number_is_too_large(
        policy in policies(extreme()),
        history in prop::collection::vec(ops(extreme()), 0..30),
    ) {
        let mut world = World::new(policy);
        for op in &history {
            world.step(op);
        }
        world.step(&Op::Crash);
    }
}
