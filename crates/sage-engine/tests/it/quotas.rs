//! Targets that say no: used-up quotas, rate limits, open breakers. Nobody knocks before the time is over, no
//! try is used up, and the run goes on by itself.

use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{Event, PauseReason};
use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use sage_core::run::{Run, Status};
use sage_core::target::{BreakerState, QuotaPolicy};
use sage_core::verdict::Verdict;
use sage_engine::open::ResumeRequest;
use sage_engine::sim::SimFs;

use crate::script::{Call, Closed};
use crate::world::{World, states};

const HOUR: u64 = 3_600_000;
const PROVIDER: &str = "provider:fake";

fn world(parallel: u32) -> World {
    let mut world = World::new(Arc::new(SimFs::new(1)));
    world.parallel = parallel;
    world
}

fn fan(count: u32, prompt: &str) -> String {
    format!(
        "name: q\nphases:\n  - id: p\n    operations: {{ id: each, type: agent, agent: fake, retry: 1, foreach: '[range({count})]', prompt: '{prompt}' }}\n"
    )
}

fn close(world: &World, span_ms: u64, class: FailureClass, retry_after_ms: Option<u64>) -> u64 {
    let until_ms = world.now_ms() + span_ms;
    let reset_at_ms = (class == FailureClass::Quota).then_some(until_ms);
    let closed = Closed { until_ms, class, refusal: Refusal { retry_after_ms, reset_at_ms } };
    world.steps.closed.lock().unwrap().insert("fake".into(), closed);
    until_ms
}

fn succeeded(run: &Run) {
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(run));
}

fn begun_between(calls: &[Call], from_ms: u64, to_ms: u64) -> usize {
    calls.iter().filter(|call| (from_ms..to_ms).contains(&call.from_ms)).count()
}

fn pauses(world: &World) -> Vec<(PauseReason, Option<u64>)> {
    let paused = |(_, event)| match event {
        Event::RunPaused(paused) => Some((paused.reason, paused.until)),
        _ => None,
    };
    world.events().into_iter().filter_map(paused).collect()
}

// covers: R7, P6
#[test]
fn a_used_up_quota_is_waited_for_without_another_call() {
    let world = world(8);
    let reset = close(&world, HOUR, FailureClass::Quota, None);
    let run = world.run(&fan(100, "ms=100 usage=10"));
    succeeded(&run);
    let calls = world.steps.calls();
    let first = calls[0].from_ms;
    let before = begun_between(&calls, 0, reset);
    println!(
        "quota: {before} calls before the reset, {} in all, run took {} ms",
        calls.len(),
        run.elapsed_ms()
    );
    assert!(before <= 8, "only those that were under way together: {before}");
    assert_eq!(begun_between(&calls, first + 1, reset), 0);
    assert_eq!(calls.len(), 100 + before);
    assert_eq!(pauses(&world), [(PauseReason::Quota, Some(reset))]);
    assert_eq!((run.tally.retries, run.tally.errors, run.tally.refused), (0, 0, before as u32));
    assert!(run.step(run.find("p/each[0]").unwrap()).tries == 0);
}

// covers: R7, P6
#[test]
fn whoever_does_not_want_to_wait_for_a_quota_gets_a_paused_run() {
    let world = world(8);
    let reset = close(&world, HOUR, FailureClass::Quota, None);
    let mut request = world.request(&fan(20, "ms=100"));
    request.no_wait = true;
    let paused = world.live(async || world.engine().start(request).unwrap().drive().await.unwrap());
    assert_eq!(paused.status, Status::Paused { reason: PauseReason::Quota, until: Some(reset) });
    let before = world.steps.calls().len();
    let again = ResumeRequest { no_wait: true, ..ResumeRequest::default() };
    let again = world.live(async || world.resume_with(again).unwrap().unwrap().drive().await.unwrap());
    assert_eq!(again.status, Status::Paused { reason: PauseReason::Quota, until: Some(reset) });
    assert_eq!(world.steps.calls().len(), before, "asking again costs no call");
    succeeded(&world.go_on());
    assert_eq!(begun_between(&world.steps.calls(), 1_000_001, reset), 0);
}

