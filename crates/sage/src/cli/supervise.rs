//! `sage supervise`, which nobody types: the process that looks after the runs in the background of a project.
//!
//! It is started when it is needed, ends by itself when nothing is left to watch, and may be killed at any time:
//! owners go on without it, and the next command starts another one. SIGTERM stops it together with its runs.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sage_engine::background::{Look, Supervisor, Told};
use sage_engine::lock::LockError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::background;
use super::context::Context;
use super::failure::Failure;
use super::log_file;

/// How often it looks. A look at nothing new is a handful of system calls.
const TICK: Duration = Duration::from_millis(200);
/// Owners stop their steps gently within this; then they are told again.
const GRACE: Duration = Duration::from_secs(15);
const STOPPED: Duration = Duration::from_secs(30);

pub fn execute(context: &Context) -> Result<ExitCode, Failure> {
    background::leave_terminal()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise(context))
}

async fn supervise(context: &Context) -> Result<ExitCode, Failure> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
    let [Ok(terminate), Ok(interrupt)] = kinds.map(signal) else {
        return Err(Failure::failed("cannot listen to signals"));
    };
    let (mut log, engine) = (Log::new(context), context.engine());
    let context = context.clone();
    let starts = Box::new(move |record: &_| background::owner(&context, record));
    let locked = |error: LockError| Failure::failed(format!("cannot supervise: {error}"));
    let Some(mut supervisor) = Supervisor::take(engine, starts).map_err(locked)? else {
        return Ok(ExitCode::SUCCESS);
    };
    log.say(format_args!("process {} watches", std::process::id()));
    let mut ends = Ends { terminate, interrupt };
    loop {
        if supervisor.is_homeless() {
            return Ok(ExitCode::SUCCESS);
        }
        supervisor.look().iter().for_each(|told| log.tell(told));
        if supervisor.may_end().map_err(locked)? {
            log.say("nothing left to watch");
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = ends.asked() => {
                stop(&mut supervisor, &mut ends, &mut log).await;
                return Ok(ExitCode::from(130));
            }
        }
    }
}

struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// All owners pause their runs; asked again, or when they are slow, at once.
async fn stop(supervisor: &mut Supervisor, ends: &mut Ends, log: &mut Log) {
    let begun = Instant::now();
    let owners = supervisor.stop();
    log.say(format_args!("stopped by a person; owners to end: {}", owners.len()));
    let mut urged = false;
    while !supervisor.owners().is_empty() && begun.elapsed() < STOPPED {
        let again = tokio::select! {
            () = tokio::time::sleep(TICK) => !urged && begun.elapsed() > GRACE,
            () = ends.asked() => true,
        };
        if again {
            urged = true;
            supervisor.stop();
        }
    }
    let left: Vec<u32> = supervisor.owners().iter().map(|owner| owner.pid).collect();
    log.say(if left.is_empty() { "ended".into() } else { format!("ended; still there: {left:?}") });
}

struct Log {
    path: std::path::PathBuf,
}

impl Log {
    fn new(context: &Context) -> Log {
        Log { path: log_file::path(&context.project, "supervisor") }
    }

    /// A log that cannot be written is no reason to leave the runs alone.
    fn say(&mut self, text: impl std::fmt::Display) {
        let now = sage_core::wire::rfc3339(sage_engine::clock::Clock::System.now_ms());
        // A project that was removed must not come back for a line of its log.
        if !self.path.exists() {
            return;
        }
        let _ = log_file::open(&self.path).and_then(|mut file| writeln!(file, "{now} {text}"));
    }

    fn tell(&mut self, told: &Told) {
        match told {
            Told::Started { feature, pid } => self.say(format_args!("{feature}: started process {pid}")),
            Told::Ended { feature, pid, how } => {
                self.say(format_args!("{feature}: process {pid} ended: {how}"));
            }
            Told::Looked { feature, look } => match look {
                Look::Waits => self.say(format_args!("{feature}: waits for a person")),
                Look::Gone(why) => self.say(format_args!("{feature}: done ({why})")),
                Look::GaveUp(why) => self.say(format_args!("{feature}: {why}")),
                Look::Owned(_) | Look::Start(_) | Look::Later(_) | Look::Over => {}
            },
            Told::Failed { feature, why } => self.say(format_args!("{feature}: cannot look after it: {why}")),
        }
    }
}
