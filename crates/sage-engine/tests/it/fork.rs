//! Forks: what was finished is taken over and costs nothing, the source is never touched, and a power cut leaves
//! a whole fork or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::budget::{Cap, RUN};
use sage_core::event::{Event, Settings};
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_core::wire::WorkflowMetrics;
use sage_engine::journal;
use sage_engine::open::{ForkRequest, OpenError, ResumeRequest, Resumed};
use sage_engine::results::{Face, value_of};
use sage_engine::sim::{Fault, SimFs};
use serde_json::Value;

use crate::crashes::{INNER, OUTER, results};
use crate::world::{World, states};

/// `a -> b -> c`, and `aside`, which has nothing to do with them.
const CHAIN: &str = "
name: chain
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: steady, prompt: 'usage=10 ms=5' }
      - { id: aside, type: agent, agent: steady, prompt: 'usage=100 ms=50' }
      - { id: b, type: agent, agent: steady, needs: [p/a], prompt: 'usage=1 ms=5' }
      - { id: c, type: shell, needs: [p/b], params: { run: 'ms=5' } }
";

fn world() -> World {
    World::new(Arc::new(SimFs::new(1)))
}

fn request(from: &str) -> ForkRequest {
    ForkRequest {
        run: None,
        source: "f".into(),
        from: from.into(),
        feature: "g".into(),
        title: "G".into(),
        edit: None,
        settings: None,
        no_wait: false,
    }
}

fn fork(world: &World, request: ForkRequest) -> Run {
    world.live(async || world.engine().fork(request).unwrap().drive().await.unwrap())
}

fn refused(world: &World, request: ForkRequest) -> OpenError {
    world.live(async || world.engine().fork(request).unwrap_err())
}

fn begun(world: &World) -> Vec<u32> {
    ["p/a", "p/aside", "p/b", "p/c"].into_iter().map(|path| world.begun(path)).collect()
}

/// The newest journal of a feature, byte by byte.
fn bytes(world: &World, feature: &str) -> Option<Vec<u8>> {
    let engine = world.engine();
    let run = engine.latest(feature)?;
    Some(engine.vfs.read(&engine.project.run_dir(&run).join(journal::FILE_NAME), 1 << 30).unwrap())
}

fn result(world: &World, run: &Run, step: &str) -> Value {
    let output = run.step(run.find(step).unwrap()).output.clone().unwrap();
    world.live(async || value_of(&output, Face::Full, &world.engine().blobs(&run.id)).unwrap())
}

