//! How often the disk is asked, on a real one: counted, not timed.

use std::sync::Arc;

use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::DiskFs;

use crate::world::World;

/// Fdatasyncs of the journal alone: files that are made once (checkpoints, locks) use fsync.
fn run(steps: usize, chain: bool) -> (Run, u64) {
    let ops: String = (0..steps)
        .map(|n| {
            let needs = if chain && n > 0 { format!(", needs: [s{}]", n - 1) } else { String::new() };
            format!("      - {{ id: s{n}, type: sleep, params: {{ ms: 0 }}{needs} }}\n")
        })
        .collect();
    let text = format!("name: n\nphases:\n  - id: p\n    operations:\n{ops}");
    let disk = DiskFs::new();
    let mut world = World::new(disk.clone() as Arc<_>);
    (world.commit, world.parallel) = (CommitMode::Thread, steps as u32);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let run = runtime.block_on(async { world.start(&text).unwrap().drive().await.unwrap() });
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    (run, disk.syncs().data)
}

// covers: R20
#[test]
fn a_chain_costs_one_fdatasync_a_step() {
    const STEPS: usize = 60;
    let (run, syncs) = run(STEPS, true);
    assert_eq!(run.tally.settled as usize, STEPS);
    // One for the start, one for the first intent; from then on the result of n and the intent of n + 1 share one.
    assert!(syncs <= STEPS as u64 + 2, "{syncs} fdatasyncs for {STEPS} steps");
    println!("chain: {syncs} fdatasyncs for {STEPS} steps");
}

// covers: R20
#[test]
fn a_fan_out_of_a_thousand_shares_its_fdatasyncs() {
    let (run, syncs) = run(1_000, false);
    assert_eq!(run.tally.settled, 1_000);
    assert!(syncs <= 100, "{syncs} fdatasyncs for 1,000 steps");
    println!("fan-out: {syncs} fdatasyncs for 1,000 steps");
}
