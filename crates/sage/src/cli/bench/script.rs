//! Workflows in code: a fresh engine, calls a second live beside the disk's own rate, and how fast 10,000
//! calls are found again when the run is resumed, unchanged and edited.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sage_core::event::{Frozen, FrozenProgram, RunEdited};
use sage_core::port::script::Program;
use sage_core::run::{Run, State, Status};
use sage_core::source::Format;
use sage_engine::clock::Clock;
use sage_engine::control::Signal;
use sage_engine::open::{Engine, ResumeRequest, Resumed};
use sage_script::isolate::{Isolate, Limits};
use sage_script::workflow::Scripts;

use super::Figure;
use super::engine::raw_rate;
use super::world::World;
use crate::cli::context::{Context, runtime};
use crate::cli::failure::Failure;

type Tell<'a> = &'a mut dyn FnMut(Figure) -> Result<(), Failure>;

const CALLS: usize = 10_000;
const FILE: &str = "bench.ts";

pub fn measure(context: &Context, tell: Tell) -> Result<(), Failure> {
    let world = World::new(&context.project.root)?;
    isolates(tell)?;
    let raw = raw_rate(&world, Duration::from_millis(400))?;
    tell(Figure::new("raw fdatasync", raw, format!("{raw:.0}/s on this disk")))?;
    live(&world, raw, tell)?;
    replay(&world, "in a row", &body("for (const n of all) await call(n);"), tell)?;
    replay(&world, "all at once", &body("await Promise.all(all.map(call));"), tell)
}

/// An engine with nothing in it, as every start of a script needs.
fn isolates(tell: Tell) -> Result<(), Failure> {
    const ROUNDS: u32 = 200;
    let limits = Limits { memory_bytes: 50 << 20, stack_bytes: 1 << 20, cpu_ms: 10_000 };
    let started = Instant::now();
    for _ in 0..ROUNDS {
        Isolate::new(&limits).map_err(|fault| Failure::failed(fault.to_string()))?;
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
    tell(Figure::new("fresh isolate", each, format!("{each:.0} us")).at_most(1_000.0))
}

/// A script that makes its calls, then asks whether to go on.
fn body(calls: &str) -> String {
    format!(
        r#"export default async (sage) => {{
  const all = [...Array({CALLS}).keys()];
  const call = (n) => sage.run("sleep", {{ ms: 0 }}, {{ key: n, label: "call" }});
  {calls}
  await sage.approve("go on?");
  await sage.run("sleep", {{ ms: 0 }}, {{ key: "end", label: "end" }});
  return all.length;
}};
"#
    )
}

/// Calls one after the other: each needs its own record on the disk before the next can be made.
fn live(world: &World, raw: f64, tell: Tell) -> Result<(), Failure> {
    const ROW: usize = 500;
    let text = body("for (const n of all) await call(n);").replace(&CALLS.to_string(), &ROW.to_string());
    let before = world.disk.syncs().data;
    let run = start(world, "live", &text)?;
    let syncs = (world.disk.syncs().data - before) as f64 / ROW as f64;
    let first = run.live_steps().map(|step| step.started_ms).filter(|&ms| ms > 0).min().unwrap_or(0);
    let rate = ROW as f64 * 1000.0 / run.updated_ms.saturating_sub(first).max(1) as f64;
    let ratio = rate / raw;
    let text = format!("{rate:.0} calls/s, {ratio:.2} x the raw rate, {syncs:.2} fdatasyncs a call");
    tell(Figure::new("live calls in a row", ratio, text).at_least(0.3))
}