// covers: R7, P6, R5
#[test]
fn a_run_that_is_killed_while_it_waits_for_a_quota_waits_again() {
    let world = world(8);
    let reset = close(&world, HOUR, FailureClass::Quota, None);
    let text = fan(20, "ms=100");
    let ended = world.live(async || world.kill_after(world.start(&text).unwrap(), 600_000).await);
    assert!(ended.is_none());
    let before = world.steps.calls().len();
    for _ in 0..3 {
        let ended = world.live(async || world.kill_after(world.resume().unwrap().unwrap(), 600_000).await);
        assert!(ended.is_none());
    }
    assert_eq!(world.steps.calls().len(), before, "no call by any of its owners");
    let run = world.go_on();
    succeeded(&run);
    assert_eq!(begun_between(&world.steps.calls(), 1_000_001, reset), 0);
    assert_eq!(pauses(&world), vec![(PauseReason::Quota, Some(reset)); 5]);
}

// covers: R7, P6
#[test]
fn a_quota_that_somebody_resets_is_not_waited_for() {
    let world = world(8);
    close(&world, HOUR, FailureClass::Quota, None);
    let text = fan(20, "ms=100");
    let run = world.live(async || {
        let owned = world.start(&text).unwrap();
        let reset = async {
            tokio::time::sleep(Duration::from_secs(600)).await;
            world.steps.closed.lock().unwrap().clear();
            for (name, _) in world.limits.targets() {
                world.limits.change(&name, |target| target.clear(world.now_ms(), "it is well")).unwrap();
            }
        };
        let (run, ()) = tokio::join!(owned.drive(), reset);
        run.unwrap()
    });
    succeeded(&run);
    assert!((600_000..605_000).contains(&run.elapsed_ms()), "{}", run.elapsed_ms());
}

// covers: R7, R13, P6
#[test]
fn fifty_that_are_refused_together_come_back_once_and_narrower() {
    let world = world(50);
    close(&world, 1_500, FailureClass::RateLimit, Some(2_000));
    let run = world.run(&fan(50, "ms=100 usage=5"));
    succeeded(&run);
    let calls = world.steps.calls();
    let first = calls[0].from_ms;
    let later = begun_between(&calls, first + 1, first + 2_000);
    let width = |from: u64, to: u64| begun_between(&calls, from, to);
    println!("rate limit: {} calls of 100, {later} within 2 s, {} ms in all", calls.len(), run.elapsed_ms());
    let bursts: Vec<usize> = (20..40).map(|n| width(first + n * 100, first + n * 100 + 100)).collect();
    println!("calls begun per 100 ms after it: {bursts:?}");
    assert_eq!(later, 0);
    assert!(calls.len() <= 120, "{}", calls.len());
    assert_eq!((run.tally.retries, run.tally.refused, run.tally.errors), (0, 50, 0));
    assert_eq!(bursts[0], 25, "half of what was too much: {bursts:?}");
    assert!(bursts[..2].iter().sum::<usize>() >= 50, "{bursts:?}");
}

// covers: R7, R13
#[test]
fn a_narrow_target_grows_again_by_success() {
    let world = world(16);
    close(&world, 500, FailureClass::RateLimit, Some(1_000));
    let run = world.run(&fan(200, "ms=100"));
    succeeded(&run);
    let calls = world.steps.calls();
    let first = calls[0].from_ms + 1_000;
    let bursts: Vec<usize> =
        (0..12).map(|n| begun_between(&calls, first + n * 100, first + n * 100 + 100)).collect();
    println!("width after a refusal at 16: {bursts:?}");
    assert_eq!(bursts[0], 8);
    assert!(bursts.windows(2).take(6).all(|pair| pair[0] <= pair[1]), "{bursts:?}");
    assert!(*bursts.iter().max().unwrap() > 10, "{bursts:?}");
    assert_eq!(calls.len(), 216);
}

const BROKEN: &str = "
name: b
retryBudget: 1
phases:
  - id: p
    operations:
      - { id: bad, type: shell, target: 'host:x', foreach: '[range(12)]', tolerate: 12, retry: { attempts: 2, delay: 1s, jitter: false }, params: { run: 'ms=10 fail<2' } }
      - { id: good, type: shell, target: 'host:y', foreach: '[range(12)]', params: { run: 'ms=10' } }
";

