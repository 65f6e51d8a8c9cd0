//! Refusals of a provider: who is refused waits for the named time, and nobody knocks before it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sage_core::event::Event;
use serde_json::Value;

use crate::calls::{agents, calls, count, first, is_pause, now_ms, starts_after, wait_for_time};
use crate::dsl::{Running, Sage};

const QUOTA: &str = "refuse: 1, fault: quota, resetAfterMs: 2500, whileClosed: true";

/// Nothing starts between the first refusal in the journal and the reset; only calls that were under way
/// then came too early. Gives the time of the reset.
#[track_caller]
fn assert_nobody_knocked(sage: &Sage, feature: &str) -> u64 {
    let journal = sage.journal(feature);
    let parked = first(&journal, |event| matches!(event, Event::StepParked(_))).unwrap();
    let calls = calls(sage);
    let reset_ms = calls.iter().find(|call| call.refused).unwrap().opens_at.unwrap();
    let early: Vec<u64> =
        starts_after(&journal, parked.head.seq).into_iter().filter(|at| *at < reset_ms).collect();
    assert!(early.is_empty(), "{} starts before the reset, {early:?} < {reset_ms}", early.len());
    let before: Vec<(String, u32)> = journal
        .records
        .iter()
        .take_while(|entry| entry.head.seq < parked.head.seq)
        .filter_map(|entry| match &entry.event {
            Event::StepStarted(e) => Some((e.step.to_string(), e.attempt)),
            _ => None,
        })
        .collect();
    for call in calls.iter().filter(|call| call.early) {
        assert!(before.contains(&(call.step.clone(), call.attempt)), "{call:?} came too early");
    }
    reset_ms
}

/// All succeeded, and nothing that had succeeded ran again.
#[track_caller]
fn assert_complete(sage: &Sage, steps: usize) {
    let journal = sage.journal("x");
    journal.assert_nothing_repeated();
    let status = sage.status("x");
    assert_eq!(status["status"], "completed", "{status}");
    assert_eq!(journal.succeeded().len(), steps);
    let served = calls(sage).iter().filter(|call| !call.refused).count();
    assert_eq!(served, steps, "each was served once");
    sage.assert_nothing_alive();
}

/// A run of four agents that stands still because of the quota, its owner with it.
fn waiting() -> (Sage, Running) {
    // Long enough for what a test does meanwhile, also on a busy machine.
    let quota = QUOTA.replace("2500", "4000");
    let sage = Sage::new().template("t", &agents(4, &quota, ""));
    let mut running = sage.spawn("run x -t t --parallel 2");
    running.until(
        || sage.engine().latest("x").is_some() && first(&sage.journal("x"), is_pause).is_some(),
        "the run to stand still",
    );
    (sage, running)
}

/// Long before the reset.
#[track_caller]
fn assert_quick(asked: Instant) {
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    println!("the wait was over after {took:?}");
}

#[track_caller]
fn assert_paused(status: &Value, reason: &str) {
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &reason.into()), "{status}");
}

// covers: R7, R13
#[test]
fn a_hundred_agents_wait_for_one_quota() {
    let sage = Sage::new().template("t", &agents(100, QUOTA, ""));
    let mut running = sage.spawn("run x -t t --parallel 8");
    running.until(
        || sage.engine().latest("x").is_some() && first(&sage.journal("x"), is_pause).is_some(),
        "the run to stand still",
    );
    let (status, list) = (sage.status("x"), sage.sage("list --status paused").exit(0));
    assert_paused(&status, "quota");
    assert!(status["until"].is_string(), "{status}");
    assert_eq!(status["owner"], running.pid(), "its owner waits with it");
    let reason = format!("quota(provider:fake, {})", status["until"].as_str().unwrap());
    let waits = status["steps"].as_array().unwrap().iter().filter(|step| step["waitReason"] == *reason);
    assert_eq!(waits.count(), 101, "the items and their fan-out: {status}");
    list.stdout_has("paused");
    running.end().exit(0);
    let reset_ms = assert_nobody_knocked(&sage, "x");
    assert_complete(&sage, 100);
    let journal = sage.journal("x");
    let refused = calls(&sage).iter().filter(|call| call.refused).count();
    assert!(refused <= 8, "{refused} of 8 at once were refused");
    let late = starts_after(&journal, 0).into_iter().find(|at| *at >= reset_ms).unwrap() - reset_ms;
    println!("quota: {refused} refused, 0 early, went on {late} ms after the reset");
}

