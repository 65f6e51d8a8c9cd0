//! The breaker's rules, one by one.

use super::*;

fn breaker(breaker: BreakerPolicy) -> TargetPolicy {
    TargetPolicy { breaker, quota: QuotaPolicy::default() }
}

fn state(target: &Target, now_ms: u64) -> &'static str {
    target.breaker.state(now_ms).name()
}

/// Opened at `NOW` by five failures.
fn opened(policy: &TargetPolicy) -> Target {
    let mut target = Target::default();
    for _ in 0..5 {
        target.record(policy, NOW, &failed(FailureClass::Failed));
    }
    assert_eq!(state(&target, NOW), "open");
    target
}

// covers: R7
#[test]
fn failures_in_a_row_open_it() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    for _ in 0..4 {
        assert!(target.record(&policy, NOW, &failed(FailureClass::Failed)).is_empty());
    }
    target.record(&policy, NOW, &ok());
    for _ in 0..4 {
        assert!(target.record(&policy, NOW, &failed(FailureClass::Timeout)).is_empty());
    }
    assert_eq!(ask(&mut target, &policy, NOW), Admission::Go { probe: false });
    let changes = target.record(&policy, NOW + 1, &failed(FailureClass::Failed));
    let why = "5 failures in a row, the last: exit code 1".to_owned();
    let (from, to) = (BreakerState::Closed, BreakerState::Open);
    assert_eq!(changes, [Transition { at_ms: NOW + 1, from, to, why: why.clone() }]);
    let hold = Hold { reason: HoldReason::Breaker, until: Some(NOW + 1 + MINUTE), message: why };
    assert_eq!(target.hold(&policy, NOW + 2), Some(hold.clone()));
    assert_eq!(ask(&mut target, &policy, NOW + MINUTE), Admission::Wait(hold));
    assert_eq!((target.breaker.opened, target.breaker.changes.clone()), (1, changes));
}

// covers: R7
#[test]
fn only_some_classes_say_something_about_health() {
    use FailureClass::*;
    let policy = TargetPolicy::default();
    for class in FailureClass::ALL {
        let counts = matches!(class, Failed | Transient | Auth | Timeout | Lost);
        let mut target = Target::default();
        for _ in 0..50 {
            target.record(&policy, NOW, &failed(class));
        }
        assert_eq!(state(&target, NOW) == "open", counts, "{class:?}");
        // What does not count is no success either: it does not end a row.
        let mut target = Target::default();
        for _ in 0..4 {
            target.record(&policy, NOW, &failed(Failed));
            target.record(&policy, NOW, &failed(class));
            target.record(&policy, NOW, &stopped());
        }
        target.record(&policy, NOW, &failed(Failed));
        assert_eq!(state(&target, NOW), "open", "{class:?}");
    }
    let only = breaker(BreakerPolicy { on: vec![Invalid], failures: 1, ..BreakerPolicy::default() });
    let mut target = Target::default();
    target.record(&only, NOW, &failed(Failed));
    assert_eq!(state(&target, NOW), "closed");
    let silent = CallReport { message: String::new(), ..failed(Invalid) };
    assert_eq!(target.record(&only, NOW, &silent)[0].why, "failed: invalid");
}

// covers: R7
#[test]
fn switched_off_it_never_opens() {
    let policy = breaker(BreakerPolicy { failures: 0, ..BreakerPolicy::default() });
    let mut target = Target::default();
    for _ in 0..1_000 {
        target.record(&policy, NOW, &failed(FailureClass::Failed));
    }
    assert!(target.is_default());
}

// covers: R7
#[test]
fn a_share_of_failures_within_the_window_opens_it() {
    let ratio = Some(Ratio { share: 0.5, minimum: 10 });
    let policy = breaker(BreakerPolicy { failures: 0, ratio, ..BreakerPolicy::default() });
    let mut target = Target::default();
    for step in 0..9 {
        let report = if step % 2 == 0 { failed(FailureClass::Failed) } else { ok() };
        assert!(target.record(&policy, NOW + step, &report).is_empty(), "below the minimum");
    }
    // A refusal is no call of the window.
    assert!(target.record(&policy, NOW + 9, &rate_limited(None, 1)).is_empty());
    let changes = target.record(&policy, NOW + 10, &failed(FailureClass::Failed));
    assert_eq!(changes[0].why, "6 of 10 calls failed within 1m");
    // The same, too far apart.
    let mut target = Target::default();
    for step in 0..100 {
        let report = if step % 2 == 0 { failed(FailureClass::Failed) } else { ok() };
        assert!(target.record(&policy, NOW + step * 7 * SECOND, &report).is_empty());
    }
    let slots = serde_json::to_value(&target).unwrap()["breaker"]["circuit"]["window"].clone();
    assert!(slots.as_array().unwrap().len() <= 10, "{slots}");
    // Without it in the policy the window is not kept.
    target.record(&TargetPolicy::default(), NOW + DAY, &ok());
    assert_eq!(target.breaker, Breaker::default());
}

