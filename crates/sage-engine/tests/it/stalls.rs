//! Time limits of attempts, steps and queues, silence, and how often a run may try again.

use std::sync::Arc;

use sage_core::event::{Event, PauseReason};
use sage_core::policy::{FailureClass, Rung};
use sage_core::run::{Run, State, Status};
use sage_core::verdict::Verdict;
use sage_engine::control::Signal;
use sage_engine::sim::SimFs;

use crate::script::Call;
use crate::world::World;

fn world() -> World {
    World::new(Arc::new(SimFs::new(1)))
}

fn one(fields: &str, prompt: &str) -> String {
    format!(
        "name: s\nphases:\n  - id: p\n    operations: {{ id: x, type: agent, agent: fake, {fields}prompt: '{prompt}' }}\n"
    )
}

fn rungs(world: &World) -> Vec<(u64, Rung)> {
    let rung = |(at, event): (u64, Event)| match event {
        Event::StepStalled(stalled) => Some((at - 1_000_000, stalled.rung)),
        _ => None,
    };
    world.events().into_iter().filter_map(rung).collect()
}

fn class_of(run: &Run, path: &str) -> FailureClass {
    run.step(run.find(path).unwrap()).failure.as_ref().unwrap().class
}

fn times(world: &World) -> Vec<(u64, u64, &'static str)> {
    let time = |c: Call| (c.from_ms - 1_000_000, c.to_ms.unwrap_or(0).saturating_sub(c.from_ms), c.how);
    world.steps.calls().into_iter().map(time).collect()
}

