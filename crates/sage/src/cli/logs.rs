//! `sage logs`: the events of a run, the activity and output of a step, the prompt of an agent.

use std::process::ExitCode;
use std::time::Duration;

use sage_agents::activity::{Prompt, Reader};
use sage_core::run::StepId;
use sage_core::template::Kind;
use sage_core::wire::{self, shown_cost};
use sage_engine::open::{Engine, Snapshot};
use sage_engine::project::Project;
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::step_output::{Piece, StepOutput};
use super::{background, drive, feature, print, print_json};
use crate::command_line::sage;
use crate::display::activity_lines::{json_of_entry, of_entry};
use crate::display::{Display, Mode, Options, Style};

/// Between two looks at what a step does.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// A step's path: show its activity and output
    step: Option<String>,
    /// Follow until the run, or the step, ends; without a step, include the activity of all agents
    #[arg(short, long)]
    follow: bool,
    /// Print the system prompt and the prompt of the step's agent, as sent
    #[arg(long, requires = "step", conflicts_with = "follow")]
    prompt: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let snapshot = engine.read_named(&feature, &args.feature)?;
    if let Some(step) = &args.step {
        let id = super::step(&snapshot.run, step)?;
        return match (args.prompt, args.json, args.follow) {
            (true, json, _) => prompt(&snapshot, id, json),
            (_, true, false) => output_json(&engine, &snapshot, id),
            (_, json, follow) => output(context, &feature, step, follow, json),
        };
    }
    let mode = if args.json { Mode::Json } else { Mode::Lines };
    let follow = args.follow && snapshot.is_alive();
    let options = Options {
        from_seq: 0,
        color: drive::color(),
        width: None,
        until_closed: follow,
        no_wait: false,
        activity: follow.then_some(snapshot.head.seq),
    };
    let display = Display::start(engine.vfs.clone(), snapshot.dir, mode, options);
    if follow {
        drive::follow(context, &engine, &feature, display)
    } else {
        display.finish()
    }
    Ok(ExitCode::SUCCESS)
}

/// What the step's last attempt did and printed: its activity and stdout to stdout, stderr to stderr.
pub fn output(
    context: &Context,
    feature: &str,
    step: &str,
    follow: bool,
    json: bool,
) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let mut output = StepOutput::default();
    loop {
        let snapshot = engine.read(feature)?;
        let id = super::step(&snapshot.run, step)?;
        let ended = snapshot.run.step(id).state.settled() || !background::goes_on(context, &engine, feature);
        let pieces = output.next(&engine, &snapshot.dir, &snapshot.run, id);
        for piece in &pieces {
            let shown = if json { show_json(step, output.attempt(), piece) } else { show(piece) };
            if shown.is_err() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if pieces.is_empty() && (ended || !follow) {
            if !output.any() && !json {
                let word = wire::step_word(&snapshot.run, id, snapshot.is_driven());
                eprintln!("`{step}` has printed nothing; it is {word}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        if pieces.is_empty() {
            std::thread::sleep(TICK);
        }
    }
}

/// An error: nobody reads it any more.
fn show(piece: &Piece) -> std::io::Result<()> {
    match piece {
        Piece::Entry(entry) => crate::say::lines(of_entry(entry).iter().map(|line| line.render(style()))),
        Piece::Stdout(bytes) => crate::say::bytes(true, bytes),
        Piece::Stderr(bytes) => crate::say::bytes(false, bytes),
    }
}

/// Nothing is cut; colours only on a terminal.
fn style() -> Style {
    Style { width: usize::MAX, ..drive::style() }
}

fn show_json(step: &str, attempt: u32, piece: &Piece) -> std::io::Result<()> {
    let output = |stream: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        json!({"type": "output", "step": step, "attempt": attempt, "stream": stream, "text": text})
    };
    let value = match piece {
        Piece::Entry(entry) => json_of_entry(step, attempt, entry),
        Piece::Stdout(bytes) => output("stdout", bytes),
        Piece::Stderr(bytes) => output("stderr", bytes),
    };
    crate::say::lines([crate::say::json(&value.to_string()).into_owned()])
}

/// All that the step's last attempt did and printed, as one object.
fn output_json(engine: &Engine, snapshot: &Snapshot, id: StepId) -> Result<ExitCode, Failure> {
    const MAX_BYTES: u64 = 64 << 20;
    let state = snapshot.run.step(id);
    let scratch = Project::scratch(&snapshot.dir, &state.path, state.attempts.max(1));
    let text = |name: &str| {
        let bytes = engine.vfs.read(&scratch.join(name), MAX_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let usage = snapshot.run.usage_of(id);
    let mut value = json!({
        "type": "output", "step": state.path, "attempt": state.attempts,
        "tokens": usage.total(), "costUsd": shown_cost(&usage), "costEstimated": usage.cost_estimated,
        "stdout": text("stdout.log"), "stderr": text("stderr.log"),
    });
    let mut reader = Reader::new(&scratch);
    if reader.exists() {
        let mut all = Vec::new();
        while let entries @ [_, ..] = reader.read().as_slice() {
            all.extend(entries.iter().map(|entry| json_of_entry(&state.path, state.attempts, entry)));
        }
        value["activity"] = all.into();
    }
    print_json(&value)?;
    Ok(ExitCode::SUCCESS)
}

/// What the agent of the step's last attempt was asked.
fn prompt(snapshot: &Snapshot, id: StepId, json: bool) -> Result<ExitCode, Failure> {
    let (run, state) = (&snapshot.run, snapshot.run.step(id));
    if run.kind(id) != Kind::Agent {
        let kind = run.kind(id).name();
        return Err(Failure::usage(format!("`{}` is a {kind} step and has no prompt", state.path))
            .hint(sage("logs").arg(&run.feature).arg(state.path.to_string())));
    }
    let scratch = Project::scratch(&snapshot.dir, &state.path, state.attempts.max(1));
    let Some(Prompt { system, prompt }) = Prompt::read(&scratch) else {
        let word = wire::step_word(run, id, snapshot.is_driven());
        return Err(Failure::usage(format!("`{}` has sent no prompt; it is {word}", state.path))
            .hint(sage("explain").arg(&run.feature).arg(state.path.to_string())));
    };
    if json {
        let (step, attempt) = (&state.path, state.attempts);
        let value =
            json!({"type": "prompt", "step": step, "attempt": attempt, "system": system, "prompt": prompt});
        print_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(system) = system {
        print(format_args!("--- system\n{}\n--- prompt\n", system.trim_end()));
    }
    print(format_args!("{}\n", prompt.trim_end()));
    Ok(ExitCode::SUCCESS)
}
