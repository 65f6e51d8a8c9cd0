//! What is not the steps' fault: a machine without room, descriptors or processes, and results that are gone.

use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{End, Event, PauseReason};
use sage_core::policy::FailureClass;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::open::{Notice, ResumeRequest, Resumed, StartRequest};
use sage_engine::run_loop::LoopError;
use sage_engine::sim::{Fault, SimFs};
use sage_engine::vfs::Vfs;

use crate::crashes::{INNER, OUTER, results};
use crate::world::World;

const SUCCEEDED: Status = Status::Finished(Verdict::Succeeded);

fn world() -> (SimFs, World) {
    let disk = SimFs::new(1);
    let world = World::new(Arc::new(disk.clone()));
    (disk, world)
}

fn paused(world: &World) -> Vec<(PauseReason, Option<String>)> {
    let events = world.events();
    let of = |event: Event| match event {
        Event::RunPaused(paused) => Some((paused.reason, paused.needs)),
        _ => None,
    };
    events.into_iter().filter_map(|(_, event)| of(event)).collect()
}

fn failures(world: &World) -> usize {
    let failed = |event: &Event| match event {
        Event::StepFinished(finished) => matches!(finished.end, End::Failed { .. }),
        Event::StepRetried(_) => true,
        _ => false,
    };
    world.events().iter().filter(|(_, event)| failed(event)).count()
}

fn of_starts(world: &World, path: &str) -> usize {
    let starts = |event: &Event| matches!(event, Event::StepStarted(started) if &*started.step == path);
    world.events().iter().filter(|(_, event)| starts(event)).count()
}

const LACKS: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, retry: 1, params: { run: 'lacks<3' } }
      - { id: b, type: shell, retry: 1, params: { run: 'ms=5' } }
  - id: q
    dependencies: [p]
    operations: { id: c, type: shell, params: { run: '' } }
";

// covers: R15
#[test]
fn a_step_that_the_machine_has_nothing_left_for_waits_and_keeps_its_tries() {
    let (_, world) = world();
    let run = world.run(LACKS);
    assert_eq!(run.status, SUCCEEDED, "{:?}", sage_core::wire::errors(&run));
    assert_eq!(failures(&world), 0, "nothing failed");
    let told = paused(&world);
    assert!(!told.is_empty() && told.iter().all(|(reason, _)| *reason == PauseReason::System), "{told:?}");
    assert!(told[0].1.as_ref().unwrap().contains("temporarily unavailable"), "the cause is told: {told:?}");
    assert_eq!((run.tally.errors, run.tally.retries), (0, 0));
    let parked = |event: &Event| matches!(event, Event::StepParked(p) if p.class == FailureClass::System);
    assert_eq!(world.events().iter().filter(|(_, event)| parked(event)).count(), 2);
}

// covers: R15
#[test]
fn without_waiting_the_run_pauses_with_the_cause_and_a_resume_goes_on() {
    let (_, world) = world();
    let run = world.live(async || {
        let request = StartRequest { no_wait: true, ..world.request(LACKS) };
        world.engine().start(request).unwrap().drive().await.unwrap()
    });
    let Status::Paused { reason: PauseReason::System, until: Some(_) } = run.status else {
        panic!("{:?}", run.status)
    };
    assert!(run.needs.unwrap().contains("temporarily unavailable"));
    assert_eq!(world.go_on().status, SUCCEEDED);
    assert_eq!(failures(&world), 0);
}

/// Items that never began must not be taken for items that failed and are tolerated.
// covers: R15
#[test]
fn tolerated_items_are_run_however_little_the_machine_has() {
    let (_, mut world) = world();
    world.parallel = 8;
    let text = "
name: t
phases:
  - id: p
    operations: { id: each, type: shell, foreach: '[range(40)]', tolerate: 39, retry: 1, params: { run: 'lacks<2 ms=3' } }
";
    let run = world.run(text);
    assert_eq!(run.status, SUCCEEDED);
    let ended = world.steps.ended.lock().unwrap().values().sum::<u32>();
    assert_eq!(ended, 80, "each was refused once and run once");
}