// covers: R5, R18
#[test]
fn a_fork_takes_over_what_was_finished_and_pays_for_its_own() {
    let world = world();
    let source = world.run(CHAIN);
    let before = world.live(async || bytes(&world, "f"));
    let run = fork(&world, request("p/b"));
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", states(&run));
    assert_eq!(begun(&world), [1, 1, 2, 2]);
    assert_eq!((run.feature.as_str(), run.title.as_str(), run.id == source.id), ("g", "G", false));
    assert_eq!(run.forked_from().unwrap().run, source.id);
    assert_eq!(result(&world, &run, "p/a"), result(&world, &source, "p/a"));
    let (own, theirs) = (WorkflowMetrics::of(&run), WorkflowMetrics::of(&source));
    assert_eq!((theirs.total_tokens, own.total_tokens), (111, 1));
    assert_eq!((own.steps_reused, own.attempts, own.resumes, own.owners), (2, 2, 0, 1));
    assert!(own.total_time < theirs.total_time, "{own:?}");
    let reused: Vec<bool> = run.live_steps().map(|step| step.reused).collect();
    assert_eq!(reused, [true, true, false, false]);
    assert_eq!(run.live_steps().map(|step| step.attempts).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(world.live(async || bytes(&world, "f")), before, "the source was touched");
    // What the fold says does not depend on who folds it.
    let again = world.live(async || world.engine().read("g").unwrap().run);
    assert_eq!(states(&again), states(&run));
    assert_eq!(WorkflowMetrics::of(&again).total_tokens, 1);
}

// covers: R5, R18
#[test]
fn a_fork_has_a_budget_of_its_own() {
    let world = world();
    let budget = |tokens| Settings {
        parallel: 4,
        budget: Some(Cap { tokens: Some(tokens), ..Cap::default() }),
        ..Settings::default()
    };
    let mut start = world.request(CHAIN);
    start.settings = budget(10_000_000);
    world.live(async || world.engine().start(start).unwrap().drive().await.unwrap());
    let run = fork(&world, ForkRequest { settings: Some(budget(10_000_001)), ..request("p/b") });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    let node = run.ledger.node(RUN).unwrap();
    assert_eq!((node.settled.tokens, node.reserved.tokens), (1, 0));
    assert_eq!(node.cap.unwrap().tokens, Some(10_000_001));
}

// covers: R5
#[test]
fn a_fork_of_a_running_run_leaves_it_alone() {
    let world = world();
    world.live(async || {
        let mut owned = Box::pin(world.start(CHAIN).unwrap().drive());
        let early = tokio::time::timeout(std::time::Duration::from_millis(8), &mut owned).await;
        assert!(early.is_err(), "it is over already");
        // `a` is finished, `aside` and `b` are under way.
        let fork = world.engine().fork(request("p/b")).unwrap();
        assert_eq!(states(fork.run_loop.run())["p/a"], "succeeded");
        let (source, fork) = tokio::join!(owned, fork.drive());
        let (source, fork) = (source.unwrap(), fork.unwrap());
        assert_eq!(source.status, Status::Finished(Verdict::Succeeded));
        assert_eq!(fork.status, Status::Finished(Verdict::Succeeded));
        assert_eq!((source.tally.usage.total(), fork.tally.usage.total()), (111, 101));
        assert!(fork.live_steps().all(|step| !step.unknown));
    });
    assert_eq!(begun(&world), [1, 2, 2, 2]);
}

// covers: R5
#[test]
fn an_edited_fork_runs_what_changed_and_what_was_asked_for() {
    let world = world();
    world.run(CHAIN);
    let edit = world.edit(&CHAIN.replace("usage=1 ms=5", "usage=2 ms=5")).edit;
    let run = fork(&world, ForkRequest { edit, ..request("p/b") });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!((begun(&world), run.tally.usage.total()), (vec![1, 1, 2, 2], 2));
    // A step that is asked for runs also if nothing about it has changed.
    let edit = world.edit(CHAIN).edit;
    fork(&world, ForkRequest { edit, feature: "h".into(), ..request("p/c") });
    assert_eq!(begun(&world), [1, 1, 2, 3]);
    // A template that does not fit leaves nothing behind.
    let wrong = world.edit("name: x").edit;
    let error = refused(&world, ForkRequest { edit: wrong, feature: "i".into(), ..request("p/c") });
    assert!(matches!(error, OpenError::Fold(_)), "{error}");
    assert!(world.live(async || world.engine().latest("i")).is_none());
}

// covers: R5
#[test]
fn a_fork_of_a_fork_and_of_a_failed_run_go_on() {
    let world = world();
    let broken = CHAIN.replace("run: 'ms=5'", "run: 'fail'");
    let failed = world.run(&broken);
    assert_eq!(failed.status, Status::Finished(Verdict::Failed));
    let again = fork(&world, request("p/c"));
    assert_eq!(again.status, Status::Finished(Verdict::Failed));
    assert_eq!(begun(&world), [1, 1, 1, 2]);
    let edit = world.edit(CHAIN).edit;
    let third = ForkRequest { source: "g".into(), feature: "h".into(), edit, ..request("p/c") };
    let run = fork(&world, third);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!(begun(&world), [1, 1, 1, 3]);
    let line: Vec<&str> = run.forks.iter().map(|from| from.feature.as_str()).collect();
    assert_eq!(line, ["f", "g"]);
    assert_eq!(run.tally.usage.total(), 0);
}

// covers: R5
#[test]
fn what_cannot_be_forked_is_told_and_leaves_nothing() {
    let world = world();
    let error = refused(&world, request("p/b"));
    assert!(matches!(&error, OpenError::Unknown(name) if name == "f"), "{error}");
    world.run(CHAIN);
    let error = refused(&world, request("p/asid"));
    assert_eq!(error.to_string(), "no step `p/asid` in `f`; did you mean `p/aside`?");
    let error = refused(&world, ForkRequest { feature: "f".into(), ..request("p/b") });
    assert!(matches!(&error, OpenError::Taken(name) if name == "f"), "{error}");
    assert!(world.live(async || world.engine().latest("g")).is_none());
    fork(&world, request("p"));
    assert_eq!(begun(&world), [2, 2, 2, 2], "a phase can be named");
    assert!(matches!(refused(&world, request("p/b")), OpenError::Taken(_)));
}

// covers: R5
#[test]
fn an_outcome_that_a_person_must_judge_stays_the_sources() {
    let world = world();
    let asks = CHAIN.replace("id: b, type: agent,", "id: b, onUnknown: ask, type: agent,");
    world.live(async || {
        let owned = world.start(&asks).unwrap();
        assert!(world.kill_after(owned, 7).await.is_none());
    });
    let error = refused(&world, request("p/c"));
    assert!(matches!(&error, OpenError::Unanswered(step) if step == "p/b"), "{error}");
    assert!(world.live(async || world.engine().latest("g")).is_none());
}

/// A result that is too large for the journal.
fn large() -> String {
    CHAIN.replace("params: { run: 'ms=5' }", &format!("params: {{ run: 'ms=5 {}' }}", "x".repeat(70_000)))
}

// covers: R4
#[test]
fn a_fork_outlives_its_source() {
    let world = world();
    let text = large();
    let source = world.run(&text);
    let all = result(&world, &source, "p/c");
    let run = fork(&world, request("p/aside"));
    assert_eq!(begun(&world), [1, 2, 1, 1]);
    world.live(async || {
        let engine = world.engine();
        engine.vfs.remove_dir_all(&engine.project.run_dir(&source.id)).unwrap();
    });
    assert_eq!(result(&world, &run, "p/c"), all);
    let events = world.events_of("g");
    assert!(events.iter().any(|(_, event)| matches!(event, Event::RunForked(_))));
}

/// Goes on with the fork, or makes it if it is not there.
fn finish(world: &World) -> Run {
    world.live(async || match world.engine().resume("g", ResumeRequest::default()) {
        Ok(Resumed::Owned(owned)) => owned.drive().await.unwrap(),
        Ok(Resumed::Complete { run, .. }) => *run,
        Err(OpenError::Unknown(_)) => world.engine().fork(request("p/b")).unwrap().drive().await.unwrap(),
        Err(error) => panic!("{error}"),
    })
}

// covers: R4, R5
#[test]
fn a_power_cut_at_any_moment_leaves_a_whole_fork_or_none() {
    let text = large();
    let (mut whole, mut none) = (0, 0);
    for cut in 0.. {
        let disk = SimFs::new(cut + 1);
        let world = World::new(Arc::new(disk.clone()));
        let source = world.run(&text);
        let before = world.live(async || bytes(&world, "f"));
        disk.fail_at(disk.ops() + cut, Fault::Crash);
        let made = world.live(async || world.engine().fork(request("p/b")).is_ok());
        disk.restart();
        disk.clear_faults();
        assert_eq!(world.live(async || bytes(&world, "f")), before, "cut {cut}: the source was touched");
        match world.live(async || world.engine().read("g")) {
            Ok(snapshot) => {
                whole += 1;
                assert_eq!(snapshot.run.forks.len(), 1, "cut {cut}: half a fork");
                assert_eq!(snapshot.run.tally.reused, 2, "cut {cut}");
            }
            Err(OpenError::Unknown(_)) => none += 1,
            Err(error) => panic!("cut {cut}: {error}"),
        }
        let run = finish(&world);
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "cut {cut}");
        assert_eq!(begun(&world), [1, 1, 2, 2], "cut {cut}");
        assert_eq!(result(&world, &run, "p/c"), result(&world, &source, "p/c"), "cut {cut}");
        assert_eq!(run.tally.usage.total(), 1, "cut {cut}");
        if made {
            break;
        }
        assert!(cut < 200, "it does not come to an end");
    }
    assert!(whole > 0 && none > 5, "{whole} whole, {none} none");
}