// covers: R7, R13
#[test]
fn without_waiting_it_exits_4_and_a_resume_after_the_reset_finishes() {
    let sage = Sage::new().template("t", &agents(6, QUOTA, ""));
    sage.sage("run x -t t --parallel 2 --no-wait").exit(4).stdout_has("sage resume x");
    assert_paused(&sage.status("x"), "quota");
    let before = calls(&sage).len();
    sage.sage("resume x --no-wait").exit(4);
    assert_eq!(calls(&sage).len(), before, "nobody asked again before the reset");
    wait_for_time(calls(&sage)[0].opens_at.unwrap());
    sage.sage("resume x --no-wait").exit(0);
    assert_nobody_knocked(&sage, "x");
    assert_complete(&sage, 6);
}

/// A step that sleeps is no reason to wait either.
// covers: R7, R13
#[test]
fn without_waiting_it_does_not_wait_for_a_sleeping_step() {
    let nap = "    operations:\n      - { id: nap, type: sleep, params: { ms: 3600000 } }\n";
    let text = agents(2, QUOTA, "").replace("    operations:\n", nap);
    let sage = Sage::new().template("t", &text);
    sage.sage("run x -t t --no-wait").exit(4);
    assert_paused(&sage.status("x"), "quota");
}

// covers: R5, R7, R13
#[test]
fn a_kill_while_it_waits_changes_nothing() {
    let (sage, running) = waiting();
    let before = calls(&sage).len();
    assert!(running.kill());
    let mut again = sage.spawn("resume x");
    let pauses = || count(&sage.journal("x"), "run.paused") > 1;
    again.until(pauses, "the resumed run to stand still");
    assert_eq!(calls(&sage).len(), before);
    assert!(now_ms() < calls(&sage)[0].opens_at.unwrap(), "it stood still before the reset");
    again.end().exit(0);
    assert_nobody_knocked(&sage, "x");
    assert_complete(&sage, 4);
}

// covers: R5, R7, R14
#[test]
fn an_interrupt_ends_the_wait_at_once() {
    let (sage, running) = waiting();
    let asked = Instant::now();
    running.signal(Signal::INT);
    running.end().exit(130);
    assert_quick(asked);
    assert_paused(&sage.status("x"), "interrupted");
    sage.sage("resume x").exit(0);
    assert_nobody_knocked(&sage, "x");
    assert_complete(&sage, 4);
}

// covers: R5, R7
#[test]
fn pause_ends_the_wait() {
    let (sage, running) = waiting();
    let asked = Instant::now();
    sage.sage("pause x").exit(0);
    running.end().exit(4);
    assert_quick(asked);
    assert_paused(&sage.status("x"), "user");
    // Nobody waits any more: there is nothing left to pause.
    sage.sage("pause x").exit(2);
    sage.sage("resume x").exit(0);
    assert_complete(&sage, 4);
}

// covers: R5, R7, R16
#[test]
fn cancel_ends_the_wait() {
    let (sage, running) = waiting();
    let asked = Instant::now();
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    assert_quick(asked);
    assert_eq!(sage.status("x")["status"], "cancelled");
    sage.sage("resume x").exit(0);
    assert_complete(&sage, 4);
}

// covers: R7, R13
#[test]
fn a_burst_of_fifty_comes_back_once() {
    let server = "refuse: 50, fault: rate-limit, retryAfterMs: 2000";
    let sage = Sage::new().template("t", &agents(50, server, ""));
    sage.sage("run x -t t --parallel 50").exit(0);
    let calls = calls(&sage);
    let last_ms = calls.iter().filter(|call| call.refused).map(|call| call.t).max().unwrap();
    let knocks = calls.iter().filter(|call| call.t > last_ms && call.t < last_ms + 2_000).count();
    assert_eq!(knocks, 0, "calls within the pause");
    assert!(calls.len() <= 120, "{} calls", calls.len());
    assert_complete(&sage, 50);
    let journal = sage.journal("x");
    assert_eq!(count(&journal, "step.retried"), 0, "a refusal costs no try");
    let next_ms = calls.iter().map(|call| call.t).filter(|t| *t > last_ms).min().unwrap();
    let pause_ms = next_ms - last_ms;
    println!(
        "burst: {} calls, none within the pause, the next {pause_ms} ms after the last refusal",
        calls.len()
    );
}
