//! Many runs, one set of limits: nobody waits for somebody who waits, nothing is lost with those who die, the
//! urgent go first and the patient are not forgotten.

use std::sync::Arc;
use std::time::Duration;

use sage_core::event::Settings;
use sage_core::run::{Run, Status};
use sage_core::target::{QuotaPolicy, TargetPolicy};
use sage_core::verdict::Verdict;
use sage_engine::limits::{Answer, Limits, LimitsConfig, PoolWant, Want};
use sage_engine::open::Owned;
use sage_engine::sim::SimFs;

use crate::world::{Random, World};

fn world(parallel: u32) -> World {
    let mut world = World::new(Arc::new(SimFs::new(1)));
    world.parallel = parallel;
    world
}

fn start(world: &World, feature: &str, priority: u8, text: &str) -> Owned {
    let mut request = world.request(text);
    request.feature = feature.into();
    request.settings.priority = Some(priority);
    world.engine().start(request).unwrap()
}

fn fan(count: u32, script: &str) -> String {
    format!(
        "name: s\nphases:\n  - id: p\n    operations: {{ id: x, type: shell, foreach: '[range({count})]', params: {{ run: '{script}' }} }}\n"
    )
}

fn narrow() -> Limits {
    let quota = QuotaPolicy { concurrent: Some(1), ..QuotaPolicy::default() };
    let policy = TargetPolicy { quota, ..TargetPolicy::default() };
    let targets = [("host:x".to_string(), policy.clone()), ("agent:fake".to_string(), policy)];
    Limits::alone(LimitsConfig { targets: targets.into(), ..LimitsConfig::default() })
}

// covers: R13
#[test]
fn five_deep_with_pools_and_targets_of_one_comes_to_an_end() {
    for parallel in [1, 3] {
        let mut world = world(parallel);
        world.limits = narrow();
        for depth in 1..5 {
            let inner = depth + 1;
            let text = format!(
                "
name: w{depth}
phases:
  - id: p
    operations:
      - {{ id: sub, type: workflow, foreach: '[1, 2]', maxParallel: 1, params: {{ template: w{inner} }} }}
      - {{ id: near, type: agent, agent: fake, pool: gpu, prompt: 'ms=5' }}
"
            );
            world = world.with(&format!("w{depth}"), &text);
        }
        world = world.with(
            "w5",
            "
name: w5
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: fake, foreach: '[1, 2]', maxParallel: 1, pool: { gpu: 1, disk: 1 }, prompt: 'ms=3' }
      - { id: b, type: shell, target: 'host:x', pool: { disk: 1, gpu: 1 }, params: { run: 'ms=3' } }
",
        );
        let mut request =
            world.request("name: top\nphases:\n  - id: p\n    operations: { id: w, type: workflow, params: { template: w1 } }\n");
        request.settings.pools = [("gpu".into(), 1), ("disk".into(), 1)].into();
        let run = world.live(async || {
            let owned = world.engine().start(request).unwrap();
            world.kill_after(owned, 3_600_000).await
        });
        let run = run.expect("no step waits for ever");
        assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", sage_core::wire::errors(&run));
        let calls = world.steps.calls().len();
        println!("five deep, {parallel} at once: {calls} calls in {} ms", run.elapsed_ms());
        assert_eq!(calls, 16 * 3 + 15);
        assert!(world.limits.board().is_empty());
    }
}

fn nuisance(random: &mut Random) -> String {
    let scripts = ["ms=20", "ms=5 fail", "hang", "ms=30 grace=20", "ms=3 fail<2"];
    let agents =
        ["ms=20 usage=3", "ms=5 fail class=transient", "hang", "ms=9 refuse<2 retry=20", "ms=30 grace=20"];
    let mut text = String::from("name: n\nphases:\n  - id: p\n");
    let join = ["all", "any", "{ atLeast: 1, cancel: true }"][random.below(3) as usize];
    text += &format!("    join: {join}\n    timeout: {}\n    onFailure: ", 20 + random.below(100));
    text += if random.chance(50) { "failFast\n" } else { "continue\n" };
    text += "    operations:\n";
    for n in 0..1 + random.below(3) {
        let pick = random.below(5) as usize;
        let more = ["", "pool: gpu, ", "pool: { gpu: 2, disk: 1 }, "][random.below(3) as usize];
        let more = if random.chance(30) { format!("{more}hedge: 10, ") } else { more.to_string() };
        let more = format!("{more}timeout: {}, ", 10 + random.below(60));
        text += &match random.chance(50) {
            true => format!(
                "      - {{ id: o{n}, type: agent, agent: fake, {more}retry: {{ attempts: 2, delay: 5 }}, prompt: '{}' }}\n",
                agents[pick]
            ),
            false => format!(
                "      - {{ id: o{n}, type: shell, {more}target: 'host:x', foreach: '[1, 2]', params: {{ run: '{}' }} }}\n",
                scripts[pick]
            ),
        };
    }
    text
}

/// A run in its own world, killed, interrupted or left alone.
async fn disturb(world: &World, text: &str, random: &mut Random, parallel: u32) -> Option<Run> {
    let mut request = world.request(text);
    let pools = [("gpu".to_string(), 2), ("disk".to_string(), 1)].into();
    request.settings = Settings { parallel, pools, ..Settings::default() };
    request.no_wait = random.chance(70);
    let owned = world.engine().start(request).unwrap();
    let ms = random.below(60);
    match random.below(3) {
        0 => world.kill_after(owned, ms).await,
        1 => {
            let interrupter = owned.run_loop.interrupter();
            let interrupt = async {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                interrupter.interrupt();
            };
            let (run, ()) = tokio::join!(owned.drive(), interrupt);
            run.ok()
        }
        _ => world.kill_after(owned, 200).await,
    }
}

