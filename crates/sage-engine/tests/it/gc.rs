//! Clean-up on a disk that loses power at every operation of it: every run that is left can be read, and no
//! feature is half there.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sage_core::run::Run;
use sage_engine::gc::{Category, Fate, Gc, Policy, Report};
use sage_engine::open::{Engine, OpenError, StartRequest};
use sage_engine::sim::{Fault, SimFs};

use crate::world::{World, simulate};

const FINE: &str = "
name: fine
phases: [{ id: p, operations: { id: a, type: shell, params: { run: 'ms=1' } } }]
";
const FAILS: &str = "
name: fails
phases: [{ id: p, operations: { id: a, type: shell, retry: { attempts: 1 }, params: { run: 'fail' } } }]
";
const ASKS: &str = "
name: asks
phases: [{ id: p, operations: { id: a, type: approval, params: { message: 'well?' } } }]
";

const ALL: Policy =
    Policy { older_than_ms: 0, keep: 0, max_bytes: None, force: false, dry_run: false, thorough: true };

fn run(world: &World, feature: &str, text: &str) -> Run {
    let request = StartRequest { feature: feature.into(), no_wait: true, ..world.request(text) };
    // Ids sort by time, but not within one millisecond.
    let before = ulid::Ulid::generate().timestamp_ms();
    while ulid::Ulid::generate().timestamp_ms() == before {}
    simulate(async { world.engine().start(request).unwrap().drive().await.unwrap() })
}

/// Two runs of `a`, a failed one of `b`, one of `c` that waits for a person, and what goes before it.
fn filled(disk: &SimFs) -> World {
    let world = World::new(Arc::new(disk.clone()));
    run(&world, "a", FAILS);
    run(&world, "b", FAILS);
    run(&world, "c", FINE);
    run(&world, "a", FINE);
    run(&world, "c", ASKS);
    world
}

fn fewer(disk: &SimFs) -> World {
    let world = World::new(Arc::new(disk.clone()));
    run(&world, "a", FINE);
    run(&world, "a", FAILS);
    run(&world, "c", ASKS);
    world
}

fn sweep(engine: &Engine, policy: Policy) -> Report {
    let mut gc = Gc::begin(engine, policy).unwrap();
    gc.sweep();
    gc.report
}

/// Everything that a person can name.
fn features(engine: &Engine) -> BTreeSet<String> {
    let state = engine.vfs.list(&engine.project.state()).unwrap();
    let checkpoints = state.iter().filter_map(|name| {
        let name = name.strip_prefix("workflow-")?;
        name.strip_suffix(".json").or_else(|| name.strip_suffix(".json.bak")).map(str::to_string)
    });
    let runs = engine.vfs.list(&engine.project.runs()).unwrap();
    checkpoints.chain(runs.iter().filter_map(|run| engine.feature_of(run))).collect()
}

fn runs(engine: &Engine) -> usize {
    engine.vfs.list(&engine.project.runs()).unwrap().len()
}

fn names(report: &Report) -> Vec<&str> {
    report.removed.iter().filter_map(|item| item.feature.as_deref()).collect()
}

// covers: R4
#[test]
fn what_is_over_goes_and_what_can_go_on_stays() {
    let disk = SimFs::new(1);
    let world = filled(&disk);
    let engine = world.engine();
    let dry = sweep(&engine, Policy { dry_run: true, ..ALL });
    assert_eq!(runs(&engine), 5, "a dry run removes nothing");
    let report = sweep(&engine, ALL);
    assert_eq!(names(&report), ["a", "b", "c", "a"]);
    assert_eq!(names(&dry), names(&report), "and says what would go");
    assert!(report.removed.iter().all(|item| item.category == Category::Runs && item.bytes > 0));
    assert_eq!(features(&engine).into_iter().collect::<Vec<_>>(), ["c"]);
    assert_eq!(engine.read("c").unwrap().run.status.name(), "paused");
    assert!(matches!(engine.read("a"), Err(OpenError::Unknown(_))));
    assert!(report.kept.iter().any(|stays| stays.why == "it is paused"), "{:?}", report.kept);
    assert_eq!(sweep(&engine, ALL).removed, [], "twice is once");
}