// covers: R7, P6
#[test]
fn a_broken_host_is_left_alone_then_probed_by_one_call_at_a_time() {
    let world = world(1);
    let run = world.run(BROKEN);
    assert!(matches!(run.status, Status::Finished(Verdict::Succeeded)), "{:?}", states(&run));
    let calls = world.steps.calls();
    let bad: Vec<&Call> = calls.iter().filter(|call| call.path.starts_with("p/bad")).collect();
    let opened = bad[4].to_ms.unwrap();
    let during = bad.iter().filter(|c| (opened..opened + 60_000).contains(&c.from_ms)).count();
    println!("breaker: opened after {} calls, {during} calls in the 60 s after it", 5);
    assert_eq!(during, 0);
    assert_eq!(bad[5].from_ms, opened + 60_000, "the probe comes the moment it may");
    let good = calls.iter().filter(|call| call.path.starts_with("p/good"));
    assert!(good.clone().all(|call| call.from_ms < opened + 60_000), "others are not affected");
    assert_eq!(good.count(), 12);
    assert!(pauses(&world).contains(&(PauseReason::Breaker, Some(opened + 60_000))), "{:?}", pauses(&world));
    assert!(run.tally.breaker_openings >= 1);
    let target = world.limits.targets().into_iter().find(|(name, _)| name == "host:x").unwrap().1;
    let turns: Vec<BreakerState> = target.breaker.changes.iter().map(|change| change.to).collect();
    println!("host:x went through {turns:?}");
    assert_eq!(turns[..2], [BreakerState::Open, BreakerState::HalfOpen]);
    assert_eq!(target.breaker.state(world.now_ms()), BreakerState::Closed);
}

// covers: R7, P6
#[test]
fn a_failed_probe_opens_it_again_and_two_good_ones_close_it() {
    let world = world(8);
    let text = "
name: b
phases:
  - id: first
    operations: { id: bad, type: shell, target: 'host:x', foreach: '[range(5)]', tolerate: 5, params: { run: 'ms=10 fail' } }
  - id: then
    dependencies: [first]
    operations:
      - { id: probe, priority: P0, type: shell, target: 'host:x', params: { run: 'ms=10 fail' }, retry: { attempts: 2, delay: 1s, jitter: false } }
      - { id: rest, type: shell, target: 'host:x', foreach: '[range(6)]', params: { run: 'ms=50' } }
";
    let run = world.run(&text.replace("ms=10 fail' }, retry", "ms=10 fail<2' }, retry"));
    assert_eq!(run.status, Status::Finished(Verdict::Degraded), "{:?}", sage_core::wire::errors(&run));
    let calls: Vec<Call> =
        world.steps.calls().into_iter().filter(|call| call.path.starts_with("then/")).collect();
    let opened = 1_000_000 + 10;
    assert_eq!((calls[0].path.as_str(), calls[0].from_ms), ("then/probe", opened + 60_000));
    let again = calls[0].to_ms.unwrap();
    assert_eq!(begun_between(&calls, again, again + 60_000), 0);
    assert_eq!(begun_between(&calls, again + 60_000, again + 60_001), 1, "one probe");
    let second = calls[1].to_ms.unwrap();
    assert_eq!(begun_between(&calls, again + 60_001, second), 0, "none beside it");
    let third = calls[2].to_ms.unwrap();
    assert_eq!(begun_between(&calls, second, third), 1, "the second probe alone");
    assert!(begun_between(&calls, third, third + 1) >= 4, "then all of them: {calls:#?}");
}

// covers: R7, R13
#[test]
fn a_stated_rate_spreads_the_calls() {
    let mut world = world(50);
    let mut config = sage_engine::limits::LimitsConfig::default();
    let quota = QuotaPolicy { requests_per_minute: Some(60), ..QuotaPolicy::default() };
    config.targets.entry(PROVIDER.into()).or_default().quota = quota;
    world.limits = sage_engine::limits::Limits::alone(config);
    let run = world.run(&fan(180, "ms=10"));
    succeeded(&run);
    let calls = world.steps.calls();
    let most = calls.iter().map(|c| begun_between(&calls, c.from_ms, c.from_ms + 60_000)).max().unwrap();
    println!("60 a minute: {} ms for 180 calls, at most {most} in any minute", run.elapsed_ms());
    assert!(most <= 120, "a full bucket and a minute's refill: {most}");
    assert!((119_000..125_000).contains(&run.elapsed_ms()), "{}", run.elapsed_ms());
}
