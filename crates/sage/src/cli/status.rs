//! `sage status`: where a run stands.

use std::process::ExitCode;

use sage_core::event::PauseReason;
use sage_core::run::Status;
use sage_core::wire::{StatusView, notices};
use sage_engine::open::Snapshot;
use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::{background, drive, feature, print_json, roster, worktrees};
use crate::command_line::{sage, tell};
use crate::display::{Display, Doing, Mode, Options, Size, frame_text, reason_text};

/// Where there is no terminal to tell.
const WIDEST: usize = 200;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug; all open runs without one
    feature: Option<String>,
    /// Follow it until it ends or pauses
    #[arg(short, long)]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let Some(name) = &args.feature else { return roster::show(context, args.watch, args.json) };
    let feature = feature(name)?;
    let engine = context.engine();
    let snapshot = engine.read_named(&feature, name)?;
    if args.watch && snapshot.is_alive() {
        use std::io::IsTerminal;
        let mode = Mode::choose(args.json, false, std::io::stderr().is_terminal());
        let options = Options {
            from_seq: snapshot.head.seq,
            color: drive::color(),
            width: None,
            until_closed: true,
            no_wait: false,
            activity: None,
        };
        let display = Display::start(engine.vfs.clone(), snapshot.dir.clone(), mode, options);
        drive::follow(context, &engine, &feature, display);
        let after = engine.read(&feature)?;
        if mode == Mode::Tree {
            crate::say::painted(crate::display::summary(&after.run, drive::style()));
            return Ok(ExitCode::SUCCESS);
        }
        return show(context, &after, args.json);
    }
    show(context, &snapshot, args.json)
}

fn show(context: &Context, snapshot: &Snapshot, json: bool) -> Result<ExitCode, Failure> {
    let now = sage_engine::clock::Clock::System.now_ms();
    let run = &snapshot.run;
    if json {
        print_json(&view(context, snapshot, now)?)?;
    } else {
        let style = drive::style();
        let size = Size { width: style.width.min(WIDEST), height: usize::MAX };
        let mut doing = Doing::of_run(&snapshot.dir);
        let lines = frame_text(run, now, size, style.color, snapshot.is_driven(), &mut doing);
        lines.iter().for_each(|line| crate::say::painted(format_args!("{line}\n")));
        if let Some(reason) = reason_text(run, style) {
            crate::say::painted(format_args!("{reason}\n"));
        }
        notices(run).iter().for_each(|notice| crate::say::painted(format_args!("! {notice}\n")));
        worktrees::tell(&context.project, &run.id, context.key.as_ref());
        tell_next(snapshot);
    }
    Ok(ExitCode::SUCCESS)
}

/// As programs see it.
pub fn view(context: &Context, snapshot: &Snapshot, now_ms: u64) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(StatusView::of(&snapshot.run, snapshot.clock_ms(now_ms)))?;
    value["type"] = "status".into();
    value["abandoned"] = roster::is_abandoned(snapshot).into();
    value["owner"] = roster::owner(snapshot).into();
    value["ownerKind"] = roster::owner_kind(snapshot).map_or(Value::Null, Value::from);
    if snapshot.is_foreign {
        value["foreign"] = true.into();
    }
    if let Some(record) = &snapshot.detached {
        value["background"] = background::json(record);
    }
    if let Some(left) = worktrees::json(&context.project, &snapshot.run.id, context.key.as_ref()) {
        value["worktrees"] = left;
    }
    Ok(value)
}

/// What to type where it does not go on by itself.
fn tell_next(snapshot: &Snapshot) {
    let run = &snapshot.run;
    let resume = || sage("resume").arg(&run.feature).to_string();
    match run.status {
        _ if snapshot.is_foreign => roster::tell_foreign(snapshot),
        _ if snapshot.owner.is_some() => {}
        _ if snapshot.is_alive() => {
            eprintln!("note: its process in the background has ended; the next one starts by itself");
        }
        _ if snapshot.detached.as_ref().is_some_and(|record| record.over.is_some()) => {
            roster::tell_over(snapshot);
        }
        Status::Running => {
            eprintln!("note: no process owns this run (its owner exited)");
            tell(resume());
        }
        Status::Paused { reason: PauseReason::Budget, .. } => {
            let hint = crate::display::raise_command(run).unwrap_or_else(resume);
            tell(hint);
        }
        Status::Paused { .. } if run.pause_reason().is_none() => tell(resume()),
        Status::Paused { until: Some(_), .. } => {
            eprintln!("note: no process waits for it");
            tell(resume());
        }
        _ => {}
    }
}
