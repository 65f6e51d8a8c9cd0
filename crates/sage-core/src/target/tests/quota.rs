//! The quota's rules, one by one.

use super::*;
use crate::port::Level;

fn quota(quota: QuotaPolicy) -> TargetPolicy {
    TargetPolicy { breaker: BreakerPolicy::default(), quota }
}

fn per_minute(requests: u64) -> TargetPolicy {
    quota(QuotaPolicy { requests_per_minute: Some(requests), ..QuotaPolicy::default() })
}

fn tokens(input: u64, output: u64) -> TargetPolicy {
    quota(QuotaPolicy {
        input_tokens_per_minute: Some(input),
        output_tokens_per_minute: Some(output),
        ..QuotaPolicy::default()
    })
}

fn admit(target: &mut Target, policy: &TargetPolicy, now_ms: u64, input: u64, output: u64) -> Option<u64> {
    let estimate = Estimate { input_tokens: input, output_tokens: output };
    match target.admit(policy, now_ms, &estimate, true) {
        Admission::Go { .. } => None,
        Admission::Wait(hold) => {
            assert_eq!(hold.reason, HoldReason::RateLimit);
            Some(hold.until.unwrap() - now_ms)
        }
    }
}

fn signal(limit: u64, left: u64, reset_after_ms: Option<u64>) -> QuotaSignal {
    QuotaSignal { requests: Some(Level { limit, left, reset_after_ms }), ..QuotaSignal::default() }
}

// covers: R7
#[test]
fn requests_per_minute_are_kept() {
    let policy = per_minute(3);
    let mut target = Target::default();
    for _ in 0..3 {
        assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    }
    let before = target.clone();
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(20 * SECOND));
    // However often somebody asks: nothing is taken, nothing is lost to rounding.
    for step in 0..20 * SECOND {
        assert_eq!(wait_ms(&mut target, &policy, NOW + step), Some(20 * SECOND - step));
    }
    assert_eq!(target, before);
    assert_eq!(wait_ms(&mut target, &policy, NOW + 20 * SECOND), None);
    assert_eq!(
        hold_of(ask(&mut target, &policy, NOW + 20 * SECOND)).message,
        "3 requests per minute are used up"
    );
    // An hour later it is full, and not fuller.
    let mut calls = 0;
    while wait_ms(&mut target, &policy, NOW + HOUR).is_none() {
        calls += 1;
    }
    assert_eq!(calls, 3);
}

// covers: R7
#[test]
fn every_bucket_needs_room() {
    let policy = tokens(60_000, 6_000);
    let mut target = Target::default();
    assert_eq!(admit(&mut target, &policy, NOW, 30_000, 6_000), None);
    assert_eq!(admit(&mut target, &policy, NOW, 30_000, 0), None);
    assert_eq!(admit(&mut target, &policy, NOW, 0, 100), Some(SECOND));
    assert_eq!(admit(&mut target, &policy, NOW, 30_000, 100), Some(30 * SECOND));
    let both = Estimate { input_tokens: 1_000, output_tokens: 1_000 };
    let hold = hold_of(target.admit(&policy, NOW, &both, true));
    assert_eq!(hold.until, Some(NOW + 10 * SECOND));
    assert_eq!(hold.message, "6000 output tokens per minute are used up");
}

// covers: R7
#[test]
fn what_is_larger_than_the_bucket_needs_it_full() {
    let policy = tokens(1_000, 1_000);
    for huge in [1_001, 10_000, u64::MAX] {
        let mut target = Target::default();
        assert_eq!(admit(&mut target, &policy, NOW, 1, 0), None);
        assert_eq!(admit(&mut target, &policy, NOW, huge, 0), Some(60));
        assert_eq!(admit(&mut target, &policy, NOW + 60, huge, 0), None);
        let debt_ms = huge.saturating_sub(1_000).saturating_mul(60).min(59 * MINUTE);
        assert_eq!(admit(&mut target, &policy, NOW + 60, 0, 0), Some(debt_ms));
    }
}