// covers: R15, R5
#[test]
fn a_disk_that_is_full_for_a_moment_at_every_operation_fails_no_step() {
    let reference = SimFs::new(1);
    let mut world = World::new(Arc::new(reference.clone())).with("inner", INNER);
    world.parallel = 2;
    let run = world.run(OUTER);
    let (expected, ops) = (results(&world, &run), reference.ops());
    let (mut waited, mut refused) = (0, 0);
    for at in 0..ops {
        let disk = SimFs::new(at);
        disk.fail_at(at, Fault::Enospc);
        let mut world = World::new(Arc::new(disk.clone())).with("inner", INNER);
        world.parallel = 2;
        // What cannot be opened is refused, and nothing has begun; opened, the run waits for room by itself.
        let opened = world.live(async || match world.start(OUTER) {
            Ok(owned) => Ok(owned.drive().await.unwrap()),
            Err(error) => Err(error.to_string()),
        });
        let Ok(run) = opened else {
            refused += 1;
            continue;
        };
        assert_eq!(run.status, SUCCEEDED, "full at {at}: {:?}", sage_core::wire::errors(&run));
        assert_eq!(results(&world, &run), expected, "full at {at}");
        let retried = |event: &Event| matches!(event, Event::StepRetried(_));
        let retries = world.events().iter().filter(|(_, event)| retried(event)).count();
        assert!(retries <= 1, "full at {at}: only what the template lets fail was tried again");
        waited += u32::from(world.now_ms() > 1_001_000);
    }
    assert!(refused < 40, "{refused} of {ops} starts were refused before anything ran");
    assert!(waited > 40, "in {waited} of {ops} cases the run waited for room");
}

// covers: R15, R5
#[test]
fn a_run_waits_for_room_and_goes_on_with_nothing_lost() {
    let (disk, world) = world();
    let text = "
name: t
phases:
  - id: p
    operations: { id: each, type: shell, foreach: '[range(12)]', params: { run: 'ms=20 big=3000' } }
";
    let run = world.live(async || {
        let owned = world.start(text).unwrap();
        let filling = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            // No room for anything more.
            disk.set_capacity(Some(0));
            tokio::time::sleep(Duration::from_secs(60)).await;
            disk.set_capacity(None);
        };
        tokio::join!(owned.drive(), filling).0.unwrap()
    });
    assert_eq!(run.status, SUCCEEDED, "{:?}", sage_core::wire::errors(&run));
    assert_eq!(failures(&world), 0);
    assert!(world.now_ms() > 1_060_000, "it waited: {}", world.now_ms());
    let finished = |event: &Event| matches!(event, Event::StepFinished(_));
    assert_eq!(world.events().iter().filter(|(_, event)| finished(event)).count(), 12, "each once");
}

// covers: R15
#[test]
fn a_run_that_does_not_wait_says_why_it_could_not_be_saved() {
    let (disk, world) = world();
    let error = world.live(async || {
        let request = StartRequest { no_wait: true, ..world.request(LACKS) };
        let owned = world.engine().start(request).unwrap();
        disk.set_capacity(Some(0));
        owned.drive().await.unwrap_err()
    });
    let LoopError::Paused(cause) = error else { panic!("{error}") };
    assert!(cause.contains("No space left"), "{cause}");
    disk.set_capacity(None);
    assert_eq!(world.go_on().status, SUCCEEDED);
}

/// A checkpoint must not tell what the journal cannot: that record was never written.
// covers: R4, R5
#[test]
fn an_image_never_shows_what_is_not_durable() {
    let reference = SimFs::new(1);
    let world = World::new(Arc::new(reference.clone())).with("inner", INNER);
    world.run(OUTER);
    for fault in [Fault::Eio, Fault::Enospc] {
        for at in 0..reference.ops() {
            let disk = SimFs::new(at);
            disk.fail_at(at, fault);
            let world = World::new(Arc::new(disk.clone())).with("inner", INNER);
            let _ = world.live(async || match world.start(OUTER) {
                Ok(owned) => {
                    let no_wait = tokio::time::timeout(Duration::from_millis(900), owned.drive());
                    no_wait.await.is_ok()
                }
                Err(_) => false,
            });
            disk.clear_faults();
            world.live(async || assert_image(&world, &format!("{fault:?} at {at}")));
        }
    }
}

/// The checkpoint is the fold of the records up to the head that it names.
fn assert_image(world: &World, what: &str) {
    let engine = world.engine();
    let path = engine.project.checkpoint("f");
    let Ok(loaded) = sage_engine::checkpoint::load(engine.vfs.as_ref(), &path) else { return };
    let Some(run) = engine.latest("f") else { return };
    let head: sage_engine::journal::Head = serde_json::from_value(loaded.doc["journal"].clone()).unwrap();
    let mut fold = sage_engine::open::Fold::default();
    let read = sage_engine::journal::check(
        engine.vfs.as_ref(),
        &engine.project.run_dir(&run),
        None,
        |record| -> Result<(), sage_engine::open::OpenError> {
            if record.seq <= head.seq { fold.take(record) } else { Ok(()) }
        },
    );
    read.unwrap();
    let shown = sage_engine::image::image(fold.run().unwrap(), head, &engine.blobs(&run));
    for field in ["status", "progress", "checkpoints", "verdict", "phase"] {
        assert_eq!(loaded.doc.get(field), shown.get(field), "{what}: `{field}` of the checkpoint");
    }
}

