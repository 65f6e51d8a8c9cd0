//! Targets: every rule of the breaker and the quota by example, and random histories of both.

mod breaker;
mod history;
mod quota;

use super::*;

const NOW: u64 = 1_800_000_000_000;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn ok() -> CallReport {
    CallReport { ms: 10, in_flight: 1, ..CallReport::default() }
}

fn failed(class: FailureClass) -> CallReport {
    CallReport { failure: Some(class), message: "exit code 1".to_owned(), ..ok() }
}

fn stopped() -> CallReport {
    CallReport { stopped: true, ..ok() }
}

fn probing(report: CallReport) -> CallReport {
    CallReport { probe: true, ..report }
}

fn rate_limited(retry_after_ms: Option<u64>, in_flight: u32) -> CallReport {
    let refusal = Some(Refusal { retry_after_ms, reset_at_ms: None });
    CallReport { refusal, in_flight, ..failed(FailureClass::RateLimit) }
}

fn used_up(reset_at_ms: Option<u64>) -> CallReport {
    let refusal = Some(Refusal { retry_after_ms: None, reset_at_ms });
    CallReport { refusal, ..failed(FailureClass::Quota) }
}

fn ask(target: &mut Target, policy: &TargetPolicy, now_ms: u64) -> Admission {
    target.admit(policy, now_ms, &Estimate::default(), true)
}

/// The time to wait, from `now_ms` on; `None`: no wait.
fn wait_ms(target: &mut Target, policy: &TargetPolicy, now_ms: u64) -> Option<u64> {
    match ask(target, policy, now_ms) {
        Admission::Go { .. } => None,
        Admission::Wait(hold) => Some(hold.until.unwrap() - now_ms),
    }
}

fn hold_of(admission: Admission) -> Hold {
    match admission {
        Admission::Wait(hold) => hold,
        Admission::Go { probe } => panic!("it may go, probe: {probe}"),
    }
}

fn stored(target: &Target) -> Target {
    serde_json::from_str(&serde_json::to_string(target).unwrap()).unwrap()
}

// covers: R7
#[test]
fn a_healthy_target_has_no_state_worth_writing() {
    let policy = TargetPolicy {
        quota: QuotaPolicy { concurrent: Some(4), ..QuotaPolicy::default() },
        ..TargetPolicy::default()
    };
    let mut target = Target::default();
    for step in 0..100 {
        assert_eq!(ask(&mut target, &policy, NOW + step), Admission::Go { probe: false });
        assert!(target.record(&policy, NOW + step, &ok()).is_empty());
        assert!(target.record(&policy, NOW + step, &stopped()).is_empty());
        assert!(target.is_default());
    }
    assert_eq!(target.hold(&policy, NOW), None);
    // Written once after trouble, then quiet again.
    target.record(&policy, NOW, &failed(FailureClass::Failed));
    target.record(&policy, NOW, &rate_limited(None, 2));
    assert!(!target.is_default());
    for step in 0..10 {
        target.record(&policy, NOW + MINUTE + step, &ok());
    }
    assert!(target.is_default(), "{target:?}");
}

// covers: R7
#[test]
fn the_breaker_is_asked_before_the_quota() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.record(&policy, NOW, &used_up(None));
    for _ in 0..5 {
        target.record(&policy, NOW, &failed(FailureClass::Failed));
    }
    assert_eq!(hold_of(ask(&mut target, &policy, NOW)).reason, HoldReason::Breaker);
    // Open for long enough: the quota holds, so no probe starts; afterwards one does.
    let hold = hold_of(ask(&mut target, &policy, NOW + MINUTE));
    assert_eq!((hold.reason, hold.until), (HoldReason::Quota, Some(NOW + 5 * MINUTE)));
    assert_eq!(ask(&mut target, &policy, NOW + 5 * MINUTE), Admission::Go { probe: true });
}

// covers: R7
#[test]
fn a_person_clears_all_of_it() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.record(&policy, NOW, &used_up(Some(NOW + DAY)));
    target.record(&policy, NOW, &rate_limited(None, 8));
    target.breaker.isolate(NOW, "maintenance");
    target.clear(NOW + 1, "done");
    assert_eq!(ask(&mut target, &policy, NOW + 1), Admission::Go { probe: false });
    assert_eq!(target.quota.width(&policy.quota), None);
    assert_eq!(target.quota, Quota::default());
    assert_eq!(target.breaker.changes.len(), 2);
}

// covers: R7
#[test]
fn the_state_is_small_tolerant_json() {
    assert_eq!(
        serde_json::to_string(&Target::default()).unwrap(),
        r#"{"breaker":{"circuit":{"state":"closed","failures":0},"opened":0},"quota":{"rateLimitRefusals":0,"quotaRefusals":0}}"#
    );
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    for _ in 0..5 {
        target.record(&policy, NOW, &failed(FailureClass::Lost));
    }
    let text = serde_json::to_string(&target).unwrap();
    let expected = r#"{"breaker":{"circuit":{"state":"open","untilMs":1800000060000,"why":"5 failures in a row, the last: exit code 1"},"opened":1,"changes":[{"atMs":1800000000000,"from":"closed","to":"open","why":"5 failures in a row, the last: exit code 1"}]}"#;
    assert!(text.starts_with(expected), "{text}");
    let table = [
        "{}",
        r#"{"breaker":{}}"#,
        r#"{"breaker":{"circuit":{"state":"closed"}},"quota":{}}"#,
        r#"{"version":9,"breaker":{"circuit":{"state":"closed","mood":1},"x":[]},"quota":{"width":null,"y":{}}}"#,
    ];
    for text in table {
        assert!(serde_json::from_str::<Target>(text).unwrap().is_default(), "{text}");
    }
    let open: Target = serde_json::from_str(r#"{"breaker":{"circuit":{"state":"open"}}}"#).unwrap();
    assert_eq!(open.breaker.state(NOW), BreakerState::HalfOpen);
}

// covers: R7
#[test]
fn a_long_noisy_message_is_cut() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    let report = CallReport {
        message: format!("\n  \u{1b}[31m{}\nsecond line", "x".repeat(100_000)),
        ..failed(FailureClass::Failed)
    };
    for _ in 0..5 {
        target.record(&policy, NOW, &report);
    }
    let message = hold_of(ask(&mut target, &policy, NOW)).message;
    assert!(message.len() < 250 && !message.contains(char::is_control), "{message}");
}
