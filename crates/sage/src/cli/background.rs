//! Runs in the background: giving a run to it, and making sure that somebody looks after those that are there.
//!
//! The first owner of a run is started here, with the environment of whoever asked for it; only if it dies does
//! the supervisor start another. Nothing of an environment is written to disk.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use sage_engine::background::{self, Over, Record};
use sage_engine::lock;
use sage_engine::open::Engine;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::drive::Show;
use super::failure::Failure;
use super::{log_file, print, print_json};
use crate::command_line;
use crate::display::text::argument;

/// How long a new owner may take before the person is told that it is late.
const TAKEN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// What a step is told of itself: a run that a step starts is not part of that step.
const OF_A_STEP: [&str; 10] = [
    "SAGE_RUN",
    "SAGE_FEATURE",
    "SAGE_STEP",
    "SAGE_ATTEMPT",
    "SAGE_KEY",
    "SAGE_INPUT",
    "SAGE_NUDGE",
    "SAGE_PROMPT",
    "SAGE_MODEL",
    "SAGE_SCHEMA",
];

/// Whether a run shall go to the background; says so if it is switched off.
pub fn wanted(context: &Context, detach: bool) -> bool {
    if detach && !context.config.switches.background {
        eprintln!("note: the background is switched off (SAGE_BACKGROUND or [switches]); it runs here");
    }
    if detach && context.key.is_none() {
        eprintln!("note: state is not sealed, so nothing may start the run again; it runs here");
    }
    detach && context.config.switches.background && context.key.is_some()
}

/// Starts a supervisor if runs in the background have none. One directory listing where there are none.
pub fn ensure(context: &Context) {
    let none = || context.records().list().is_empty() || context.project.refuse_strange().is_err();
    if !context.config.switches.background || none() {
        return;
    }
    if background::is_needed(&context.engine())
        && let Err(error) = sage(context, "supervisor", &["supervise"]).map(let_go)
    {
        eprintln!("warning: nobody looks after the runs in the background: {error}");
    }
}

/// The next owner of a run, in a process of its own.
pub fn owner(context: &Context, record: &Record) -> io::Result<Child> {
    let mut args = vec!["resume", &record.feature, "--quiet", "--supervised", &record.run];
    if record.no_wait {
        args.push("--no-wait");
    }
    if record.after_reboot {
        args.push("--after-reboot");
    }
    sage(context, &record.feature, &args)
}

/// This binary, without a terminal. It begins a session of its own as soon as it runs.
fn sage(context: &Context, log: &str, args: &[&str]) -> io::Result<Child> {
    let log = log_file::open(&log_file::path(&context.project, log))?;
    let mut command = Command::new(binary()?);
    command.arg("-C").arg(&context.project.root).args(args).current_dir(&context.project.root);
    for name in OF_A_STEP {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Where this binary is, or the one that has taken its place since.
fn binary() -> io::Result<std::path::PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), |kept| Path::new(kept).to_path_buf()))
}

/// A process without a terminal: a session of its own, and hang-ups mean nothing to it.
pub fn leave_terminal() -> io::Result<()> {
    // It fails if it was started as a leader; then there is no terminal to leave.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // A handler stays for as long as the process does; without one a hang-up would end it.
    runtime.block_on(async { signal(SignalKind::hangup()).map(drop) })
}

/// Nobody waits for it here; in a process that stays it must be buried all the same.
fn let_go(mut child: Child) {
    // Without a thread it is buried when this process ends.
    let _ = std::thread::Builder::new().spawn(move || drop(child.wait()));
}

/// Starts the first owner of a run that was left to the background, and says how to watch it.
pub fn launch(context: &Context, record: &Record, show: &Show) -> Result<ExitCode, Failure> {
    let pid = hand_over(context, record)?;
    tell(record, pid, show)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the first owner of a run that was left to the background, and waits until it has the run.
pub fn hand_over(context: &Context, record: &Record) -> Result<u32, Failure> {
    let engine = context.engine();
    let before = engine.journal_bytes(&record.run);
    let child = owner(context, record);
    ensure(context);
    let log = log_file::path(&context.project, &record.feature);
    let late = |why: String| {
        Failure::failed(format!("`{}` is saved, but nobody runs it yet: {why}", record.feature))
            .hint(command_line::sage("status").arg(&record.feature).comment("the supervisor tries again"))
            .hint(format!("cat {}", argument(&log.display().to_string())))
    };
    let mut child = child.map_err(|error| late(error.to_string()))?;
    let deadline = Instant::now() + TAKEN;
    // Its owner's first word is that it has it.
    while engine.journal_bytes(&record.run) <= before {
        if matches!(child.try_wait(), Ok(Some(_))) && engine.journal_bytes(&record.run) <= before {
            return Err(late(
                log_file::last_words(&log).unwrap_or_else(|| "its process ended at once".into()),
            ));
        }
        if Instant::now() > deadline {
            return Err(late("its process has not begun within 10 s".into()));
        }
        std::thread::sleep(LOOK);
    }
    let pid = child.id();
    let_go(child);
    Ok(pid)
}

fn tell(record: &Record, pid: u32, show: &Show) -> Result<(), Failure> {
    let feature = &record.feature;
    if show.json {
        return print_json(&json!({
            "type": "detached", "success": true, "feature": feature, "workflowId": record.run, "owner": pid,
        }));
    }
    print(format_args!("{feature} runs in the background: {} (process {pid})\n", record.run));
    if !show.quiet {
        command_line::tell(command_line::sage("status").arg(feature).arg("--watch"));
        command_line::tell(command_line::sage("logs").arg(feature).arg("-f"));
    }
    Ok(())
}

/// Whether a feature's run will have an owner without anybody's doing. If it should have one, it is seen to.
pub fn goes_on(context: &Context, engine: &Engine, feature: &str) -> bool {
    if lock::peek(&engine.project.lock(feature)).is_some() {
        return true;
    }
    let alive = engine.records().get(feature).is_some_and(|record| engine.goes_on(&record));
    if alive {
        ensure(context);
    }
    alive && context.config.switches.background
}

/// What to say of a run that a person has just acted on: whether it goes on by itself.
pub fn goes_on_by_itself(context: &Context, feature: &str) -> bool {
    let record = context.records().get(feature);
    context.config.switches.background && record.is_some_and(|record| record.over.is_none())
}

/// As `status --json` tells it.
pub fn json(record: &Record) -> Value {
    let (state, why) = match &record.over {
        None => ("watched", None),
        Some(Over::Stopped) => ("stopped", None),
        Some(Over::GaveUp { why, .. }) => ("gaveUp", Some(why)),
    };
    json!({
        "state": state, "why": why, "restarts": record.restarts,
        "since": sage_core::wire::rfc3339(record.since_ms),
    })
}
