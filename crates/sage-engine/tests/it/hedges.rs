//! Another way: attempts beside a slow one, fallbacks, joins that do not wait for all, and their bills.

use std::sync::Arc;

use sage_core::event::Event;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::sim::SimFs;

use crate::script::Call;
use crate::world::{World, states};

fn world() -> World {
    World::new(Arc::new(SimFs::new(1)))
}

fn one(fields: &str, prompt: &str) -> String {
    format!(
        "name: h\nbudget: 100k\nphases:\n  - id: p\n    operations: {{ id: x, type: agent, agent: fake, {fields}, prompt: '{prompt}' }}\n"
    )
}

fn ends(world: &World) -> Vec<(u32, &'static str, Option<u64>)> {
    let end = |call: Call| (call.attempt, call.how, call.to_ms.map(|to| to - 1_000_000));
    world.steps.calls_of("p/x").into_iter().map(end).collect()
}

fn spent(run: &Run) -> u64 {
    run.ledger.node("run").unwrap().settled.tokens
}

fn free(run: &Run) {
    for (name, node) in run.ledger.nodes() {
        assert_eq!(node.reserved, Default::default(), "`{name}` keeps a reservation");
    }
    assert!(run.steps.iter().all(|step| step.beside.is_empty()));
    assert_eq!(run.active, Default::default());
}

