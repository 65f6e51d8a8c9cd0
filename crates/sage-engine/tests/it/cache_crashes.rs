//! Power cuts at every operation of runs that take from the cache and keep in it: the same results, and nothing
//! that was acknowledged is lost. What becomes of the cache itself does not matter, as long as it tells no lies.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::open::OpenError;
use sage_engine::results::{Face, value_of};
use sage_engine::sim::{Fault, SimFs};
use serde_json::Value;

use crate::world::{World, simulate};

const TEXT: &str = "
name: t
phases:
  - id: a
    operations:
      - { id: one, type: agent, agent: fake, cache: true, prompt: 'ms=3 usage=5' }
      - { id: two, type: shell, cache: true, filter: .stdout, params: { run: 'ms=2' } }
  - id: b
    dependencies: [a]
    operations: { id: each, type: shell, cache: true, foreach: '[1, 2, 2]', params: { run: 'ms=1', env: { I: '{{ item }}' } } }
  - id: c
    dependencies: [b]
    operations: { id: end, type: shell, params: { run: 'ms=1', env: { ALL: '{{ steps[\"b/each\"].result | length }}' } } }
";

fn world(disk: &SimFs) -> World {
    let mut world = World::new(Arc::new(disk.clone()));
    world.cache = true;
    world
}

/// Goes on with a run that was cut off, else starts one.
fn go(world: &World) -> Result<Run, String> {
    simulate(async {
        let owned = match world.resume() {
            Err(OpenError::Unknown(_)) | Ok(Err(_)) => world.start(TEXT),
            Ok(Ok(owned)) => Ok(owned),
            Err(error) => Err(error),
        };
        owned.map_err(|error| error.to_string())?.drive().await.map_err(|error| error.to_string())
    })
}

fn results(world: &World, run: &Run) -> BTreeMap<String, Value> {
    let blobs = world.engine().blobs(&run.id);
    let value = |o: &sage_core::run::Output| value_of(o, Face::Full, &blobs).unwrap();
    run.steps.iter().filter_map(|s| Some((s.path.to_string(), value(s.output.as_deref()?)))).collect()
}

fn to_the_end(world: &World, disk: &SimFs, what: &str) -> Run {
    for _ in 0..20 {
        let outcome = go(world);
        disk.restart();
        disk.clear_faults();
        if let Ok(run) = outcome
            && run.status == Status::Finished(Verdict::Succeeded)
        {
            return run;
        }
    }
    panic!("{what}: does not come to an end");
}

// covers: R5, R11
#[test]
fn a_power_cut_at_every_operation_changes_no_result() {
    let disk = SimFs::new(1);
    let reference = world(&disk);
    let first = go(&reference).unwrap();
    let expected = results(&reference, &first);
    let between = disk.ops();
    let second = go(&reference).unwrap();
    let end = disk.ops();
    assert_eq!((second.tally.cache_hits, results(&reference, &second)), (5, expected.clone()));
    let mut lives = 0;
    let cuts = (0..end).map(|at| (Fault::Crash, at));
    let failures = (0..end).step_by(5).map(|at| (Fault::Eio, at));
    for (fault, at) in cuts.chain(failures) {
        let disk = SimFs::new(at + 7);
        let world = world(&disk);
        let what = format!("{fault:?} at {at}");
        if at < between {
            disk.fail_at(at, fault);
        }
        let run = to_the_end(&world, &disk, &what);
        assert_eq!(results(&world, &run), expected, "{what}, first run");
        if at >= between {
            disk.fail_at(disk.ops() + (at - between), fault);
        }
        let run = to_the_end(&world, &disk, &what);
        assert_eq!(results(&world, &run), expected, "{what}, second run");
        lives += 1;
    }
    println!("{lives} faults, the same results");
}