// covers: R7
#[test]
fn real_usage_replaces_the_estimate() {
    let usage = |input, cache_write, output, reasoning| Usage {
        input,
        cache_write,
        output,
        reasoning,
        cache_read: Some(1_000_000),
        ..Usage::default()
    };
    // usage, wait of a call that needs 1,000 of either, after one that was estimated at 500
    let table = [
        (usage(Some(500), None, Some(500), None), ok(), Some(30 * SECOND)),
        (usage(Some(0), None, Some(0), None), ok(), None),
        (usage(Some(1_000), None, Some(0), None), ok(), Some(MINUTE)),
        (usage(Some(1_000), Some(1_000), Some(0), None), ok(), Some(2 * MINUTE)),
        (usage(Some(0), None, Some(1_000), Some(500)), ok(), Some(90 * SECOND)),
        (usage(None, None, Some(500), None), ok(), Some(30 * SECOND)),
        (usage(None, None, None, None), stopped(), Some(30 * SECOND)),
        (usage(None, None, None, None), failed(FailureClass::Lost), Some(30 * SECOND)),
        // Refused work was not done.
        (usage(None, None, None, None), rate_limited(Some(1), 1), Some(1)),
        (usage(Some(u64::MAX), Some(u64::MAX), None, None), ok(), Some(HOUR)),
    ];
    for (usage, report, wait) in table {
        let policy = tokens(1_000, 1_000);
        let mut target = Target::default();
        assert_eq!(admit(&mut target, &policy, NOW, 500, 500), None);
        let estimate = Estimate { input_tokens: 500, output_tokens: 500 };
        target.record(&policy, NOW, &CallReport { usage: usage.clone(), estimate, ..report });
        assert_eq!(admit(&mut target, &policy, NOW, 1_000, 1_000), wait, "{usage:?}");
    }
}

// covers: R7
#[test]
fn limits_are_learned_where_the_policy_states_none() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.record(&policy, NOW, &CallReport { signal: Some(signal(60, 2, None)), ..ok() });
    assert_eq!(target.quota.limits(&policy.quota).requests_per_minute, Some(60));
    assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(SECOND));
    // More is left than we think: others do not see what we have just started.
    target.learn(&policy, NOW, &signal(60, 50, None));
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(SECOND));
    // What the policy states wins, but what is left counts.
    let policy = per_minute(10);
    let mut target = Target::default();
    target.record(&policy, NOW, &CallReport { signal: Some(signal(1_000, 1, None)), ..ok() });
    assert_eq!(target.quota.limits(&policy.quota).requests_per_minute, Some(10));
    assert_eq!(target.quota.limits(&QuotaPolicy::default()).requests_per_minute, None);
    assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(6 * SECOND));
    // Says nothing at all.
    let mut target = Target::default();
    target.learn(&TargetPolicy::default(), NOW, &signal(0, 0, None));
    target.learn(&policy, NOW, &QuotaSignal::default());
    assert!(target.is_default());
}

// covers: R7
#[test]
fn nothing_left_parks_the_rate_until_it_is_reset() {
    for (reset_after_ms, wait) in [(7_000, 7_000), (10 * 365 * DAY, HOUR), (u64::MAX, HOUR)] {
        let policy = TargetPolicy::default();
        let mut target = Target::default();
        target.learn(&policy, NOW, &signal(0, 0, Some(reset_after_ms)));
        let hold = target.hold(&policy, NOW).unwrap();
        assert_eq!((hold.reason, hold.until), (HoldReason::RateLimit, Some(NOW + wait)));
        assert_eq!(hold.message, "no requests are left in this minute");
        assert_eq!(wait_ms(&mut target, &policy, NOW), Some(wait));
        assert_eq!(wait_ms(&mut target, &policy, NOW + wait), None);
        assert!(target.is_default());
    }
    let policy = per_minute(10);
    let mut target = Target::default();
    target.learn(&policy, NOW, &signal(10, 0, Some(30_000)));
    target.learn(&policy, NOW + 1, &signal(10, 0, Some(5)));
    assert_eq!(wait_ms(&mut target, &policy, NOW + 1), Some(29_999));
    assert_eq!(wait_ms(&mut target, &policy, NOW + 30_000), None);
}

// covers: R7
#[test]
fn a_rate_limit_parks_everybody_for_as_long_as_the_target_says() {
    let table = [
        (Some(7_000), 7_000),
        (Some(10 * 365 * DAY), HOUR),
        (Some(u64::MAX), HOUR),
        (Some(0), SECOND),
        (None, SECOND),
    ];
    for (retry_after_ms, wait) in table {
        let policy = TargetPolicy::default();
        let mut target = Target::default();
        assert!(target.record(&policy, NOW, &rate_limited(retry_after_ms, 1)).is_empty());
        let hold = target.hold(&policy, NOW).unwrap();
        assert_eq!(hold.message, "it was asked too often");
        assert_eq!((hold.reason, hold.until), (HoldReason::RateLimit, Some(NOW + wait)));
        assert_eq!(ask(&mut target, &policy, NOW), Admission::Wait(hold));
        assert_eq!(wait_ms(&mut target, &policy, NOW + wait), None);
    }
    // Without a refusal at all, or with the other time.
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.record(&policy, NOW, &failed(FailureClass::RateLimit));
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(SECOND));
    let refusal = Some(Refusal { retry_after_ms: None, reset_at_ms: Some(NOW + MINUTE) });
    target.record(&policy, NOW, &CallReport { refusal, ..failed(FailureClass::RateLimit) });
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(MINUTE));
}