// covers: S3, R5
#[test]
fn reports_reach_the_journal_however_far_behind_the_loop_is() {
    let (_, world) = world();
    let text = "
name: t
phases:
  - id: p
    operations: { id: a, type: agent, agent: fake, prompt: 'flood' }
";
    assert_eq!(world.run(text).status, SUCCEEDED);
    let told = |event: &Event| matches!(event, Event::StepSession(session) if session.session == "talk");
    assert_eq!(world.events().iter().filter(|(_, event)| told(event)).count(), 1);
}

fn lossy(maker: &str) -> String {
    format!(
        "
name: t
phases:
  - id: p
    operations:
      - {{ id: big, type: shell, params: {{ run: 'big=90000 {maker}' }} }}
      - {{ id: small, type: shell, params: {{ run: 'ms=1' }} }}
  - id: q
    dependencies: [p]
    operations: {{ id: uses, type: shell, params: {{ run: 'ms=1', env: {{ N: '{{{{ steps[\"p/big\"].result.stdout | length }}}}' }} }} }}
  - id: gate
    dependencies: [q]
    operations: {{ id: ask, type: approval, params: {{ message: go }} }}
  - id: r
    dependencies: [gate]
    operations: {{ id: last, type: shell, params: {{ run: '', env: {{ N: '{{{{ steps[\"p/big\"].result.stdout | length }}}}' }} }} }}
"
    )
}

fn remove_blobs(disk: &SimFs, world: &World, damage: bool) -> usize {
    world.live(async || {
        let engine = world.engine();
        let dir = engine.project.run_dir(&engine.latest("f").unwrap()).join("blobs");
        let names = disk.list(&dir).unwrap_or_default();
        for name in &names {
            match damage {
                true => disk.plant(&dir.join(name), b"something else").unwrap(),
                false => disk.remove_file(&dir.join(name)).unwrap(),
            }
        }
        names.len()
    })
}

fn approve(world: &World) {
    let signal = sage_engine::control::Signal::approve("gate/ask", "tester");
    world.live(async || world.engine().deliver("f", signal).await.unwrap());
}

fn begun(world: &World) -> Vec<u32> {
    ["p/big", "p/small", "q/uses", "r/last"].map(|path| world.begun(path)).to_vec()
}

/// The maker of what is gone runs again; what depends on it only if that is another result.
// covers: R4, R5
#[test]
fn a_lost_result_is_made_again_and_changes_nothing_else_if_it_is_equal() {
    for (maker, damage, expected) in [
        ("", false, [2, 1, 1, 1]),
        ("", true, [2, 1, 1, 1]),
        ("dice", false, [2, 1, 2, 1]),
        ("dice", true, [2, 1, 2, 1]),
    ] {
        let (disk, world) = world();
        let run = world.run(&lossy(maker));
        assert!(matches!(run.status, Status::Paused { reason: PauseReason::Approval, .. }));
        assert!(remove_blobs(&disk, &world, damage) > 0);
        approve(&world);
        let run = world.go_on();
        assert_eq!(run.status, SUCCEEDED, "{maker} {damage}: {:?}", sage_core::wire::errors(&run));
        assert_eq!(begun(&world), expected, "{maker} {damage}");
    }
}

/// Also in the middle of a run, and without a resume.
// covers: R4, R5
#[test]
fn a_result_that_vanishes_while_the_run_goes_on_is_made_again() {
    let (disk, world) = world();
    let text = "
name: t
phases:
  - id: p
    operations: { id: big, type: shell, params: { run: 'big=90000' } }
  - id: wait
    dependencies: [p]
    operations: { id: nap, type: sleep, params: { ms: 100 } }
  - id: r
    dependencies: [wait]
    operations: { id: last, type: shell, needs: [p/big], params: { run: '', env: { N: '{{ steps[\"p/big\"].result.stdout | length }}' } } }
";
    let run = world.live(async || {
        let owned = world.start(text).unwrap();
        let engine = world.engine();
        let blobs = engine.project.run_dir(&owned.run_loop.run().id).join("blobs");
        let thief = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            for name in disk.list(&blobs).unwrap() {
                disk.remove_file(&blobs.join(name)).unwrap();
            }
        };
        tokio::join!(owned.drive(), thief).0.unwrap()
    });
    assert_eq!(run.status, SUCCEEDED, "{:?}", sage_core::wire::errors(&run));
    assert_eq!((world.begun("p/big"), of_starts(&world, "wait/nap"), world.begun("r/last")), (2, 1, 1));
}