fn outer() -> World {
    world().with("inner", INNER)
}

/// Steps that were begun more often than `before`.
fn more(world: &World, before: &BTreeMap<String, u32>) -> Vec<String> {
    let now = world.steps.begun.lock().unwrap().clone();
    now.into_iter().filter(|(path, times)| before.get(path) != Some(times)).map(|(path, _)| path).collect()
}

// covers: R5
#[test]
fn a_fork_repeats_what_a_resume_from_there_repeats_and_gives_the_same() {
    let paths: Vec<String> = {
        let run = outer().run(OUTER);
        run.live_steps().map(|step| step.path.to_string()).chain(["fan".into(), "last".into()]).collect()
    };
    assert!(paths.iter().any(|path| path.contains("leaf[")), "{paths:?}");
    for path in paths {
        let (resumed, forked) = (outer(), outer());
        let source = resumed.run(OUTER);
        let begun = resumed.steps.begun.lock().unwrap().clone();
        let reference = resumed.live(async || results(&resumed, &source));
        let from = ResumeRequest { from: Some(path.clone()), ..ResumeRequest::default() };
        resumed.live(async || resumed.resume_with(from).unwrap().unwrap().drive().await.unwrap());
        forked.run(OUTER);
        let run = fork(&forked, request(&path));
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{path}: {:?}", states(&run));
        assert_eq!(more(&forked, &begun), more(&resumed, &begun), "{path}");
        // Steps that were taken back are only in the one that took them back.
        let mut given = forked.live(async || results(&forked, &run));
        given.retain(|path, _| reference.contains_key(path));
        assert_eq!(given, reference, "{path}");
    }
}

// covers: R5
#[test]
fn a_run_that_was_killed_at_any_time_can_be_forked() {
    let reference = outer();
    let reference = {
        let run = reference.run(OUTER);
        reference.live(async || results(&reference, &run))
    };
    for ms in [0, 1, 3, 5, 8, 10, 12, 15, 20, 25] {
        for step in ["first/a", "fan/each", "last/done"] {
            let world = outer();
            world.live(async || {
                let owned = world.start(OUTER).unwrap();
                world.kill_after(owned, ms).await;
            });
            let run = fork(&world, request(step));
            assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{step} after {ms} ms");
            let mut given = world.live(async || results(&world, &run));
            given.retain(|path, _| reference.contains_key(path));
            assert_eq!(given, reference, "{step} after {ms} ms");
            let source = world.go_on();
            assert_eq!(source.status, Status::Finished(Verdict::Succeeded), "{step} after {ms} ms");
        }
    }
}
