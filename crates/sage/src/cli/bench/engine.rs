//! The engine: steps a second beside the disk's own rate, plans by size, resuming, memory.

use std::io::Write;
use std::time::{Duration, Instant};

use sage_core::check::{self, NoTemplates};
use sage_core::plan::Plan;
use sage_core::read::Library;
use sage_core::run::{Run, State};
use sage_core::source::Format;
use sage_engine::control::Signal;
use sage_engine::open::{ResumeRequest, Resumed};

use super::Figure;
use super::world::{World, no_ops};
use crate::cli::context::{Context, runtime};
use crate::cli::failure::Failure;

type Tell<'a> = &'a mut dyn FnMut(Figure) -> Result<(), Failure>;

pub fn measure(context: &Context, tell: Tell) -> Result<(), Failure> {
    let world = World::new(&context.project.root)?;
    makespans(&world, tell)?;
    rates(&world, tell)?;
    // Before the large plans, because the process only knows the most memory it ever held.
    large_run(&world, tell)?;
    plans(tell)
}

/// Independent steps take as long as the longest; a branch never waits for a level of the graph.
fn makespans(world: &World, tell: Tell) -> Result<(), Failure> {
    let sleep = |id: &str, ms: u32, needs: &str| {
        let needs = if needs.is_empty() { String::new() } else { format!(r#","needs":["{needs}"]"#) };
        format!(r#"{{"id":"{id}","type":"sleep","params":{{"ms":{ms}}}{needs}}}"#)
    };
    let joined =
        [sleep("a", 450, ""), sleep("b", 300, ""), sleep("c", 400, ""), sleep("d", 200, "")].join(",");
    let joined = format!(
        r#"{{"name":"m","phases":[{{"id":"p","operations":[{joined}]}},{{"id":"q","dependencies":["p"],"operations":{}}}]}}"#,
        sleep("join", 0, "")
    );
    let chain = (1..=5)
        .map(|n| sleep(&format!("a{n}"), 100, &if n > 1 { format!("a{}", n - 1) } else { String::new() }));
    let branches: Vec<String> = chain.chain([sleep("b1", 500, ""), sleep("b2", 10, "b1")]).collect();
    let branches = format!(r#"{{"name":"m","phases":[{{"id":"p","operations":[{}]}}]}}"#, branches.join(","));
    for (name, template, longest, goal) in
        [("45/30/40/20 at once", joined, 450.0, 1.03), ("two branches, no barrier", branches, 510.0, 1.08)]
    {
        let feature = if longest > 500.0 { "branches" } else { "joined" };
        let run = world.run(feature, template, 4)?;
        let (took, start_up) = stretch(&run);
        let ratio = took as f64 / longest;
        let text =
            format!("{took} ms, {ratio:.3} x the longest path of {longest} ms (start-up {start_up} ms)");
        tell(Figure::new(name, ratio, text).at_most(goal))?;
    }
    Ok(())
}

/// From the first step's start to the run's end, and what came before it, in milliseconds.
fn stretch(run: &Run) -> (u64, u64) {
    let first = run.live_steps().map(|step| step.started_ms).min().unwrap_or(0);
    (run.updated_ms.saturating_sub(first), first.saturating_sub(run.started_ms))
}

/// How often a second this disk makes a small append durable.
pub(super) fn raw_rate(world: &World, during: Duration) -> Result<f64, Failure> {
    let mut file = std::fs::File::create(world.root().join("raw"))?;
    let line = [b'x'; 512];
    let (started, mut n) = (Instant::now(), 0u32);
    while started.elapsed() < during {
        file.write_all(&line)?;
        file.sync_data()?;
        n += 1;
    }
    Ok(f64::from(n) / started.elapsed().as_secs_f64())
}

/// Chains and fan-outs between two looks at the raw rate, because disks have moods.
fn rates(world: &World, tell: Tell) -> Result<(), Failure> {
    const ROUNDS: usize = 5;
    const CHAIN: usize = 200;
    const FAN: usize = 1_000;
    let (mut raw, mut chain, mut fan) = (Vec::new(), Vec::new(), Vec::new());
    let (mut chain_syncs, mut fan_syncs) = (0, 0);
    for round in 0..ROUNDS {
        raw.push(raw_rate(world, Duration::from_millis(400))?);
        let (rate, syncs) = timed(world, &format!("chain-{round}"), CHAIN, true)?;
        chain.push(rate);
        chain_syncs = chain_syncs.max(syncs);
        let (rate, syncs) = timed(world, &format!("fan-{round}"), FAN, false)?;
        fan.push(rate);
        fan_syncs = fan_syncs.max(syncs);
    }
    let (raw, chain, fan) = (median(raw), median(chain), median(fan));
    tell(Figure::new("raw fdatasync", raw, format!("{raw:.0}/s on this disk")))?;
    let ratio = chain / raw;
    tell(
        Figure::new(
            "chain of no-ops",
            ratio,
            format!("{chain:.0} steps/s, {ratio:.2} x the raw rate (start-up not counted)"),
        )
        .at_least(0.5),
    )?;
    let each = chain_syncs as f64 / CHAIN as f64;
    tell(
        Figure::new("chain fdatasyncs", each, format!("{chain_syncs} for {CHAIN} steps, {each:.2} a step"))
            .at_most(1.02),
    )?;
    let ratio = fan / raw;
    tell(
        Figure::new(
            "fan-out of 1,000",
            ratio,
            format!("{fan:.0} steps/s, {ratio:.0} x the raw rate (start-up not counted)"),
        )
        .at_least(20.0),
    )?;
    tell(
        Figure::new("fan-out fdatasyncs", fan_syncs as f64, format!("{fan_syncs} for {FAN} steps"))
            .at_most(100.0),
    )
}

/// Steps a second from the first step's start to the run's end, and the journal's fdatasyncs.
fn timed(world: &World, feature: &str, steps: usize, chain: bool) -> Result<(f64, u64), Failure> {
    let before = world.disk.syncs().data;
    let run = world.run(feature, no_ops(steps, chain), steps as u32)?;
    let syncs = world.disk.syncs().data - before;
    Ok((steps as f64 * 1000.0 / stretch(&run).0.max(1) as f64, syncs))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn plans(tell: Tell) -> Result<(), Failure> {
    let mut per_step = Vec::new();
    for (name, steps, goal_ms) in [
        ("plan of 1,000", 1_000, 10.0),
        ("plan of 10,000", 10_000, 50.0),
        ("plan of 100,000", 100_000, 1_000.0),
    ] {
        let text = no_ops(steps, true);
        let best = (0..3)
            .map(|_| validate(&text))
            .collect::<Result<Vec<f64>, Failure>>()?
            .into_iter()
            .fold(f64::MAX, f64::min);
        per_step.push(best / steps as f64);
        tell(Figure::new(name, best, format!("validated in {best:.1} ms")).at_most(goal_ms))?;
    }
    let growth = per_step[2] / per_step[1];
    tell(Figure::new("growth 10k -> 100k", growth, format!("{growth:.2} x the time per step")).at_most(2.0))
}

fn validate(text: &str) -> Result<f64, Failure> {
    let started = Instant::now();
    let loaded = check::load(text, Format::Json, &Library::default(), &NoTemplates);
    let template = loaded.template.ok_or_else(|| Failure::failed("the bench's own template is not valid"))?;
    Plan::new(template).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

/// 10,000 no-ops, then a question, so that the run can be resumed with all of them finished.
fn large_run(world: &World, tell: Tell) -> Result<(), Failure> {
    const STEPS: usize = 10_000;
    let phase = no_ops(STEPS, false);
    let asked = r#",{"id":"q","dependencies":["p"],"operations":{"id":"ask","type":"approval","params":{"message":"go on?"}}},
        {"id":"r","dependencies":["q"],"operations":{"id":"end","type":"sleep","params":{"ms":0}}}]}"#;
    let template = phase.strip_suffix("]}").unwrap_or(&phase).to_string() + asked;
    let started = Instant::now();
    let run = world.run("large", template, 4)?;
    let seconds = started.elapsed().as_secs_f64();
    if run.tally.settled as usize != STEPS {
        return Err(Failure::failed("the large run did not finish its steps"));
    }
    drop(run);
    tell(Figure::new("run of 10,000 no-ops", seconds, format!("{seconds:.2} s")).at_most(3.0))?;
    if let Some(peak) = peak_mb() {
        tell(Figure::new("peak memory so far", peak, format!("{peak:.0} MB")).at_most(120.0))?;
    }
    let answer = Signal::approve("q/ask", "bench");
    runtime()?.block_on(world.engine().deliver("large", answer))?;
    let (asked_ms, begun) = (now_ms(), Instant::now());
    let Resumed::Owned(owned) = world.engine().resume("large", ResumeRequest::default())? else {
        return Err(Failure::failed("the large run had nothing to resume"));
    };
    let run = runtime()?.block_on(owned.drive())?;
    let Some(end) = run.find("r/end") else {
        return Err(Failure::failed("the large run lost its last step"));
    };
    if !matches!(run.step(end).state, State::Succeeded) {
        return Err(Failure::failed("the resumed run did not finish"));
    }
    let first = run.step(end).started_ms.saturating_sub(asked_ms) as f64;
    let all = begun.elapsed().as_secs_f64() * 1000.0;
    tell(
        Figure::new(
            "resume of 10,000 steps",
            first,
            format!("{first:.0} ms to the first new step ({all:.0} ms in all)"),
        )
        .at_most(300.0),
    )
}

fn now_ms() -> u64 {
    sage_engine::clock::Clock::System.now_ms()
}

/// The most memory that this process ever held; Linux only.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kb: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb / 1024.0)
}