// covers: S4, R14
#[test]
fn a_silent_agent_is_nudged_and_goes_on() {
    let world = world();
    let run = world.run(&one("", "hang nudgeable"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(rungs(&world), [(300_000, Rung::Nudge)]);
    assert_eq!((world.begun("p/x"), run.tally.stalls), (1, 0));
}

// covers: S4, R14
#[test]
fn an_agent_that_stays_silent_is_restarted_once_and_then_asked_about() {
    let world = world();
    let run = world.run(&one("", "hang<3 ms=100"));
    let expected =
        [(300_000, Rung::Nudge), (600_000, Rung::Restart), (900_000, Rung::Nudge), (1_200_000, Rung::Ask)];
    assert_eq!(rungs(&world), expected);
    assert_eq!(run.status, Status::Paused { reason: PauseReason::Unknown, until: None });
    assert!(matches!(run.step(run.find("p/x").unwrap()).state, State::Unknown));
    let answer = Signal::Answer {
        step: "p/x".into(),
        choice: "retry".into(),
        by: "me".into(),
        message: None,
        ask: None,
        input: None,
    };
    world.live(async || world.engine().deliver("f", answer).await.unwrap());
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!(world.begun("p/x"), 3);
}

// covers: S4, R14
#[test]
fn a_ladder_may_end_in_failure_be_reset_by_progress_or_not_be_there() {
    let world = world();
    let stall = "retry: 1, stall: { after: 10s, nudges: 0, restarts: 1, then: fail }, ";
    let run = world.run(&one(stall, "hang"));
    assert_eq!(rungs(&world), [(10_000, Rung::Restart), (20_000, Rung::Fail)]);
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    assert_eq!((class_of(&run, "p/x"), run.tally.stalls), (FailureClass::Timeout, 2));
    for (fields, prompt, agent) in [
        (stall, "ms=60000 alive=9000", "fake"),
        (stall, "ms=9000 usage=1,1,1,1,1", "fake"),
        ("stall: false, ", "ms=7200000", "fake"),
        ("", "ms=7200000", "mute"),
    ] {
        let world = self::world();
        let run = world.run(&one(fields, prompt).replace("agent: fake", &format!("agent: {agent}")));
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{prompt}");
        assert_eq!(rungs(&world), [], "{prompt}");
    }
}

// covers: R14, R7
#[test]
fn the_time_of_a_step_is_for_all_of_its_attempts() {
    let world = world();
    let retry = "{ attempts: 9, delay: 1s, backoff: constant, jitter: false }";
    let run = world.run(&one(&format!("timeout: {{ step: 10s }}, retry: {retry}, "), "ms=4000 fail"));
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    let expected = [(0, 4_000, "failed"), (5_000, 4_000, "failed"), (10_000, 2_000, "timeout")];
    assert_eq!(times(&world), expected, "no attempt on the last crumb");
    let world = self::world();
    let run = world.run(&one(&format!("timeout: 3s, retry: {retry}, "), "ms1=9000 ms=100"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(times(&world), [(0, 3_000, "timeout"), (4_000, 100, "succeeded")]);
}

// covers: R14, P6
#[test]
fn a_step_does_not_wait_for_its_turn_for_ever() {
    let mut world = world();
    world.parallel = 1;
    let text = "
name: q
phases:
  - id: p
    operations:
      - { id: a, type: shell, priority: P0, params: { run: 'ms=60000' } }
      - { id: b, type: shell, timeout: { queue: 10s }, params: { run: 'ms=1' } }
      - { id: c, type: shell, timeout: { queue: 10m }, params: { run: 'ms=1' } }
";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    assert_eq!((world.begun("p/a"), world.begun("p/b"), world.begun("p/c")), (1, 0, 1));
    assert_eq!(class_of(&run, "p/b"), FailureClass::Timeout);
    assert_eq!(run.step(run.find("p/b").unwrap()).ended_ms, 1_010_000);
}

// covers: R7
#[test]
fn a_storm_of_retries_is_stopped_by_the_runs_budget_of_them() {
    let mut world = world();
    world.parallel = 20;
    let text = "
name: storm
retryBudget: 0.1
phases:
  - id: p
    operations: { id: x, type: shell, foreach: '[range(200)]', retry: { attempts: 5, delay: 10, jitter: false }, params: { run: 'ms=5 fail' } }
";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    let calls = world.steps.calls().len();
    println!("storm: {calls} calls of 1000 possible, {} retries", run.tally.retries);
    assert!(calls <= 235, "{calls}");
    assert!(calls >= 210, "{calls}");
}

// covers: R7
#[test]
fn a_pause_between_tries_is_spread_and_never_shorter_than_the_target_asks() {
    let world = world();
    let run = world.run(&one(
        "retry: { attempts: 3, delay: 100, jitter: false }, ",
        "ms=10 fail<2 class=transient retry=20000",
    ));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(times(&world), [(0, 10, "transient"), (20_010, 10, "succeeded")]);
    let world = self::world();
    let run =
        world.run(&one("retry: { attempts: 5, delay: 100, maxDelay: 2s }, ", "ms=10 fail<5 class=transient"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    let calls = world.steps.calls();
    let gaps: Vec<u64> = calls.windows(2).map(|pair| pair[1].from_ms - pair[0].to_ms.unwrap()).collect();
    println!("decorrelated pauses: {gaps:?}");
    let mut last = 100;
    for gap in gaps {
        assert!((100..=(3 * last + 2).min(2_002)).contains(&gap), "{gap} after {last}");
        last = gap;
    }
}

// covers: R7, R5
#[test]
fn a_crash_does_not_shorten_what_the_target_asked_for() {
    let world = world();
    let text = one(
        "retry: { attempts: 3, delay: 100, jitter: false }, ",
        "ms=10 fail<2 class=transient retry=600000",
    );
    let cut = world.live(async || world.kill_after(world.start(&text).unwrap(), 5_000).await);
    assert!(cut.is_none());
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(times(&world)[1].0, 600_010);
}

// covers: R14, R18
#[test]
fn a_phase_out_of_time_still_pays_what_its_attempts_had_used() {
    let world = world();
    let text = "
name: t
budget: 100k
phases:
  - id: p
    timeout: 1s
    operations: { id: x, type: agent, agent: fake, prompt: 'ms=300 usage=100,100,100,100,100' }
";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    assert_eq!((run.tally.usage.total(), run.tally.unattributed), (300, 0));
    let node = run.ledger.node("run").unwrap();
    assert_eq!((node.settled.tokens, node.reserved.tokens), (300, 0));
}

// covers: R5, P6
#[test]
fn going_on_with_another_priority_keeps_the_queue_whole() {
    let mut world = world();
    world.parallel = 1;
    let text = "name: p\nphases:\n  - id: p\n    operations: { id: x, type: shell, foreach: '[range(5)]', params: { run: 'ms=100' } }\n";
    let cut = world.live(async || world.kill_after(world.start(text).unwrap(), 250).await);
    assert!(cut.is_none());
    let settings = sage_core::event::Settings { parallel: 1, priority: Some(0), ..Default::default() };
    let request = sage_engine::open::ResumeRequest { settings: Some(settings), ..Default::default() };
    let run = world.live(async || {
        let owned = world.resume_with(request).unwrap().unwrap();
        world.kill_after(owned, 3_600_000).await
    });
    let run = run.expect("it comes to an end");
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(run.ready_count(), 0);
}
