//! Runs one program under a keeper to its end, whatever that end is.
//!
//! ```text
//! Running --stop, timeout, idle--> Stopping --grace over, stop now--> Ending --keeper gone--> Finished
//!    |        (SIGTERM)                              (lifeline cut)      ^
//!    +------------- the program ended by itself -------------------------+
//! ```
//! The one loop turns everything that can happen into an `Input`. Dropping it drops the lifeline, and with
//! it the tree.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use sage_core::port::{Progress, StepCx, Stop};
use sage_core::secret::{self, Redactor};
use sage_fence::private;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::Instant;

use super::capture::{Capture, Captured};
use super::keeper::is_passing;
use super::meter;
use super::report::Report;
use super::spawn::{Spawned, Spec, spawn};
use super::sweep::{Marker, Swept, sweep_marked};
use super::tree;

/// One read of a pipe; pipes hold 64 KiB.
const CHUNK_BYTES: usize = 64 * 1024;
/// A keeper needs milliseconds to kill a tree; after this it is killed itself and the tree is swept.
const KEEPER_PATIENCE: Duration = Duration::from_secs(15);
/// After the tree is gone only a stranger can still hold the pipes: what is in them is taken, no more.
const DRAIN_PATIENCE: Duration = Duration::from_secs(1);
/// While somebody thinks about a question of the program, its clocks stand still; looked at this often.
const QUESTION_TICK: Duration = Duration::from_secs(1);
/// A day without any deadline of ours: the loop has nothing to do then, and a wake-up is harmless.
const NO_DEADLINE: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug)]
pub struct Limits {
    pub grace: Duration,
    /// Kept of stdout for the result; stderr and the log files are limited by `output_cap`.
    pub keep_stdout: usize,
    pub output_cap: usize,
    /// The log of stdout has no limit: somebody needs all of it.
    pub whole_stdout: bool,
    /// What is taken out of everything that the program prints.
    pub redactor: Redactor,
    pub timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signaled(i32),
    /// Never started; `passing` when trying again can help.
    Refused {
        passing: bool,
        message: String,
    },
    TimedOut(String),
    Stopped,
    /// The keeper was killed, or processes are left that cannot be killed.
    Lost(String),
}

#[derive(Clone, Debug)]
pub struct Finished {
    pub end: End,
    pub stdout: Captured,
    pub stderr: Captured,
}

type Sink<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// Who sees every chunk of the output as it comes.
pub struct Sinks<'a> {
    pub stdout: Sink<'a>,
    pub stderr: Sink<'a>,
}

impl std::fmt::Debug for Sinks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").finish_non_exhaustive()
    }
}

pub async fn run(
    keeper: &Path,
    spec: &Spec,
    limits: &Limits,
    marker: &Marker,
    cx: &StepCx,
    sinks: Sinks<'_>,
) -> Finished {
    let inherited = cx.children_lock.iter().chain(&cx.proofs);
    match spawn(keeper, spec, inherited.map(Arc::as_ref)) {
        Ok(spawned) => {
            let pid = spawned.keeper.id().unwrap_or_default();
            let start_time = tree::start_time(pid).unwrap_or_default();
            (cx.progress)(Progress::Spawned { pid, start_time });
            let measuring = meter::measure(pid);
            let finished = Supervisor::new(spawned, pid, limits, cx).supervise(marker, sinks).await;
            cx.crowd.lost(measuring.finish());
            finished
        }
        Err(error) => Finished {
            end: End::Refused {
                passing: is_passing(&error),
                message: format!("`{}` could not be started: {error}", spec.program.display()),
            },
            stdout: Captured::default(),
            stderr: Captured::default(),
        },
    }
}

enum State {
    Running,
    /// Asked to end; killed at `cut_at`.
    Stopping {
        end: End,
        cut_at: Instant,
    },
    /// The keeper clears up; it must be gone at `sweep_at`.
    Ending {
        end: End,
        sweep_at: Instant,
    },
}

enum Input {
    Stdout,
    Stderr,
    Lifeline,
    Stop,
    Tick,
    KeeperGone(io::Result<ExitStatus>),
}

struct Stream {
    pipe: Option<Receiver>,
    redacted: secret::Stream,
    capture: Capture,
}

