//! Urgent work, agents that make way for it, and sessions that have one turn at a time.

use std::sync::Arc;

use sage_core::event::Event;
use sage_core::run::Status;
use sage_core::verdict::Verdict;
use sage_engine::sim::SimFs;

use crate::world::World;

fn world(parallel: u32) -> World {
    let mut world = World::new(Arc::new(SimFs::new(1)));
    world.parallel = parallel;
    world
}

fn preempted(world: &World) -> Vec<(u64, String)> {
    let found = |(at, event): (u64, Event)| match event {
        Event::StepPreempted(event) => Some((at - 1_000_000, format!("{} for {}", event.step, event.by))),
        _ => None,
    };
    world.events().into_iter().filter_map(found).collect()
}

fn urgent_after_a_second(agents: [&str; 2]) -> String {
    format!(
        "
name: u
phases:
  - id: p
    operations:
      - {{ id: a, type: agent, agent: {}, prompt: 'ms=10000' }}
      - {{ id: b, type: agent, agent: {}, priority: P3, prompt: 'ms=10000 ms2=2000' }}
      - {{ id: bell, type: sleep, params: {{ ms: 1000 }} }}
      - {{ id: urgent, type: shell, priority: P0, needs: [p/bell], params: {{ run: 'ms=500' }} }}
",
        agents[0], agents[1]
    )
}

// covers: P7
#[test]
fn urgent_work_takes_the_slot_of_the_least_important_agent_which_goes_on_afterwards() {
    let world = world(2);
    let run = world.run(&urgent_after_a_second(["steady", "steady"]));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(preempted(&world), [(1_000, "p/b for p/urgent".to_string())]);
    let urgent = &world.steps.calls_of("p/urgent")[0];
    assert_eq!(urgent.from_ms - 1_000_000, 1_000, "it does not wait");
    let times: Vec<(u64, &str)> =
        world.steps.calls_of("p/b").iter().map(|call| (call.from_ms - 1_000_000, call.how)).collect();
    assert_eq!(times, [(0, "stopped"), (1_500, "succeeded")]);
    assert_eq!(world.begun("p/a"), 1);
    assert_eq!((run.tally.preempted, run.tally.retries, run.tally.errors), (1, 0, 0));
}

// covers: P7
#[test]
fn what_cannot_go_on_is_not_stopped() {
    let world = world(2);
    let run = world.run(&urgent_after_a_second(["fake", "fake"]));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert!(preempted(&world).is_empty());
    assert_eq!(world.steps.calls_of("p/urgent")[0].from_ms - 1_000_000, 10_000);
    assert!(world.steps.calls().iter().all(|call| call.how == "succeeded"));
}

// covers: S3
#[test]
fn a_named_session_has_one_turn_at_a_time_and_waiting_for_it_holds_no_slot() {
    let text = "
name: s
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: steady, session: main, prompt: 'ms=1000' }
      - { id: b, type: agent, agent: steady, session: main, prompt: 'ms=1000' }
      - { id: c, type: agent, agent: steady, session: main, foreach: '[1, 2]', prompt: 'ms=1000' }
      - { id: other, type: agent, agent: steady, prompt: 'ms=1000' }
";
    let world = world(2);
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    let mut turns: Vec<(u64, u64)> = world
        .steps
        .calls()
        .iter()
        .filter(|call| call.path != "p/other")
        .map(|call| (call.from_ms, call.to_ms.unwrap()))
        .collect();
    turns.sort_unstable();
    assert_eq!(turns.len(), 4);
    assert!(turns.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{turns:?}");
    assert_eq!(world.steps.calls_of("p/other")[0].from_ms, 1_000_000, "it did not wait for the session");
}

// covers: P7
#[test]
fn nobody_makes_way_who_does_not_have_what_is_missing() {
    let text = "
name: u
phases:
  - id: p
    operations:
      - { id: agent, type: agent, agent: steady, prompt: 'ms=10000' }
      - { id: holder, type: shell, pool: gpu, params: { run: 'ms=5000' } }
      - { id: bell, type: sleep, params: { ms: 1000 } }
      - { id: urgent, type: shell, priority: P0, pool: gpu, needs: [p/bell], params: { run: 'ms=500' } }
";
    let world = world(4);
    let mut request = world.request(text);
    request.settings.pools = [("gpu".into(), 1)].into();
    let run = world.live(async || {
        let owned = world.engine().start(request).unwrap();
        world.kill_after(owned, 3_600_000).await
    });
    assert_eq!(run.unwrap().status, Status::Finished(Verdict::Succeeded));
    assert!(preempted(&world).is_empty());
    assert_eq!(world.begun("p/agent"), 1);
    assert_eq!(world.steps.calls_of("p/urgent")[0].from_ms - 1_000_000, 5_000);
}
