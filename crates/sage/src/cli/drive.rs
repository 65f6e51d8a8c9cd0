//! Driving an owned run in the foreground: the display, Ctrl-C, the last lines, the exit code.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use sage_core::diagnostic::printable;
use sage_core::event::PauseReason;
use sage_core::run::{Output, Run, Status};
use sage_engine::blobs::Blobs;
use sage_engine::inbox::{Background, Recorded};
use sage_engine::open::{Engine, Owned};
use sage_engine::results::{Face, value_of};
use sage_engine::run_loop::Interrupter;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::context::{Context, runtime};
use super::failure::Failure;
use super::notes;
use super::tickets::belong;
use super::worktrees;
use super::{background, baseline};
use crate::command_line::sage;
use crate::display::{self, Display, Mode, Options, Style, Voice};

/// How a run is shown.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Show {
    /// One JSON object a line; the last is the summary
    #[arg(long)]
    pub json: bool,
    /// Only the summary
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
    /// There is no terminal whose end would matter.
    #[arg(skip)]
    pub unattended: bool,
}

impl Show {
    fn mode(&self) -> Mode {
        Mode::choose(
            self.json,
            self.quiet,
            std::io::stderr().is_terminal() && std::io::stdout().is_terminal(),
        )
    }
}

pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stderr().is_terminal()
}

/// As wide as the terminal, if there is one.
pub fn style() -> Style {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => Style { color: color(), width: usize::from(size.ws_col) },
        _ => Style::PLAIN,
    }
}

/// Runs to the end or a pause and says how it went.
pub fn drive(engine: &Engine, owned: Owned, show: &Show, no_wait: bool) -> Result<ExitCode, Failure> {
    finish(engine, &to_end(engine, owned, show, no_wait)?, show)
}

/// Runs to the end or a pause.
pub fn to_end(engine: &Engine, owned: Owned, show: &Show, no_wait: bool) -> Result<Run, Failure> {
    let runtime = runtime().map_err(|failure| {
        let resume = sage("resume").arg(&owned.run_loop.run().feature);
        failure.hint(resume.comment("when there are threads again"))
    })?;
    notes::print(&notes::of_notices(&owned.notices));
    let forked = owned.run_loop.run().forked_from().is_some();
    // A ticket belongs to the run that was started for it.
    if !forked {
        belong::began(engine, &owned.run_loop.run().inputs, &owned.run_loop.run().id);
    }
    baseline::begin(engine, owned.run_loop.run());
    if let Some(warning) = engine.limits.warning() {
        eprintln!("note: {warning}");
    }
    // A new run is shown from its first event on, a resumed one from this owner's.
    let new = owned.run_loop.run().tally.opened <= 1 && !forked;
    if new {
        notes::print(&worktrees::uncommitted(&engine.project, owned.run_loop.run()));
    }
    let from_seq = if new { 0 } else { owned.head.seq.saturating_sub(1) };
    let options =
        Options { from_seq, color: color(), width: None, until_closed: false, no_wait, activity: None };
    let shown = Display::start(engine.vfs.clone(), owned.run_dir.clone(), show.mode(), options);
    let voice = shown.voice();
    let mut owned = owned;
    let say = voice.clone();
    owned.run_loop.tell_with(Arc::new(move |line| say.say(line)));
    let delivering = engine.wakes.clone().map(|inbox| Background::start(inbox, Arc::new(Recorded)));
    let result = runtime.block_on(async {
        let watcher = tokio::spawn(watch_interrupts(owned.run_loop.interrupter(), voice, show.unattended));
        let result = owned.drive().await;
        engine.executor.close().await;
        watcher.abort();
        result
    });
    shown.finish();
    if let Ok(run) = &result {
        baseline::leave(engine, run);
    }
    for note in engine.executor.take_notes() {
        eprintln!("note: {}", printable(&note));
    }
    if let Some((_, Some(problem))) = delivering.map(Background::finish) {
        eprintln!("note: wakes wait in the inbox: {problem}");
    }
    // A program that ignores its deadline must not keep the process: evaluations are abandoned.
    runtime.shutdown_background();
    Ok(result?)
}

/// Shows a run that another process owns, until it stands still or nobody is left who would go on with it.
pub fn follow(context: &Context, engine: &Engine, feature: &str, display: Display) {
    while !display.ended() && background::goes_on(context, engine, feature) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    display.finish();
}

/// The last lines and the exit code.
pub fn finish(engine: &Engine, run: &Run, show: &Show) -> Result<ExitCode, Failure> {
    belong::ended(engine, run);
    super::skills::count::count(engine, run);
    let blobs = engine.blobs(&run.id);
    if show.json {
        crate::say::painted(format_args!(
            "{}\n",
            display::summary_json(run, &|output| value(output, &blobs)).trim_end()
        ));
    } else {
        crate::say::painted(display::summary(run, style()));
    }
    worktrees::tell(&engine.project, &run.id, engine.key.as_ref());
    super::history::record(engine);
    Ok(ExitCode::from(exit_code(run)))
}

pub fn value(output: &Output, blobs: &Arc<Blobs>) -> Value {
    value_of(output, Face::Filtered, blobs)
        .unwrap_or_else(|error| serde_json::json!({"error": error.to_string()}))
}

pub fn exit_code(run: &Run) -> u8 {
    match run.status {
        Status::Finished(verdict) => verdict.exit_code(),
        Status::Cancelled { .. } | Status::Paused { reason: PauseReason::Interrupted, .. } => 130,
        Status::Paused { .. } => 4,
        Status::Running => 1,
    }
}

/// Once: gracefully. Twice: now. Three times: whatever it takes (children die with us).
async fn watch_interrupts(interrupter: Interrupter, voice: Voice, unattended: bool) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    let mut times = 0;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv(), if !unattended => {}
        }
        times += 1;
        match times {
            1 => voice.say("stopping; what is finished is safe (again to stop at once)"),
            3 => std::process::exit(130),
            _ => {}
        }
        interrupter.interrupt();
    }
}