// covers: R13, P6
#[test]
fn whatever_happens_to_runs_no_permit_is_lost() {
    let begun = std::time::Instant::now();
    let long = std::env::var_os("SAGE_LONG").is_some();
    let (mut lives, mut random) = (0, Random(7));
    let mut policy = TargetPolicy::default();
    policy.breaker.open_ms = 30;
    let targets = ["host:x", "agent:fake", "provider:fake"].map(|name| {
        let quota = QuotaPolicy { concurrent: Some(3), ..QuotaPolicy::default() };
        (name.to_string(), TargetPolicy { quota, ..policy.clone() })
    });
    let limits = Limits::alone(LimitsConfig { targets: targets.into(), ..LimitsConfig::default() });
    while lives < if long { 10_000 } else { 2_000 } {
        let worlds: Vec<World> = (0..4)
            .map(|_| {
                let mut world = self::world(4);
                world.limits = limits.clone();
                world
            })
            .collect();
        crate::world::simulate(async {
            let mut ends = Vec::new();
            for world in &worlds {
                let text = nuisance(&mut random);
                let mut own = Random(random.below(u64::MAX));
                ends.push(async move { disturb(world, &text, &mut own, 4).await });
            }
            let [a, b, c, d] = ends.try_into().unwrap_or_else(|_| panic!("four worlds"));
            tokio::join!(a, b, c, d)
        });
        lives += 4;
        assert!(limits.board().is_empty(), "after {lives} lives: {:?}", limits.board());
    }
    for (name, _) in limits.targets() {
        limits.change(&name, |target| target.clear(0, "the end")).unwrap();
    }
    let member = limits.join("last").unwrap();
    let all = |pool, limit| PoolWant { pool, units: limit, limit };
    let pools = [all("global", 4), all("gpu", 2), all("disk", 1)];
    let targets = ["host:x", "agent:fake", "provider:fake"].map(str::to_string);
    let want = Want { pools: &pools, targets: &targets, priority: 3, estimate: Default::default() };
    assert!(matches!(member.ask(&want, 10_000_000), Answer::Granted(_)), "all of it is free again");
    println!("{lives} lives that ended badly, 0 permits lost, {:?}", begun.elapsed());
}

// covers: P6, R13
#[test]
fn the_urgent_take_the_first_slot_that_frees_and_kill_nobody() {
    let world = world(8);
    let (slow, quick) = world.live(async || {
        let slow = start(&world, "slow", 2, &fan(40, "ms=1000"));
        let late = async {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            start(&world, "quick", 0, &fan(1, "ms=10")).drive().await.unwrap()
        };
        let (slow, quick) = tokio::join!(slow.drive(), late);
        (slow.unwrap(), quick)
    });
    assert_eq!(slow.status, Status::Finished(Verdict::Succeeded));
    let begun = quick.step(quick.find("p/x[0]").unwrap()).started_ms - 1_000_000;
    println!("a P0 step came at 1500 and began at {begun}; the next slot was free at 2000");
    assert!((2_000..=2_060).contains(&begun), "{begun}");
    assert_eq!(world.steps.widest(), 8);
    assert!(world.steps.calls().iter().all(|call| call.how == "succeeded"), "nobody was killed");
}

// covers: P6, R13
#[test]
fn the_patient_are_not_starved_and_equals_share() {
    let world = world(4);
    let (_, patient) = world.live(async || {
        let busy = start(&world, "busy", 1, &fan(2_400, "ms=1000"));
        let patient = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            start(&world, "patient", 3, &fan(4, "ms=1000")).drive().await.unwrap()
        };
        let (busy, patient) = tokio::join!(busy.drive(), patient);
        (busy.unwrap(), patient)
    });
    let mut waits: Vec<u64> =
        world.steps.calls().iter().filter(|c| c.path == "p/x[0]").map(|c| c.from_ms).collect();
    waits.sort_unstable();
    println!(
        "P3 against P1: first step after {} ms, four after {} ms",
        waits[1] - 1_005_000,
        patient.elapsed_ms()
    );
    // Two levels of priority are two minutes, and each grant counts anew.
    assert!(patient.elapsed_ms() <= 4 * 122_000, "{}", patient.elapsed_ms());
    let world = self::world(4);
    let text = fan(200, "ms=100");
    let took = world.live(async || {
        let runs = ["a", "b", "c"].map(|feature| start(&world, feature, 2, &text));
        let [a, b, c] = runs.map(|owned| owned.drive());
        let (a, b, c) = tokio::join!(a, b, c);
        [a, b, c].map(|run| run.unwrap().elapsed_ms())
    });
    println!("three equal runs of 200 x 100 ms at 4 at once took {took:?} ms");
    let (least, most) = (took.iter().min().unwrap(), took.iter().max().unwrap());
    // Others cannot call us: a slot that changes hands stays free for up to 50 ms.
    assert!(*most < 21_000, "{took:?}");
    assert!(least * 4 >= most * 3, "{took:?}");
}