// covers: R7
#[test]
fn later_refusals_only_extend() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    let table =
        [(0, 10_000, 10_000), (1_000, 1_000, 9_000), (5_000, 20_000, 20_000), (6_000, 19_000, 19_000)];
    for (at_ms, retry_after_ms, wait) in table {
        target.record(&policy, NOW + at_ms, &rate_limited(Some(retry_after_ms), 3));
        assert_eq!(wait_ms(&mut target, &policy, NOW + at_ms), Some(wait), "{at_ms}");
    }
    target.record(&policy, NOW + 6_000, &ok());
    assert_eq!(wait_ms(&mut target, &policy, NOW + 6_000), Some(19_000), "a success from before");
}

// covers: R7
#[test]
fn pauses_double_with_every_refusal_in_a_row() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    let (mut now_ms, mut waits) = (NOW, Vec::new());
    for _ in 0..8 {
        // A burst counts once.
        for _ in 0..5 {
            target.record(&policy, now_ms, &rate_limited(None, 5));
        }
        let wait = wait_ms(&mut target, &policy, now_ms).unwrap();
        waits.push(wait / SECOND);
        now_ms += wait;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    for report in [failed(FailureClass::Failed), stopped(), rate_limited(None, 1)] {
        target.record(&policy, now_ms, &report);
    }
    assert_eq!(wait_ms(&mut target, &policy, now_ms), Some(MINUTE), "only a success ends the row");
    now_ms += MINUTE;
    target.record(&policy, now_ms, &ok());
    target.record(&policy, now_ms, &rate_limited(None, 1));
    assert_eq!(wait_ms(&mut target, &policy, now_ms), Some(SECOND));
}

// covers: R7
#[test]
fn a_used_up_quota_parks_until_it_is_filled_again() {
    let table = [
        (Some(NOW + 3 * HOUR), 3 * HOUR),
        (Some(NOW + 7 * DAY), 7 * DAY),
        (Some(NOW + 3_650 * DAY), 8 * DAY),
        (Some(u64::MAX), 8 * DAY),
        (Some(NOW), 5 * MINUTE),
        (Some(NOW - DAY), 5 * MINUTE),
        (Some(0), 5 * MINUTE),
        (None, 5 * MINUTE),
    ];
    for (reset_at_ms, wait) in table {
        let policy = TargetPolicy::default();
        let mut target = Target::default();
        target.record(&policy, NOW, &used_up(reset_at_ms));
        let hold = target.hold(&policy, NOW).unwrap();
        assert_eq!((hold.reason, hold.until), (HoldReason::Quota, Some(NOW + wait)));
        assert_eq!(hold.message, "quota used up");
        // Never shortened, and it wins over a rate limit.
        target.record(&policy, NOW, &used_up(Some(NOW + 1)));
        target.record(&policy, NOW, &rate_limited(Some(1), 1));
        assert_eq!(ask(&mut target, &policy, NOW), Admission::Wait(hold));
        assert_eq!(wait_ms(&mut target, &policy, NOW + wait), None);
    }
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    target.record(&policy, NOW, &rate_limited(Some(30 * MINUTE), 1));
    target.record(&policy, NOW, &used_up(None));
    let hold = target.hold(&policy, NOW).unwrap();
    assert_eq!((hold.reason, hold.until), (HoldReason::Quota, Some(NOW + 30 * MINUTE)));
    let refusal = Some(Refusal { retry_after_ms: Some(2 * HOUR), reset_at_ms: None });
    target.record(&policy, NOW, &CallReport { refusal, ..failed(FailureClass::Quota) });
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(2 * HOUR));
}

// covers: R7
#[test]
fn pauses_of_a_used_up_quota_double_up_to_an_hour() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    let (mut now_ms, mut waits) = (NOW, Vec::new());
    for _ in 0..6 {
        target.record(&policy, now_ms, &used_up(None));
        target.record(&policy, now_ms, &used_up(None));
        let wait = wait_ms(&mut target, &policy, now_ms).unwrap();
        waits.push(wait / MINUTE);
        now_ms += wait;
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    target.record(&policy, now_ms, &ok());
    target.record(&policy, now_ms, &used_up(None));
    assert_eq!(wait_ms(&mut target, &policy, now_ms), Some(5 * MINUTE));
}