/// Makes all calls, then resumes twice: as it was, and with one call in the middle changed.
fn replay(world: &World, how: &'static str, text: &str, tell: Tell) -> Result<(), Failure> {
    let feature = how.replace(' ', "-");
    let began = Instant::now();
    let run = start(world, &feature, text)?;
    let seconds = began.elapsed().as_secs_f64();
    called(&run, CALLS + 1)?;
    drop(run);
    let (name, found, edited) = match how {
        "in a row" => ("10,000 calls in a row", "found again in a row", "edited in a row"),
        _ => ("10,000 calls at once", "found again at once", "edited at once"),
    };
    let rate = CALLS as f64 / seconds;
    tell(Figure::new(name, rate, format!("{rate:.0} calls/s live ({seconds:.2} s)")))?;
    answer(world, &feature)?;
    let rate = CALLS as f64 / resumed(world, &feature, None, "main/end")?;
    let words = format!("{rate:.0} calls/s, from the journal on disk to the next call");
    let figure = Figure::new(found, rate, words);
    tell(if how == "in a row" { figure.at_least(30_000.0) } else { figure })?;
    let middle = CALLS / 2;
    let changed = text.replace("key: n,", &format!("key: n === {middle} ? \"changed\" : n,"));
    let seconds = resumed(world, &feature, Some(&changed), "")?;
    let run = engine(world).read(&feature)?.run;
    let again = called(&run, CALLS + 2)?;
    let words = format!("{again} of {CALLS} calls ran again ({seconds:.2} s)");
    tell(Figure::new(edited, again as f64, words).at_most(1.0))
}

/// How many calls were really made; fails if some are missing.
fn called(run: &Run, expected: usize) -> Result<usize, Failure> {
    let calls: Vec<_> = run.live_steps().filter(|step| step.call.is_some()).collect();
    let failed = calls.iter().filter(|step| matches!(step.state, State::Failed | State::Cancelled)).count();
    if calls.len() != expected || failed > 0 {
        return Err(Failure::failed(format!(
            "{} calls of {expected} were made, {failed} failed",
            calls.len()
        )));
    }
    Ok(calls.iter().filter(|step| !step.reused).count())
}

fn engine(world: &World) -> Engine {
    Engine { scripts: Some(Arc::new(Scripts)), ..world.engine() }
}

fn frozen(text: &str) -> Frozen {
    let template = format!(
        r#"{{"name":"bench","phases":[{{"id":"{}","operations":[{{"id":"{}","type":"script","params":{{"file":"{FILE}"}}}}]}}]}}"#,
        Program::PHASE,
        Program::STEP
    );
    let program = FrozenProgram { text: text.into(), modules: Vec::new() };
    let programs = BTreeMap::from([(FILE.to_string(), program)]);
    Frozen { programs, ..Frozen::new("bench", Format::Json, template) }
}

/// Until it asks.
fn start(world: &World, feature: &str, text: &str) -> Result<Run, Failure> {
    let request = world.request(feature, String::new(), 4);
    let owned = engine(world).start(sage_engine::open::StartRequest { template: frozen(text), ..request })?;
    Ok(runtime()?.block_on(owned.drive())?)
}

fn answer(world: &World, feature: &str) -> Result<(), Failure> {
    runtime()?.block_on(engine(world).deliver(feature, Signal::approve("main/approve", "bench")))?;
    Ok(())
}

/// Seconds from asking for the run to the start of `step`; to its end if that names none.
fn resumed(world: &World, feature: &str, text: Option<&str>, step: &str) -> Result<f64, Failure> {
    let edit = text.map(|text| RunEdited {
        template: frozen(text),
        templates: Vec::new(),
        inputs: Default::default(),
    });
    let (asked_ms, begun) = (Clock::System.now_ms(), Instant::now());
    let Resumed::Owned(owned) =
        engine(world).resume(feature, ResumeRequest { edit, ..ResumeRequest::default() })?
    else {
        return Err(Failure::failed("the run had nothing to resume"));
    };
    let run = runtime()?.block_on(owned.drive())?;
    if !matches!(run.status, Status::Finished(_)) {
        return Err(Failure::failed("the resumed run did not come to its end"));
    }
    Ok(match run.find(step) {
        Some(id) => run.step(id).started_ms.saturating_sub(asked_ms).max(1) as f64 / 1000.0,
        None => begun.elapsed().as_secs_f64(),
    })
}