// covers: R7, R18
#[test]
fn the_second_attempt_wins_and_the_first_is_stopped_and_paid() {
    let world = world();
    let run = world.run(&one("hedge: 1s", "ms1=60000 ms=200 usage=100,100"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(ends(&world), [(1, "stopped", Some(1_400)), (2, "succeeded", Some(1_400))]);
    assert_eq!((run.tally.calls, run.tally.hedges, run.tally.errors, run.tally.retries), (2, 1, 0, 0));
    assert_eq!(run.tally.usage.total(), 200, "the first had used nothing yet");
    free(&run);
    let world = self::world();
    let run = world.run(&one("hedge: 1s", "ms1=900 ms=100 grace=300 usage=100,100,100"));
    assert_eq!(ends(&world), [(1, "stopped", Some(1_600)), (2, "succeeded", Some(1_300))]);
    assert_eq!(run.tally.usage.total(), 400, "one response of the first, three of the second, once each");
    assert_eq!(spent(&run), 400);
    free(&run);
}

// covers: R7
#[test]
fn a_loser_that_fails_does_not_fail_the_step() {
    let world = world();
    let run = world.run(&one("hedge: 1s, retry: 1", "ms=3000 fail@1 usage=10"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(ends(&world), [(1, "failed", Some(3_000)), (2, "succeeded", Some(4_000))]);
    assert_eq!((run.tally.errors, run.tally.usage.total()), (1, 20));
    free(&run);
}

// covers: R7, R18
#[test]
fn a_hedge_that_is_refused_costs_nothing() {
    let world = world();
    let run = world.run(&one("hedge: 1s", "ms=3000 refuse@2 usage=100"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!((run.tally.refused, spent(&run)), (1, 100));
    free(&run);
}

// covers: R7
#[test]
fn both_fail_in_either_order_and_the_retry_is_a_new_attempt() {
    for (what, prompt) in [
        ("the first one first", "ms=3000 fail<3 usage=10"),
        ("the second one first", "ms1=3000 ms=500 fail<3 usage=10"),
    ] {
        let world = world();
        let retry = "hedge: 1s, retry: { attempts: 2, delay: 100, jitter: false }";
        let run = world.run(&one(retry, prompt));
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{what}");
        let attempts: Vec<u32> = ends(&world).iter().map(|(attempt, ..)| *attempt).collect();
        assert_eq!(attempts[..3], [1, 2, 3], "{what}: no attempt has the number of another");
        assert_eq!((run.tally.retries, run.tally.errors), (1, 2), "{what}");
        let used: u64 = world.steps.calls().iter().map(|call| call.used).sum();
        assert_eq!(run.tally.usage.total(), used, "{what}");
        free(&run);
    }
}

// covers: R7, R13
#[test]
fn a_hedge_waits_for_a_slot() {
    let mut world = world();
    world.parallel = 2;
    let text = "
name: h
phases:
  - id: p
    operations:
      - { id: x, type: agent, agent: fake, hedge: 1s, prompt: 'ms1=60000 ms=100' }
      - { id: other, type: agent, agent: fake, prompt: 'ms=5000' }
";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    let hedge = world.steps.calls_of("p/x")[1].clone();
    assert!((1_005_000..=1_006_000).contains(&hedge.from_ms), "{hedge:?}");
    assert_eq!(world.steps.widest(), 2);
}

// covers: R7, R5, R18
#[test]
fn a_crash_with_both_in_flight_charges_both_and_goes_on() {
    let world = world();
    let text = one("hedge: 1s", "hang<3 ms=100 usage=100");
    let cut = world.live(async || world.kill_after(world.start(&text).unwrap(), 5_000).await);
    assert!(cut.is_none());
    let reserved: u64 = world
        .events()
        .iter()
        .map(|(_, event)| match event {
            Event::StepStarted(e) => e.reserve.map_or(0, |r| r.tokens),
            Event::StepHedged(e) => e.reserve.map_or(0, |r| r.tokens),
            _ => 0,
        })
        .sum();
    let raised = sage_engine::control::Signal::Raise {
        node: "run".into(),
        cap: sage_core::budget::Cap { tokens: Some(1_000_000), micro_usd: None },
    };
    world.live(async || world.engine().deliver("f", raised).await.unwrap());
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert!(reserved >= 100_000, "the first had all of it: {reserved}");
    assert_eq!(spent(&run), reserved + 100);
    assert_eq!(run.step(run.find("p/x").unwrap()).attempts, 3.max(world.begun("p/x")));
    free(&run);
}

// covers: R7, P5
#[test]
fn a_fallback_goes_from_agent_to_agent_to_a_value() {
    let world = world();
    let run = world.run(&one("retry: 1, fallback: [other, { value: 7 }]", "ms=10 down=fake usage=5"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "another agent is as good");
    let agents: Vec<_> = world.steps.calls_of("p/x").into_iter().filter_map(|call| call.agent).collect();
    assert_eq!(agents, ["fake", "other"]);
    free(&run);
    let world = self::world();
    let run = world.run(&one("retry: 1, fallback: [other, { value: 7 }]", "ms=10 fail usage=5"));
    assert_eq!(run.status, Status::Finished(Verdict::Degraded), "{:?}", states(&run));
    assert_eq!(run.tally.fallbacks, 2);
    assert_eq!((run.tally.usage.total(), run.tally.unattributed), (10, 0), "a value is no call");
    free(&run);
}

// covers: R7
#[test]
fn an_open_breaker_is_fallen_back_from_without_a_call() {
    let world = world();
    for _ in 0..2 {
        world.limits.change("agent:fake", |target| target.breaker.isolate(1, "switched off")).unwrap();
    }
    let run = world.run(&one("fallback: other", "ms=10"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    let agents: Vec<_> = world.steps.calls_of("p/x").into_iter().filter_map(|call| call.agent).collect();
    assert_eq!(agents, ["other"]);
    let world = self::world();
    world.limits.change("agent:fake", |target| target.breaker.isolate(1, "switched off")).unwrap();
    let run = world.run(&one("retry: 1", "ms=10"));
    assert_eq!(run.status.name(), "paused", "without a fallback a person is needed");
    assert_eq!(world.begun("p/x"), 0);
}

// covers: R7
#[test]
fn the_cache_is_an_earlier_run_of_the_feature_or_a_failure() {
    let world = world();
    let text = |prompt: &str| one("retry: 1, fallback: cache", prompt);
    let none = world.run(&text("ms=10 fail"));
    assert_eq!(none.status, Status::Finished(Verdict::Failed));
    assert!(
        sage_core::wire::errors(&none)[0].contains("no earlier run"),
        "{:?}",
        sage_core::wire::errors(&none)
    );
    let start = |text: &str| {
        let mut request = world.request(text);
        request.replace = true;
        world.live(async || world.engine().start(request).unwrap().drive().await.unwrap())
    };
    assert_eq!(start(&text("ms=10 good")).status, Status::Finished(Verdict::Succeeded));
    let cached = start(&text("ms=10 fail"));
    assert_eq!(cached.status, Status::Finished(Verdict::Degraded), "{:?}", sage_core::wire::errors(&cached));
    let output = cached.step(cached.find("p/x").unwrap()).output.clone().unwrap();
    let face = sage_engine::results::Face::Filtered;
    let blobs = world.live(async || world.engine().blobs(&cached.id));
    let value = sage_engine::results::value_of(&output, face, &blobs).unwrap();
    assert_eq!(value["stdout"], "ms=10 good");
}

// covers: R7, R5
#[test]
fn going_on_after_a_failed_fallback_begins_with_the_step_itself() {
    let world = world();
    let text = one("retry: 1, fallback: cache", "ms=10 fail<2 usage=5");
    assert_eq!(world.run(&text).status, Status::Finished(Verdict::Failed));
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    let world = self::world();
    let run = world.run(&one("retry: 1, fallback: { value: 1 }", "ms=10 fail<2 usage=5"));
    assert_eq!(run.status, Status::Finished(Verdict::Degraded));
    let from = sage_engine::open::ResumeRequest { from: Some("p/x".into()), ..Default::default() };
    let run = world.live(async || world.resume_with(from).unwrap().unwrap().drive().await.unwrap());
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "asked to run again, it runs");
}

// covers: R7
#[test]
fn the_first_two_of_five_are_enough() {
    let mut world = world();
    world.parallel = 5;
    let op = |n: u32, prompt: &str| {
        format!("      - {{ id: o{n}, type: agent, agent: fake, retry: 1, prompt: '{prompt}' }}\n")
    };
    let ops = [op(1, "ms=10 fail"), op(2, "ms=20"), op(3, "hang"), op(4, "ms=30"), op(5, "hang grace=50")];
    let text = format!(
        "name: j\nphases:\n  - id: p\n    join: {{ atLeast: 2, cancel: true }}\n    operations:\n{}",
        ops.concat()
    );
    let run = world.run(&text);
    assert!(matches!(run.status, Status::Finished(v) if v != Verdict::Failed), "{:?}", run.status);
    let by = states(&run);
    let found = ["p/o1", "p/o2", "p/o3", "p/o4", "p/o5"].map(|path| by[path]);
    assert_eq!(found, ["failed", "succeeded", "cancelled", "succeeded", "cancelled"]);
    assert!((80..100).contains(&run.elapsed_ms()), "{}", run.elapsed_ms());
}

// covers: R7, R18
#[test]
fn a_loser_that_is_slow_to_stop_outlives_the_restart_of_its_phase() {
    for (gate_ms, what) in [(300, "its step is gone"), (1, "another step has its path")] {
        let mut world = world();
        world.parallel = 20;
        let text = format!(
            "
name: h
budget: 1000k
retryBudget: 1
phases:
  - id: p
    operations:
      - {{ id: gate, type: shell, params: {{ run: 'ms={gate_ms}' }} }}
      - {{ id: each, type: agent, agent: fake, needs: [gate], foreach: '[1]', hedge: 100, prompt: 'ms1=60000 ms=50 grace=600 usage=10' }}
      - {{ id: flaky, type: shell, retry: {{ attempts: 3, delay: 10ms, jitter: false, progressive: true }}, params: {{ run: 'ms=400 fail<3' }} }}
"
        );
        let run = world.run(&text);
        assert_eq!(
            run.status,
            Status::Finished(Verdict::Succeeded),
            "{what}: {:?}",
            sage_core::wire::errors(&run)
        );
        assert!(world.steps.calls_of("p/each[0]").len() >= 4, "{what}: it ran twice, with a hedge each time");
        free(&run);
    }
}