struct Supervisor<'a> {
    keeper: Child,
    keeper_pid: u32,
    lifeline: Option<UnixStream>,
    reported: Vec<u8>,
    stdout: Stream,
    stderr: Stream,
    state: State,
    limits: &'a Limits,
    cx: &'a StepCx,
    started: Instant,
    last_alive: Instant,
    /// Since when a question of the program is open.
    asking_since: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    fn new(spawned: Spawned, keeper_pid: u32, limits: &'a Limits, cx: &'a StepCx) -> Self {
        let stream = |pipe, name: &str, keep, log_bytes| Stream {
            pipe: Some(pipe),
            redacted: limits.redactor.stream(),
            capture: Capture::new(keep, private::create(&cx.scratch.join(name)).ok(), log_bytes),
        };
        let log_bytes = limits.output_cap as u64;
        let stdout_bytes = if limits.whole_stdout { u64::MAX } else { log_bytes };
        let now = Instant::now();
        Supervisor {
            keeper: spawned.keeper,
            keeper_pid,
            lifeline: Some(spawned.lifeline),
            reported: Vec::new(),
            stdout: stream(spawned.stdout, "stdout.log", limits.keep_stdout, stdout_bytes),
            stderr: stream(spawned.stderr, "stderr.log", limits.output_cap, log_bytes),
            state: State::Running,
            limits,
            cx,
            started: now,
            last_alive: now,
            asking_since: None,
        }
    }

    async fn supervise(mut self, marker: &Marker, mut sinks: Sinks<'_>) -> Finished {
        let status = loop {
            self.hold_clocks();
            let input = self.next_input().await;
            match input {
                Input::Stdout => self.read_stdout(sinks.stdout),
                Input::Stderr => self.read_stderr(sinks.stderr),
                Input::Lifeline => self.read_report(|lifeline, buffer| lifeline.try_read(buffer)),
                Input::Stop => self.obey_stop(),
                Input::Tick => self.check_deadlines(),
                Input::KeeperGone(status) => break status,
            }
        };
        // What the keeper said last may still be in the socket, where tokio has not noticed it yet.
        self.read_report(|lifeline, buffer| Ok(rustix::io::read(lifeline, buffer)?));
        let kept_its_word = status.is_ok_and(|status| status.success());
        let swept = if kept_its_word { Ok(Swept::default()) } else { self.sweep(marker).await };
        self.drain(&mut sinks).await;
        self.stdout.flush(sinks.stdout);
        self.stderr.flush(sinks.stderr);
        let end = self.end(kept_its_word, swept);
        Finished { end, stdout: self.stdout.capture.finish(), stderr: self.stderr.capture.finish() }
    }

    async fn next_input(&mut self) -> Input {
        let deadline = self.next_deadline();
        let stop_level = match self.state {
            State::Running => Stop::Graceful,
            State::Stopping { .. } | State::Ending { .. } => Stop::Now,
        };
        let lifeline = self.lifeline.as_ref();
        tokio::select! {
            () = readable(self.stdout.pipe.as_ref()) => Input::Stdout,
            () = readable(self.stderr.pipe.as_ref()) => Input::Stderr,
            () = lifeline_readable(lifeline) => Input::Lifeline,
            // Without a lifeline there is nothing left to stop.
            () = self.cx.stop.reached(stop_level), if lifeline.is_some() => Input::Stop,
            () = tokio::time::sleep_until(deadline) => Input::Tick,
            status = self.keeper.wait() => Input::KeeperGone(status),
        }
    }

    fn next_deadline(&self) -> Instant {
        let far = Instant::now() + NO_DEADLINE;
        match &self.state {
            State::Running if self.asking_since.is_some() => Instant::now() + QUESTION_TICK,
            State::Running => {
                let timeout = self.limits.timeout.and_then(|limit| self.started.checked_add(limit));
                let idle = self.limits.idle_timeout.and_then(|limit| self.last_alive.checked_add(limit));
                far.min(timeout.unwrap_or(far)).min(idle.unwrap_or(far))
            }
            State::Stopping { cut_at, .. } => *cut_at,
            State::Ending { sweep_at, .. } => *sweep_at,
        }
    }

    fn read_stdout(&mut self, sink: Sink<'_>) {
        if self.stdout.read(sink) {
            self.alive();
        }
    }

    fn read_stderr(&mut self, sink: Sink<'_>) {
        if self.stderr.read(sink) {
            self.alive();
        }
    }

    fn alive(&mut self) {
        self.last_alive = Instant::now();
        (self.cx.progress)(Progress::Alive);
    }

    /// Takes in what the keeper says. Its end of file alone means nothing: its death says more.
    fn read_report(&mut self, read: impl Fn(&UnixStream, &mut [u8]) -> io::Result<usize>) {
        let Some(lifeline) = &self.lifeline else { return };
        let mut buffer = [0u8; 512];
        loop {
            match read(lifeline, &mut buffer) {
                Ok(0) => break,
                Ok(count) => self.reported.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.take_report(),
                Err(_) => break,
            }
        }
        self.take_report();
        // The keeper will never speak again, and nothing of it needs a lifeline any more.
        self.lifeline = None;
    }

    fn take_report(&mut self) {
        let Some(end) = self.reported.iter().position(|byte| *byte == b'\n') else {
            return;
        };
        let line: Vec<u8> = self.reported.drain(..=end).collect();
        let Some(report) = Report::parse(String::from_utf8_lossy(&line[..end]).as_ref()) else {
            return;
        };
        let end = match &self.state {
            State::Running => match report {
                Report::Exited(code) => End::Exited(code),
                Report::Signaled(signal) => End::Signaled(signal),
                Report::Refused { passing, message } => End::Refused { passing, message },
            },
            // It ended because it was told to; what it says about itself then is not trusted.
            State::Stopping { end, .. } => end.clone(),
            State::Ending { .. } => return,
        };
        self.state = ending(end);
    }

    fn obey_stop(&mut self) {
        match (self.cx.stop.get(), &self.state) {
            (Stop::Now, State::Running) => self.cut(End::Stopped),
            (Stop::Now, State::Stopping { end, .. } | State::Ending { end, .. }) => self.cut(end.clone()),
            (Stop::Graceful, State::Running) => self.terminate(End::Stopped),
            _ => {}
        }
    }

    /// Time in which a person thinks is not the program's.
    fn hold_clocks(&mut self) {
        let now = Instant::now();
        match (self.asking_since, self.cx.questions.open()) {
            (None, 1..) => self.asking_since = Some(now),
            (Some(since), 0) => {
                self.started += now - since;
                self.last_alive = now;
                self.asking_since = None;
            }
            _ => {}
        }
    }

    fn check_deadlines(&mut self) {
        let now = Instant::now();
        match &self.state {
            State::Running if self.asking_since.is_some() => {}
            State::Running => {
                if let Some(limit) = self.limits.timeout.filter(|limit| now - self.started >= *limit) {
                    let limit = humantime::format_duration(limit);
                    self.terminate(End::TimedOut(format!("timed out after {limit}")));
                } else if let Some(limit) =
                    self.limits.idle_timeout.filter(|limit| now - self.last_alive >= *limit)
                {
                    let limit = humantime::format_duration(limit);
                    self.terminate(End::TimedOut(format!("idle: no progress for {limit}")));
                }
            }
            State::Stopping { end, cut_at } if now >= *cut_at => self.cut(end.clone()),
            State::Ending { end, sweep_at } if now >= *sweep_at => {
                let end = end.clone();
                self.signal_keeper(Signal::KILL);
                self.state = ending(end);
            }
            State::Stopping { .. } | State::Ending { .. } => {}
        }
    }

    fn terminate(&mut self, end: End) {
        self.signal_keeper(Signal::TERM);
        self.state = State::Stopping { end, cut_at: Instant::now() + self.limits.grace };
    }

    /// Cutting the lifeline is the SIGKILL of the whole tree. A keeper that was stopped must hear it, too.
    fn cut(&mut self, end: End) {
        self.lifeline = None;
        self.signal_keeper(Signal::CONT);
        self.state = ending(end);
    }

    /// Safe from recycled pids: tokio has the id only until the process is reaped.
    fn signal_keeper(&self, signal: Signal) {
        if let Some(pid) = self.keeper.id().and_then(tree::raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    async fn sweep(&self, marker: &Marker) -> Result<Swept, tokio::task::JoinError> {
        let (marker, session) = (marker.clone(), self.keeper_pid);
        tokio::task::spawn_blocking(move || sweep_marked(&marker, Some(session))).await
    }

    async fn drain(&mut self, sinks: &mut Sinks<'_>) {
        let both = async {
            while self.stdout.pipe.is_some() {
                readable(self.stdout.pipe.as_ref()).await;
                self.read_stdout(sinks.stdout);
            }
            while self.stderr.pipe.is_some() {
                readable(self.stderr.pipe.as_ref()).await;
                self.read_stderr(sinks.stderr);
            }
        };
        let _ = tokio::time::timeout(DRAIN_PATIENCE, both).await;
    }

    fn end(&self, kept_its_word: bool, swept: Result<Swept, tokio::task::JoinError>) -> End {
        let left = swept.map(|swept| swept.left).unwrap_or_default();
        if !left.is_empty() {
            return End::Lost(format!("processes {left:?} cannot be killed"));
        }
        match &self.state {
            State::Ending { end, .. } | State::Stopping { end, .. } => end.clone(),
            State::Running if kept_its_word => End::Lost("ended without a report of its keeper".into()),
            State::Running => {
                End::Lost("its keeper was killed; the processes that could be found were ended".into())
            }
        }
    }
}

impl Stream {
    /// One chunk, if there is one; `true` if something came.
    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut buffer = [0u8; CHUNK_BYTES];
        match pipe.try_read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let known = self.redacted.push(&buffer[..count]);
                self.capture.push(&known);
                sink(&known);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// What was held back because more could have come.
    fn flush(&mut self, sink: &mut dyn FnMut(&[u8])) {
        let rest = self.redacted.finish();
        if !rest.is_empty() {
            self.capture.push(&rest);
            sink(&rest);
        }
    }
}

fn ending(end: End) -> State {
    State::Ending { end, sweep_at: Instant::now() + KEEPER_PATIENCE }
}

/// Errors count as readable: the read that follows meets them.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

async fn lifeline_readable(lifeline: Option<&UnixStream>) {
    match lifeline {
        Some(lifeline) => drop(lifeline.readable().await),
        None => std::future::pending().await,
    }
}