// covers: R4, R5
#[test]
fn a_lost_result_of_a_finished_run_is_made_again_by_resume() {
    for damage in [false, true] {
        let (disk, world) = world();
        world.run(&lossy(""));
        approve(&world);
        assert_eq!(world.go_on().status, SUCCEEDED);
        remove_blobs(&disk, &world, damage);
        let (told, run): (Vec<Notice>, Run) =
            world.live(async || match world.engine().resume("f", ResumeRequest::default()).unwrap() {
                Resumed::Owned(owned) => {
                    let notices = owned.notices.clone();
                    (notices, owned.drive().await.unwrap())
                }
                Resumed::Complete { .. } => panic!("the result is still gone"),
            });
        assert!(told.contains(&Notice::ResultsLost(vec!["p/big".into()])), "{told:?}");
        assert_eq!(run.status, SUCCEEDED);
        assert_eq!(begun(&world), [2, 1, 1, 1], "equal again: nothing else runs");
        let again = world.live(async || world.resume().unwrap().is_err());
        assert!(again, "nothing is left to do");
    }
}

/// A person decides about what may not be repeated unasked.
// covers: R5
#[test]
fn a_lost_result_of_a_step_that_asks_waits_for_a_person() {
    let (disk, world) = world();
    let text = lossy("").replace("{ id: big, type: shell,", "{ id: big, type: shell, onUnknown: ask,");
    world.run(&text);
    remove_blobs(&disk, &world, false);
    approve(&world);
    let run = world.go_on();
    assert!(matches!(run.status, Status::Paused { reason: PauseReason::Unknown, .. }), "{:?}", run.status);
    assert_eq!(begun(&world), [1, 1, 1, 0], "nothing ran without a word");
    let signal = sage_engine::control::Signal::approve("p/big", "tester");
    world.live(async || world.engine().deliver("f", signal).await.unwrap());
    assert_eq!(world.go_on().status, SUCCEEDED);
    assert_eq!(begun(&world), [2, 1, 1, 1]);
}

// covers: R5
#[test]
fn items_and_nested_steps_make_lost_results_again() {
    let (disk, world) = world();
    let inner = "
name: inner
phases:
  - id: a
    operations: { id: leaf, type: shell, params: { run: 'big=90000' } }
";
    let world = world.with("inner", inner);
    let text = "
name: t
phases:
  - id: fan
    operations: { id: each, type: workflow, foreach: '[1, 2]', params: { template: inner } }
  - id: gate
    dependencies: [fan]
    operations: { id: ask, type: approval, params: { message: go } }
  - id: last
    dependencies: [gate]
    operations: { id: done, type: shell, params: { run: '', env: { N: '{{ steps[\"fan/each\"].result[1].a.leaf.stdout | length }}' } } }
";
    world.run(text);
    remove_blobs(&disk, &world, false);
    approve(&world);
    let run = world.go_on();
    assert_eq!(run.status, SUCCEEDED, "{:?}", sage_core::wire::errors(&run));
    let leaves = ["fan/each[0]/a/leaf", "fan/each[1]/a/leaf"].map(|path| world.begun(path));
    assert_eq!((leaves, world.begun("last/done")), ([2, 2], 1));
}

/// A turn of an agent costs money: it is not thrown away because its result finds no room.
// covers: R15, R18
#[test]
fn work_that_is_done_is_kept_until_there_is_room_for_its_result() {
    let text = "
name: t
budget: 1000k
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: fake, prompt: 'ms=20 big=90000 usage=7' }
      - { id: b, type: agent, agent: fake, prompt: 'ms=20 usage=5' }
";
    for no_wait in [false, true] {
        let (disk, world) = world();
        let (run, room_at) = world.live(async || {
            let request = StartRequest { no_wait, ..world.request(text) };
            let owned = world.engine().start(request).unwrap();
            let filling = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                // Enough for records, too little for the blob.
                disk.set_capacity(Some(60_000));
                tokio::time::sleep(Duration::from_secs(if no_wait { 20 } else { 120 })).await;
                disk.set_capacity(None);
            };
            let (run, ()) = tokio::join!(owned.drive(), filling);
            (run.unwrap(), world.now_ms())
        });
        assert_eq!(failures(&world), 0);
        if no_wait {
            assert!(
                matches!(run.status, Status::Paused { reason: PauseReason::Storage, .. }),
                "{:?}",
                run.status
            );
            assert_eq!(run.ledger.node("run").unwrap().settled.tokens, 12, "what was used is charged");
            assert_eq!(world.go_on().status, SUCCEEDED);
            continue;
        }
        assert_eq!(run.status, SUCCEEDED, "{:?}", sage_core::wire::errors(&run));
        assert!(room_at > 1_100_000, "{room_at}");
        assert_eq!((world.begun("p/a"), world.begun("p/b")), (1, 1), "each turn is paid for once");
        assert_eq!(run.ledger.node("run").unwrap().settled.tokens, 12);
    }
}
