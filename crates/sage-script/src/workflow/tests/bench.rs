//! How fast a record is replayed. Run with `--release --run-ignored all --no-capture`.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use super::*;

const CALLS: u32 = 10_000;
const LEAST_PER_SECOND: f64 = 60_000.0;

/// A record of the script's calls, all of them ended.
fn record(script: &Script) -> Run {
    let run = script.run(echo);
    assert_eq!(run.calls.len(), CALLS as usize);
    run
}

fn replayed_per_second(what: &str, body: &str) -> f64 {
    let mut script = Script::sage(body);
    script.limits.cpu_ms = 60_000;
    let before = record(&script);
    let (mut best, mut fastest) = (0.0_f64, 0.0_f64);
    for _ in 0..3 {
        let (began, cpu) = (Instant::now(), process_cpu_seconds());
        let (_handle, said) = start(&script, &before);
        match said.recv_timeout(PATIENCE).expect("it ends") {
            ScriptSays::Ended(Ok(value)) => assert_eq!(value, json!(CALLS)),
            other => panic!("{other:?}"),
        }
        fastest = fastest.max(f64::from(CALLS) / began.elapsed().as_secs_f64());
        best = best.max(f64::from(CALLS) / (process_cpu_seconds() - cpu));
    }
    eprintln!("replay, {what}: {best:.0} calls per CPU second, {fastest:.0} calls/s here and now");
    best
}

/// A busy machine must not decide; this test is alone in its process.
fn process_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[test]
#[ignore = "a measurement, for release builds"]
fn ten_thousand_calls_are_replayed_quickly() {
    let sequential = "let n = 0; for (let i = 0; i < 10000; i++) { await sage.agent('a', { prompt: `item ${i}`, model: 'm' }); n++ } return n";
    let at_once = "const r = await Promise.all(Array.from({ length: 10000 }, (_, i) => sage.agent('a', { prompt: `item ${i}`, model: 'm' }))); return r.length";
    let figures =
        [replayed_per_second("one after the other", sequential), replayed_per_second("all at once", at_once)];
    // Without optimisation the figures say little.
    assert!(cfg!(debug_assertions) || figures.iter().all(|figure| *figure > LEAST_PER_SECOND), "{figures:?}");
}