// covers: R4
#[test]
fn age_and_number_decide_and_the_size_takes_the_oldest_first() {
    let disk = SimFs::new(2);
    let world = filled(&disk);
    let engine = world.engine();
    let young = Policy { older_than_ms: 3_600_000, ..ALL };
    assert_eq!(names(&sweep(&engine, young)), Vec::<&str>::new());
    assert_eq!(names(&sweep(&engine, Policy { keep: 4, ..ALL })), ["a"], "all but the newest four");
    // What could be resumed and is young stays, however little room there is.
    let small = sweep(&engine, Policy { max_bytes: Some(1), ..young });
    assert_eq!(names(&small), ["c", "a"]);
    let why = |part: &str| small.kept.iter().any(|stays| stays.why.contains(part));
    assert!(why("failed and can be resumed") && why("it is paused"), "{:?}", small.kept);
    assert_eq!(engine.read("b").unwrap().run.status.name(), "failed");
}

// covers: R4
#[test]
fn a_run_in_somebodys_hands_stays() {
    let disk = SimFs::new(3);
    let world = World::new(Arc::new(disk.clone()));
    let done = run(&world, "a", FINE);
    let engine = world.engine();
    let path = engine.project.lock("a");
    let held = sage_engine::lock::FeatureLock::acquire(&path, Default::default()).unwrap();
    let report = sweep(&engine, ALL);
    assert_eq!((report.removed.len(), report.kept[0].why.as_str()), (0, "somebody has its feature"));
    drop(held);
    let gc = Gc::begin(&engine, ALL).unwrap();
    assert_eq!(gc.fate(&done.id), Fate::Closed { ended_ms: done.updated_ms });
    assert!(Gc::begin(&engine, ALL).is_err(), "one clean-up at a time");
    drop(gc);
    assert_eq!(sweep(&engine, ALL).removed.len(), 1);
}

/// What cannot be read is the newest run's, and that run may be under way.
// covers: R4, R5
#[test]
fn an_older_run_does_not_take_the_newest_ones_checkpoint_with_it() {
    let disk = SimFs::new(4);
    let world = World::new(Arc::new(disk.clone()));
    run(&world, "a", FINE);
    run(&world, "a", ASKS);
    let engine = world.engine();
    let checkpoint = engine.project.checkpoint("a");
    for name in ["workflow-a.json", "workflow-a.json.bak"] {
        disk.plant(&engine.project.state().join(name), b"{").unwrap();
    }
    assert_eq!(names(&sweep(&engine, ALL)), ["a"]);
    assert!(engine.vfs.exists(&checkpoint).unwrap());
}

// covers: R4, R5
#[test]
fn a_power_cut_anywhere_leaves_whole_features_and_the_next_clean_up_finishes() {
    let probe = SimFs::new(7);
    let world = fewer(&probe);
    let from = probe.ops();
    sweep(&world.engine(), ALL);
    let to = probe.ops();
    assert!(to - from > 10, "{}", to - from);
    // The moments of two equal worlds differ a little: a few more than needed.
    for op in from..to + 5 {
        let disk = SimFs::new(op);
        let world = fewer(&disk);
        let engine = world.engine();
        disk.fail_at(disk.ops() + (op - from), Fault::Crash);
        sweep(&engine, ALL);
        disk.crash(op);
        disk.restart();
        disk.clear_faults();
        let left = features(&engine);
        assert!(left.contains("c"), "after {}: {left:?}", op - from);
        for feature in &left {
            let read = engine.read(feature);
            assert!(read.is_ok(), "`{feature}` after {}: {:?}", op - from, read.err());
        }
        assert_eq!(engine.read("c").unwrap().run.status.name(), "paused");
        sweep(&engine, ALL);
        assert_eq!(features(&engine).into_iter().collect::<Vec<_>>(), ["c"]);
        assert_eq!(trash(&engine), Vec::<String>::new());
    }
}

fn trash(engine: &Engine) -> Vec<String> {
    let dir: &Path = &engine.project.state().join("trash");
    engine.vfs.list(dir).unwrap_or_default()
}