// covers: R7
#[test]
fn odd_shares_do_not_open_it_for_nothing() {
    for (share, minimum, opens) in [(0.0, 0, false), (f64::NAN, 0, false), (2.0, 0, false), (-1.0, 3, false)]
    {
        let ratio = Some(Ratio { share, minimum });
        let policy = breaker(BreakerPolicy { failures: 0, ratio, window_ms: 0, ..BreakerPolicy::default() });
        let mut target = Target::default();
        for _ in 0..20 {
            target.record(&policy, NOW, &ok());
        }
        assert_eq!(state(&target, NOW) == "open", opens, "{share}");
    }
}

// covers: R7
#[test]
fn slow_calls_are_trouble() {
    let slow = Some(Slow { ms: 30_000, share: 0.7, minimum: 10 });
    let policy = breaker(BreakerPolicy { slow, ..BreakerPolicy::default() });
    let mut target = Target::default();
    let took = |ms| CallReport { ms, ..ok() };
    for _ in 0..3 {
        target.record(&policy, NOW, &took(29_999));
    }
    for _ in 0..6 {
        assert!(target.record(&policy, NOW, &took(30_000)).is_empty());
    }
    let changes = target.record(&policy, NOW, &took(u64::MAX));
    assert_eq!(changes[0].why, "7 of 10 calls took 30s or longer within 1m");
}

// covers: R7
#[test]
fn one_probe_at_a_time_decides() {
    let policy = TargetPolicy::default();
    let mut target = opened(&policy);
    let over = NOW + MINUTE;
    assert_eq!(state(&target, over - 1), "open");
    assert_eq!(state(&target, over), "half-open");
    assert_eq!(target.hold(&policy, over), None);
    assert_eq!(ask(&mut target, &policy, over), Admission::Go { probe: true });
    let hold = hold_of(target.admit(&policy, over, &Estimate::default(), false));
    assert_eq!((hold.reason, hold.until), (HoldReason::Breaker, None));
    assert!(target.record(&policy, over, &probing(ok())).is_empty());
    assert_eq!(ask(&mut target, &policy, over), Admission::Go { probe: true });
    let changes = target.record(&policy, over, &probing(ok()));
    assert_eq!((changes[0].to.name(), changes[0].why.as_str()), ("closed", "2 probes succeeded"));
    assert_eq!(ask(&mut target, &policy, over), Admission::Go { probe: false });
    let steps: Vec<_> = target.breaker.changes.iter().map(|c| (c.from.name(), c.to.name())).collect();
    assert_eq!(steps, [("closed", "open"), ("open", "half-open"), ("half-open", "closed")]);
}

// covers: R7
#[test]
fn a_failing_probe_opens_it_again() {
    let policy = TargetPolicy::default();
    let mut target = opened(&policy);
    let over = NOW + MINUTE;
    ask(&mut target, &policy, over);
    target.record(&policy, over, &probing(ok()));
    let changes = target.record(&policy, over + 5, &probing(failed(FailureClass::Timeout)));
    assert_eq!((changes[0].to.name(), changes[0].why.as_str()), ("open", "the probe failed: exit code 1"));
    assert_eq!(wait_ms(&mut target, &policy, over + 5), Some(MINUTE));
    assert_eq!(target.breaker.opened, 2);
    // The success from before does not count any more.
    let over = over + 5 + MINUTE;
    ask(&mut target, &policy, over);
    assert!(target.record(&policy, over, &probing(ok())).is_empty());
}

