//! `sage logs`: what happened, or what a step printed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sage_core::wire::{self, shown_cost};
use sage_engine::open::Engine;
use sage_engine::project::Project;

use super::context::Context;
use super::failure::Failure;
use super::{background, drive, feature};
use crate::display::{Display, Mode, Options};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// A step's path: show what it printed
    step: Option<String>,
    /// Follow until the run, or the step, ends
    #[arg(short, long)]
    follow: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let snapshot = engine.read_named(&feature, &args.feature)?;
    if let Some(step) = &args.step {
        if args.json {
            return output_json(&engine, &feature, step);
        }
        return output(context, &feature, step, args.follow);
    }
    let mode = if args.json { Mode::Json } else { Mode::Lines };
    let follow = args.follow && snapshot.is_alive();
    let options =
        Options { from_seq: 0, color: drive::color(), width: None, until_closed: follow, no_wait: false };
    let display = Display::start(engine.vfs.clone(), snapshot.dir, mode, options);
    if follow {
        drive::follow(context, &engine, &feature, display)
    } else {
        display.finish()
    }
    Ok(ExitCode::SUCCESS)
}

/// What the step's last attempt printed: stdout to stdout, stderr to stderr.
fn output(context: &Context, feature: &str, step: &str, follow: bool) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let mut read = [0u64; 2];
    let mut shown_attempt = 0;
    loop {
        let snapshot = engine.read(feature)?;
        let id = super::step(&snapshot.run, step)?;
        let state = snapshot.run.step(id);
        if state.attempts != shown_attempt {
            (shown_attempt, read) = (state.attempts, [0, 0]);
        }
        let scratch = Project::scratch(&snapshot.dir, &state.path, state.attempts.max(1));
        let printed = copy(&engine, &scratch, &mut read)?;
        let ended = state.state.settled() || !background::goes_on(context, &engine, feature);
        if !printed && (ended || !follow) {
            if read == [0, 0] {
                eprintln!(
                    "`{step}` has printed nothing; it is {}",
                    wire::step_word(&snapshot.run, id, snapshot.is_driven())
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
        if !printed {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// All that the step's last attempt printed, as one object.
fn output_json(engine: &Engine, feature: &str, step: &str) -> Result<ExitCode, Failure> {
    const MAX_BYTES: u64 = 64 << 20;
    let snapshot = engine.read(feature)?;
    let id = super::step(&snapshot.run, step)?;
    let state = snapshot.run.step(id);
    let scratch = Project::scratch(&snapshot.dir, &state.path, state.attempts.max(1));
    let text = |name: &str| {
        let bytes = engine.vfs.read(&scratch.join(name), MAX_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let usage = snapshot.run.usage_of(id);
    super::print_json(&serde_json::json!({
        "type": "output", "step": step, "attempt": state.attempts,
        "tokens": usage.total(), "costUsd": shown_cost(&usage), "costEstimated": usage.cost_estimated,
        "stdout": text("stdout.log"), "stderr": text("stderr.log"),
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// What an agent said and did, where there is such a log; its raw events are in `stdout.log`.
fn said(engine: &Engine, scratch: &Path) -> &'static str {
    let readable = engine.vfs.exists(&scratch.join("agent.log")).unwrap_or(false);
    if readable { "agent.log" } else { "stdout.log" }
}

/// Copies what is new. True if there was something.
fn copy(engine: &Engine, scratch: &Path, read: &mut [u64; 2]) -> Result<bool, Failure> {
    const PIECE_BYTES: u64 = 1 << 20;
    let mut any = false;
    for (n, name) in [said(engine, scratch), "stderr.log"].into_iter().enumerate() {
        let path: PathBuf = scratch.join(name);
        let piece = engine.vfs.read_from(&path, read[n], PIECE_BYTES).unwrap_or_default();
        read[n] += piece.len() as u64;
        any |= !piece.is_empty();
        if crate::say::bytes(n == 0, &piece).is_err() {
            return Ok(false);
        }
    }
    Ok(any)
}
