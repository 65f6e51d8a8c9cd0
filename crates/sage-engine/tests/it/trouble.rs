//! Power cuts at every operation of a run with refusals, hedges, a fallback and budgets: the same results,
//! nothing acknowledged lost, and books that balance after each.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::budget::Cap;
use sage_core::event::PauseReason;
use sage_core::run::{Output, Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::control::Signal;
use sage_engine::open::OpenError;
use sage_engine::results::{Face, value_of};
use sage_engine::sim::{Fault, SimFs};
use serde_json::Value;

use crate::world::World;

const TEXT: &str = "
name: trouble
budget: 100000k
retryBudget: 1
phases:
  - id: p
    budget: 50000k
    operations:
      - { id: refused, type: agent, agent: fake, retry: 1, prompt: 'ms=3 refuse<2 retry=20 usage=5' }
      - { id: hedged, type: agent, agent: slow, hedge: 10, prompt: 'ms1=100 ms=5 usage=7' }
      - { id: fallen, type: agent, agent: bad, retry: 1, fallback: [good, { value: 1 }], prompt: 'ms=2 down=bad usage=3,4' }
  - id: q
    dependencies: [p]
    operations: { id: each, type: agent, agent: fake, foreach: '[1, 2]', budget: 10000k, prompt: 'ms=4 usage=1,1' }
";

fn go(world: &World) -> Result<Run, String> {
    world.live(async || {
        let owned = match world.resume() {
            Err(OpenError::Unknown(_)) => world.start(TEXT),
            Ok(Err(run)) => return Ok(*run),
            Ok(Ok(owned)) => Ok(owned),
            Err(error) => Err(error),
        };
        owned.map_err(|e| e.to_string())?.drive().await.map_err(|e| e.to_string())
    })
}

fn results(world: &World, run: &Run) -> BTreeMap<String, Value> {
    let blobs = world.live(async || world.engine().blobs(&run.id));
    let value = |o: &Output| value_of(o, Face::Filtered, &blobs).unwrap();
    run.steps.iter().filter_map(|s| Some((s.path.to_string(), value(s.output.as_deref()?)))).collect()
}

fn balanced(run: &Run, what: &str) {
    let beside: u64 = run.steps.iter().flat_map(|s| &s.beside).map(|b| b.reserved.tokens).sum();
    let root = run.ledger.node("run").unwrap();
    assert_eq!(root.reserved.tokens, beside, "{what}");
    let phases: Vec<_> = run.ledger.nodes().filter(|(name, _)| name.starts_with("phase:")).collect();
    let sum = |of: fn(&sage_core::budget::Node) -> u64| phases.iter().map(|(_, node)| of(node)).sum::<u64>();
    assert_eq!(sum(|node| node.settled.tokens), root.settled.tokens, "{what}");
    assert_eq!(sum(|node| node.reserved.tokens), root.reserved.tokens, "{what}");
    assert!(root.settled.tokens >= run.tally.usage.total(), "{what}: what is known is paid");
}

/// What was lost counts as spent: a person lets it go on.
fn raise(world: &World, run: &Run, round: u64) {
    let capped = run.ledger.nodes().filter(|(_, node)| node.cap.is_some());
    for node in capped.map(|(name, _)| name.to_string()).collect::<Vec<_>>() {
        let cap = Cap { tokens: Some((round + 2) * 1_000_000_000), micro_usd: None };
        let signal = Signal::Raise { node, cap };
        world.live(async || world.engine().deliver("f", signal).await.unwrap());
    }
}

/// What the journal says after a cut is what its fold says.
fn look(world: &World, what: &str) {
    let read = world.live(async || world.engine().read("f"));
    if let Ok(snapshot) = read {
        balanced(&snapshot.run, what);
    }
}

fn live(world: &World, disk: &SimFs, what: &str, reference: &BTreeMap<String, Value>) {
    for round in 0.. {
        let outcome = go(world);
        assert!(round < 20, "{what}: does not come to an end: {:?}", outcome.map(|run| run.status));
        disk.restart();
        disk.clear_faults();
        look(world, what);
        assert!(world.limits.board().is_empty(), "{what}: {:?}", world.limits.board());
        let Ok(run) = outcome else { continue };
        if run.status == Status::Finished(Verdict::Succeeded) {
            assert_eq!(&results(world, &run), reference, "{what}");
            assert!(run.steps.iter().all(|step| step.beside.is_empty()), "{what}");
            return;
        }
        if matches!(run.status, Status::Paused { reason: PauseReason::Budget, .. }) {
            raise(world, &run, round);
        }
    }
}

// covers: R5, R7, R18
#[test]
fn a_power_cut_at_every_operation_of_a_troubled_run_changes_no_result() {
    let disk = SimFs::new(1);
    let world = World::new(Arc::new(disk.clone()));
    let run = go(&world).unwrap();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
    assert_eq!((run.tally.refused, run.tally.hedges, run.tally.fallbacks), (1, 1, 1));
    balanced(&run, "undisturbed");
    let (expected, ops) = (results(&world, &run), disk.ops());
    for at in 0..ops {
        let disk = SimFs::new(at);
        disk.fail_at(at, Fault::Crash);
        let world = World::new(Arc::new(disk.clone()));
        live(&world, &disk, &format!("cut at {at}"), &expected);
    }
    println!("{ops} power cuts, the same results after each");
}