// covers: R7
#[test]
fn a_probe_that_was_stopped_or_refused_decides_nothing() {
    let policy = TargetPolicy::default();
    let table =
        [stopped(), rate_limited(Some(5), 1), used_up(Some(NOW + MINUTE + 5)), failed(FailureClass::Invalid)];
    for report in table {
        let mut target = opened(&policy);
        let over = NOW + MINUTE;
        ask(&mut target, &policy, over);
        target.record(&policy, over, &probing(ok()));
        assert!(target.record(&policy, over, &probing(report.clone())).is_empty(), "{report:?}");
        assert_eq!(state(&target, over), "half-open", "{report:?}");
        let later = over + 5;
        assert_eq!(ask(&mut target, &policy, later), Admission::Go { probe: true }, "{report:?}");
        assert_eq!(target.record(&policy, later, &probing(ok())).len(), 1, "{report:?}");
    }
}

// covers: R7
#[test]
fn calls_from_before_it_opened_are_old_news() {
    let policy = TargetPolicy::default();
    let mut target = opened(&policy);
    let before = target.clone();
    for report in [ok(), failed(FailureClass::Failed), stopped()] {
        target.record(&policy, NOW + 30 * SECOND, &report);
    }
    assert_eq!(target, before);
    ask(&mut target, &policy, NOW + MINUTE);
    let before = target.clone();
    for report in [ok(), ok(), ok(), failed(FailureClass::Failed)] {
        target.record(&policy, NOW + MINUTE, &report);
    }
    assert_eq!(target, before);
}

// covers: R7
#[test]
fn a_person_switches_it_off_and_on() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.breaker.isolate(NOW, "maintenance");
    target.breaker.isolate(NOW + 1, "until monday");
    let hold = Hold { reason: HoldReason::Isolated, until: None, message: "until monday".to_owned() };
    for later in [NOW + 2, NOW + 365 * DAY, u64::MAX, 0] {
        assert_eq!(ask(&mut target, &policy, later), Admission::Wait(hold.clone()));
        assert_eq!(target.hold(&policy, later), Some(hold.clone()));
        target.record(&policy, later, &ok());
        target.record(&policy, later, &probing(failed(FailureClass::Failed)));
        assert_eq!(state(&target, later), "isolated");
    }
    target.breaker.reset(NOW + 3, "done");
    assert_eq!(ask(&mut target, &policy, NOW + 3), Admission::Go { probe: false });
    assert_eq!(target.breaker.changes.len(), 2);
    // Counters are zero, and a closed one stays quiet.
    for _ in 0..4 {
        target.record(&policy, NOW, &failed(FailureClass::Failed));
    }
    target.breaker.reset(NOW, "again");
    target.record(&policy, NOW, &failed(FailureClass::Failed));
    assert_eq!((state(&target, NOW), target.breaker.changes.len()), ("closed", 2));
}

// covers: R7
#[test]
fn the_last_twenty_changes_are_kept() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    for step in 0..30 {
        target.breaker.isolate(NOW + step, "off");
        target.breaker.reset(NOW + step, "on");
    }
    assert_eq!(target.breaker.changes.len(), 20);
    assert_eq!(target.breaker.changes[0].at_ms, NOW + 20);
    assert_eq!(target.breaker.opened, 0);
    assert_eq!(ask(&mut target, &policy, NOW), Admission::Go { probe: false });
}

// covers: R7
#[test]
fn a_clock_that_jumps_back_does_not_make_it_longer() {
    let policy = TargetPolicy::default();
    let mut target = opened(&policy);
    let earlier = NOW - 10 * DAY;
    assert_eq!(target.hold(&policy, earlier).unwrap().until, Some(earlier + MINUTE));
    assert_eq!(wait_ms(&mut target, &policy, earlier), Some(MINUTE));
    assert_eq!(wait_ms(&mut target, &policy, earlier + MINUTE - 1), Some(1));
    assert_eq!(ask(&mut target, &policy, earlier + MINUTE), Admission::Go { probe: true });
    // What a window saw in the future is forgotten.
    let ratio = Some(Ratio { share: 0.5, minimum: 2 });
    let policy = breaker(BreakerPolicy { failures: 0, ratio, ..BreakerPolicy::default() });
    let mut target = Target::default();
    target.record(&policy, NOW, &failed(FailureClass::Failed));
    assert!(target.record(&policy, earlier, &failed(FailureClass::Failed)).is_empty());
    assert!(!target.record(&policy, earlier, &failed(FailureClass::Failed)).is_empty());
}