// covers: R7
#[test]
fn a_refusal_halves_the_width_and_successes_widen_it() {
    let policy = quota(QuotaPolicy { concurrent: Some(6), ..QuotaPolicy::default() });
    let mut target = Target::default();
    assert_eq!(target.quota.width(&policy.quota), Some(6));
    for in_flight in [6, 5, 4, 3] {
        target.record(&policy, NOW, &rate_limited(None, in_flight));
        assert_eq!(target.quota.width(&policy.quota), Some(3), "a burst cuts once");
    }
    target.record(&policy, NOW, &ok());
    let mut widths = Vec::new();
    for _ in 0..12 {
        target.record(&policy, NOW + SECOND, &stopped());
        target.record(&policy, NOW + SECOND, &ok());
        widths.push(target.quota.width(&policy.quota).unwrap());
    }
    assert_eq!(widths, [3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6]);
    assert!(target.is_default());
}

// covers: R7
#[test]
fn the_learned_width_without_a_stated_one() {
    let policy = TargetPolicy::default();
    let mut target = Target::default();
    let width = |target: &Target| target.quota.width(&policy.quota);
    assert_eq!(width(&target), None);
    target.record(&policy, NOW, &rate_limited(None, 4));
    assert_eq!(width(&target), Some(2));
    // The next episode: what still runs from before does not widen it.
    target.record(&policy, NOW + MINUTE, &rate_limited(None, 9));
    assert_eq!(width(&target), Some(2));
    target.record(&policy, NOW + 2 * MINUTE, &rate_limited(None, 2));
    assert_eq!(width(&target), Some(1));
    let mut widths = Vec::new();
    for _ in 0..6 {
        target.record(&policy, NOW + 3 * MINUTE, &ok());
        widths.push(width(&target));
    }
    assert_eq!(widths, [Some(2), Some(2), Some(3), Some(3), Some(3), None], "twice the 2 under way");
    for (in_flight, cut) in [(0, 1), (1, 1), (3, 1), (u32::MAX, u32::MAX / 2)] {
        let mut target = Target::default();
        target.record(&policy, NOW, &rate_limited(None, in_flight));
        assert_eq!(width(&target), Some(cut));
    }
    // Nothing but a rate limit cuts it.
    let mut target = Target::default();
    target.record(&policy, NOW, &CallReport { in_flight: 8, ..used_up(None) });
    assert_eq!(width(&target), None);
}

// covers: R7
#[test]
fn a_limit_of_nothing_is_a_limit_of_one() {
    let zero = Some(0);
    let policy =
        quota(QuotaPolicy { concurrent: Some(0), requests_per_minute: zero, ..QuotaPolicy::default() });
    let mut target = Target::default();
    assert_eq!(target.quota.width(&policy.quota), Some(1));
    assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    assert_eq!(wait_ms(&mut target, &policy, NOW), Some(MINUTE));
    target.record(&policy, NOW, &rate_limited(None, 0));
    assert_eq!(target.quota.width(&policy.quota), Some(1));
    assert_eq!(wait_ms(&mut target, &per_minute(u64::MAX), NOW + HOUR), None);
}

// covers: R7
#[test]
fn a_clock_that_jumps_back_makes_no_wait_longer() {
    let earlier = NOW - 10 * DAY;
    let table = [(rate_limited(Some(5_000), 1), 5_000), (used_up(Some(NOW + HOUR)), HOUR)];
    for (report, span_ms) in table {
        let policy = TargetPolicy::default();
        let mut target = Target::default();
        target.record(&policy, NOW, &report);
        assert_eq!(wait_ms(&mut target, &policy, earlier), Some(span_ms));
        assert_eq!(wait_ms(&mut target, &policy, earlier + span_ms - 1), Some(1));
        assert_eq!(wait_ms(&mut target, &policy, earlier + span_ms), None);
        // What was seen to be over stays over.
        assert_eq!(wait_ms(&mut target, &policy, earlier - DAY), None);
    }
    let policy = per_minute(1);
    let mut target = Target::default();
    assert_eq!(wait_ms(&mut target, &policy, NOW), None);
    assert_eq!(wait_ms(&mut target, &policy, earlier), Some(MINUTE));
    assert_eq!(wait_ms(&mut target, &policy, earlier + MINUTE), None);
}
