//! What all policies together cost a step that does nothing: instructions, counted by callgrind.
//!
//! Sage runs itself under valgrind four times: with and without policies, and twice as many steps each, so that
//! starting up cancels out. Only the run's loop is counted: the journal's thread and the checkpoint's work by
//! the clock. Without policies a step still asks for its slot, in memory; with all of them everything is on disk.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sage_core::port::{BoxFuture, StepCall, StepCx, StepExecutor, StepOutcome, Usage};
use sage_engine::limits::{Limits, LimitsConfig};
use sage_engine::open::Engine;
use serde_json::Value;

use super::Figure;
use super::world::World;
use crate::cli::context::{Context, runtime};
use crate::cli::failure::Failure;

const STEPS: usize = 150;
/// What DESIGN allows.
const GOAL: f64 = 60_000.0;

pub fn measure(
    context: &Context,
    tell: &mut dyn FnMut(Figure) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let world = World::new(&context.project.root)?;
    let per_step = |kind: &str| -> Result<f64, Failure> {
        let once = count(world.root(), kind, STEPS)?;
        let twice = count(world.root(), kind, 2 * STEPS)?;
        Ok((twice as f64 - once as f64) / STEPS as f64)
    };
    let plain = per_step("plain")?;
    tell(Figure::new("plain no-op", plain, format!("{plain:.0} instructions a step in the loop")))?;
    let all = per_step("all")?;
    let text = format!("{:.0} more with budget, breakers, quota, pools, hedge, fallback, stall", all - plain);
    tell(Figure::new("all policies", all - plain, text).at_most(GOAL))
}

/// Instructions of one whole process that runs `steps` no-ops.
fn count(dir: &Path, kind: &str, steps: usize) -> Result<u64, Failure> {
    let own = std::env::current_exe()?;
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--toggle-collect=sage_engine::open::Owned::drive::*")
        .arg(format!("--callgrind-out-file={}", dir.join("callgrind.out").display()))
        .arg(own)
        .arg("-C")
        .arg(dir)
        .args(["bench", "no-ops", "--kind", kind, "--steps", &steps.to_string()])
        .output();
    let output = run.map_err(|error| {
        Failure::failed(format!("cannot start valgrind: {error}")).hint("apt install valgrind")
    })?;
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| line.split("Collected : ").nth(1));
    let number = collected.and_then(|text| text.split_whitespace().next()?.parse().ok());
    number.filter(|_| output.status.success()).ok_or_else(|| {
        let last: Vec<&str> = told.lines().rev().take(3).collect();
        Failure::failed(format!("callgrind did not count: {}", last.join(" / ")))
    })
}

/// The measured process: `steps` no-ops, with or without policies.
pub fn no_ops(context: &Context, kind: &str, steps: usize) -> Result<(), Failure> {
    let world = World::new(&context.project.root)?;
    let all = kind == "all";
    let limits = if all {
        Limits::shared(LimitsConfig::default(), world.root().join("limits"), world.root().join("user"))
    } else {
        Limits::alone(LimitsConfig::default())
    };
    let engine = Engine { executor: Arc::new(Nothing), limits, ..world.engine() };
    let mut request = world.request("no-ops", template(steps, all), 8);
    request.settings.pools.extend([("cpu".into(), 64), ("io".into(), 64)]);
    let owned = engine.start(request)?;
    let run = runtime()?.block_on(owned.drive())?;
    if run.tally.settled as usize != steps || run.tally.failed > 0 {
        return Err(Failure::failed(format!("{} of {steps} no-ops were done", run.tally.settled)));
    }
    Ok(())
}

/// An agent that does nothing, at once.
struct Nothing;

impl StepExecutor for Nothing {
    fn execute(&self, _cx: StepCx, _call: StepCall) -> BoxFuture<'static, StepOutcome> {
        let usage = Usage { input: Some(10), output: Some(1), ..Usage::default() };
        Box::pin(async { StepOutcome::Succeeded { result: Value::Null, usage } })
    }
}

fn template(steps: usize, all: bool) -> String {
    let policies = if all {
        r#","model":"claude-haiku-4-5","pool":{"cpu":1,"io":1},"target":"host:example.com","hedge":"1h",
           "fallback":["other",{"value":1}],"stall":"1h","retry":{"attempts":3,"jitter":"decorrelated"},
           "timeout":{"attempt":"1h","step":"2h","idle":"1h","queue":"3h"}"#
    } else {
        ""
    };
    let budget = if all { r#""budget":"1000usd+900M","retryBudget":0.2,"# } else { "" };
    let phase_budget = if all { r#""budget":"500usd+800M","# } else { "" };
    // A fan-out, so that reading the template costs the same for any number of steps.
    let operation = format!(
        r#"{{"id":"s","type":"agent","agent":"nothing","prompt":"x","foreach":"[range({steps})]"{policies}}}"#
    );
    format!(r#"{{"name":"bench",{budget}"phases":[{{"id":"p",{phase_budget}"operations":{operation}}}]}}"#)
}
