//! Power cuts and disk faults at every operation of a whole run: intent before effect, nothing finished runs
//! again, nothing acknowledged is lost, and the results are those of an undisturbed run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sage_core::event::Event;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::journal;
use sage_engine::open::OpenError;
use sage_engine::results::{Face, value_of};
use sage_engine::sim::{Fault, SimFs};
use serde_json::Value;

use crate::world::{World, simulate};

pub const INNER: &str = "
name: inner
phases:
  - id: deep
    operations: { id: leaf, type: shell, foreach: '[range(.inputs.n)]', params: { run: 'ms=3', env: { I: '{{ item }}' } } }
  - id: end
    dependencies: [deep]
    operations: { id: sum, type: shell, params: { run: 'ms=1' } }
";

pub const OUTER: &str = "
name: outer
phases:
  - id: first
    operations:
      - { id: a, type: shell, params: { run: 'ms=4' } }
      - { id: nap, type: sleep, params: { ms: 7 } }
      - { id: flaky, type: shell, retry: { attempts: 3, delay: 2, jitter: false }, params: { run: 'fail<2' } }
  - id: fan
    dependencies: [first]
    operations: { id: each, type: workflow, foreach: '[1, 2, 2]', params: { template: inner, inputs: { n: '{{ item }}' } } }
  - id: last
    dependencies: [fan]
    operations: { id: done, type: shell, params: { run: 'ms=1', env: { ALL: '{{ steps[\"fan/each\"].result | length }}' } } }
";

fn world(disk: &SimFs, limit: u32) -> World {
    let mut world = World::new(Arc::new(disk.clone())).with("inner", INNER);
    world.parallel = limit;
    world
}

/// Starts or resumes once. `Err` says what stopped it.
fn go(world: &World) -> Result<Run, String> {
    simulate(async {
        let owned = match world.resume() {
            Err(OpenError::Unknown(_)) => world.start(OUTER),
            Ok(Err(run)) => return Ok(*run),
            Ok(Ok(owned)) => Ok(owned),
            Err(error) => Err(error),
        };
        let owned = owned.map_err(|error| error.to_string())?;
        owned.drive().await.map_err(|error| error.to_string())
    })
}

pub fn results(world: &World, run: &Run) -> BTreeMap<String, Value> {
    let blobs = world.engine().blobs(&run.id);
    let value = |o: &sage_core::run::Output| value_of(o, Face::Filtered, &blobs).unwrap();
    run.steps.iter().filter_map(|s| Some((s.path.to_string(), value(s.output.as_deref()?)))).collect()
}

/// What the journal says now: intents and finished steps.
#[derive(Default)]
struct Told {
    started: BTreeSet<(String, u32)>,
    finished: BTreeSet<String>,
}

fn told(world: &World) -> Told {
    let engine = world.engine();
    let mut told = Told::default();
    let Some(run) = engine.latest("f") else { return told };
    let read = journal::check(
        engine.vfs.as_ref(),
        &engine.project.run_dir(&run),
        None,
        |record| -> Result<(), OpenError> {
            match Event::parse(record.kind, record.data)? {
                Event::StepStarted(e) => drop(told.started.insert((e.step.to_string(), e.attempt))),
                Event::StepFinished(e) if matches!(e.end, sage_core::event::End::Succeeded { .. }) => {
                    told.finished.insert(e.step.to_string());
                }
                _ => {}
            }
            Ok(())
        },
    );
    read.unwrap();
    told
}

/// One disturbed life: run until it is done, checking the promises after every disturbance.
fn live(world: &World, disk: &SimFs, what: &str, reference: &BTreeMap<String, Value>) {
    let mut kept: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0.. {
        let outcome = go(world);
        assert!(
            round < 20,
            "{what}: does not come to an end: {:?}",
            outcome.map(|run| (run.status, sage_core::wire::errors(&run), crate::world::states(&run)))
        );
        disk.restart();
        disk.clear_faults();
        let begun = world.steps.begun.lock().unwrap().clone();
        for (path, times) in &kept {
            assert_eq!(begun.get(path), Some(times), "{what}: finished step `{path}` ran again");
        }
        let told = told(world);
        for (path, times) in &begun {
            let intents = told.started.iter().filter(|(p, _)| p == path).count() as u32;
            assert!(intents >= *times, "{what}: `{path}` ran {times} times with {intents} durable intents");
        }
        kept =
            told.finished.iter().map(|path| (path.clone(), begun.get(path).copied().unwrap_or(0))).collect();
        kept.retain(|path, _| begun.contains_key(path));
        if let Ok(run) = outcome {
            if run.status == Status::Finished(Verdict::Succeeded) {
                assert_eq!(&results(world, &run), reference, "{what}");
                return;
            }
            // A step's own I/O may have failed cleanly; resuming tries it again.
            assert!(!matches!(run.status, Status::Finished(Verdict::Succeeded)));
        }
    }
}

fn reference() -> (BTreeMap<String, Value>, u64) {
    let disk = SimFs::new(1);
    let world = world(&disk, 2);
    let run = go(&world).unwrap();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    (results(&world, &run), disk.ops())
}

// covers: R5
#[test]
fn a_power_cut_at_every_operation_loses_and_repeats_nothing() {
    let (expected, ops) = reference();
    assert!(ops > 80, "the reference run is large enough to mean something: {ops}");
    let mut cuts = 0;
    for (seed, limit) in [(1, 1), (2, 2), (3, 100)] {
        for at in 0..ops {
            let disk = SimFs::new(seed * 10_000 + at);
            disk.fail_at(at, Fault::Crash);
            live(&world(&disk, limit), &disk, &format!("cut at {at}, limit {limit}"), &expected);
            cuts += 1;
        }
    }
    println!("{cuts} power cuts at {ops} operations, 0 lost, 0 repeated");
}

// covers: R5, R15
#[test]
fn a_failing_disk_at_every_operation_is_recovered_or_stops_cleanly() {
    let (expected, ops) = reference();
    for fault in [Fault::Eio, Fault::Enospc, Fault::ShortWrite(1), Fault::ShortWrite(100)] {
        for at in 0..ops {
            let disk = SimFs::new(at);
            disk.fail_at(at, fault);
            live(&world(&disk, 2), &disk, &format!("{fault:?} at {at}"), &expected);
        }
    }
}
