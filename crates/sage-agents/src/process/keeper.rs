//! The keeper: a tiny process between the owner and one program, so that no process tree gets away.
//!
//! It is this very binary, started as `sage __keep <stdin-file or -> -- program args...` with the lifeline
//! as its standard input. As subreaper it inherits every orphan of the tree, daemons included:
//! ```text
//! program ended   -> report how, kill what is left, reap until nobody is left, go
//! lifeline closed -> kill everything until nobody is left, go     (the owner died or has lost patience)
//! SIGTERM         -> pass it on to the tree, keep waiting
//! SIGINT, SIGHUP  -> nothing: a Ctrl-C is the engine's business
//! ```
//! One thread; tokio only because it has the one safe way to handle signals.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sage_core::policy::SystemError;
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::report::Report;
use super::{mark, tree};
use crate::agent::{on_path, search_path};

/// First argument that makes the binary a keeper.
pub const KEEPER_ARG: &str = "__keep";

/// Between two waves of SIGKILL: long enough for the dying to die, short enough to outrun forks.
const WAVE_MIN: Duration = Duration::from_millis(1);
/// What survives many waves is unkillable (another user's, or stuck in the kernel): don't burn the CPU.
const WAVE_MAX: Duration = Duration::from_millis(500);

/// Entry of the keeper process; `args` are those after `__keep`.
pub fn keeper_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let result = Order::parse(args).and_then(|order| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(keep(&order))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("keeper: {error}");
            ExitCode::from(2)
        }
    }
}

struct Order {
    /// What the program reads; `-` is nothing.
    stdin: OsString,
    program: OsString,
    args: Vec<OsString>,
}

impl Order {
    fn parse(mut args: impl Iterator<Item = OsString>) -> io::Result<Order> {
        let usage = || io::Error::other("started by sage itself, not by people");
        let stdin = args.next().ok_or_else(usage)?;
        if args.next().is_none_or(|arg| arg != "--") {
            return Err(usage());
        }
        Ok(Order { stdin, program: args.next().ok_or_else(usage)?, args: args.collect() })
    }
}

async fn keep(order: &Order) -> io::Result<()> {
    let lifeline = lifeline()?;
    mark::set();
    detach();
    let mut events = Events::register()?;
    let program = match start(order) {
        Ok(program) => program,
        Err(report) => {
            tell(&lifeline, &report);
            return Ok(());
        }
    };
    release_stdio()?;
    if let Some(report) = watch(&lifeline, &mut events, program).await {
        tell(&lifeline, &report);
    }
    kill_tree(program);
    Ok(())
}

/// The lifeline is standard input: the one descriptor that needs neither a number nor an inheritance flag.
fn lifeline() -> io::Result<UnixStream> {
    let fd: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    if kind != rustix::fs::FileType::Socket {
        return Err(io::Error::other("started by sage itself, not by people"));
    }
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Leaves the terminal's session (no Ctrl-C, no password prompts that nobody sees) and adopts orphans.
///
/// The owner starts the keeper as leader of its own group, and a leader cannot start a session: it first
/// steps into its parent's group. Each of these can fail without harm, the owner's sweep is behind them.
fn detach() {
    if let Some(group) = rustix::process::getppid().and_then(|ppid| rustix::process::getpgid(Some(ppid)).ok())
    {
        let _ = rustix::process::setpgid(None, Some(group));
        if rustix::process::setsid().is_err() {
            let _ = rustix::process::setpgid(None, None);
        }
    }
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        // `killall -9 sage` shall not take the keepers along.
        let _ = rustix::thread::set_name(c"keeper");
    }
}

struct Events {
    child: Signals,
    term: Signals,
    // Registered only so that they no longer kill.
    _ignored: [Signals; 2],
}

impl Events {
    fn register() -> io::Result<Events> {
        Ok(Events {
            child: signal(SignalKind::child())?,
            term: signal(SignalKind::terminate())?,
            _ignored: [signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?],
        })
    }
}

fn start(order: &Order) -> Result<Pid, Report> {
    let refused = |what: String, error: &io::Error| Report::Refused {
        passing: is_passing(error),
        message: format!("{what}: {error}"),
    };
    let stdin = match order.stdin.to_str() {
        Some("-") => Stdio::null(),
        _ => match File::open(&order.stdin) {
            Ok(file) => Stdio::from(file),
            Err(error) => {
                return Err(refused(format!("cannot read `{}`", order.stdin.display()), &error));
            }
        },
    };
    // Not from a relative folder of `PATH`: the working directory is the project.
    let is_bare = !order.program.as_bytes().contains(&b'/');
    let found = is_bare.then(|| on_path(&order.program, &search_path())).flatten();
    let mut command = Command::new(found.as_deref().map_or(order.program.as_os_str(), Path::as_os_str));
    if is_bare && found.is_none() {
        command.env("PATH", search_path());
    }
    command.arg0(&order.program).args(&order.args).stdin(stdin).process_group(0);
    let child = command.spawn().map_err(|error| {
        let program = order.program.display();
        let message = match error.kind() {
            io::ErrorKind::PermissionDenied if exists(&order.program) => {
                format!("program `{program}` is not executable")
            }
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                format!("program `{program}` was not found")
            }
            _ => return refused(format!("program `{program}` did not start"), &error),
        };
        Report::Refused { passing: false, message }
    })?;
    tree::raw(child.id()).ok_or_else(|| refused("no pid".into(), &io::Error::other("the child has none")))
}

/// "Permission denied" can also mean that a folder in `PATH` must not be read and nobody has the program.
fn exists(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Lack of something that others may give back.
pub fn is_passing(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    let busy = errno == Some(rustix::io::Errno::TXTBSY.raw_os_error());
    busy || errno.and_then(SystemError::of).is_some()
}

/// The pipes belong to the program alone: their end must come when the tree is done.
fn release_stdio() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Returns how the program ended, or `None` when the lifeline is closed.
async fn watch(lifeline: &UnixStream, events: &mut Events, program: Pid) -> Option<Report> {
    enum Event {
        Child,
        Term,
        Closed,
    }
    loop {
        let event = tokio::select! {
            _ = events.child.recv() => Event::Child,
            _ = events.term.recv() => Event::Term,
            () = closed(lifeline) => Event::Closed,
        };
        match event {
            Event::Child => {
                let (ended, _) = reap(Some(program));
                if let Some(status) = ended {
                    return Some(report(status));
                }
            }
            Event::Term => terminate_tree(program),
            Event::Closed => return None,
        }
    }
}

/// Resolves when the other end is gone. Nobody writes to a keeper; what comes nevertheless is dropped.
async fn closed(lifeline: &UnixStream) {
    loop {
        if lifeline.readable().await.is_err() {
            return;
        }
        match lifeline.try_read(&mut [0u8; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, Some(signal)) => Report::Signaled(signal),
        (None, None) => Report::Signaled(0),
    }
}

/// Collects every dead child: the status of `program` if it is among them, and whether any child is left.
fn reap(program: Option<Pid>) -> (Option<WaitStatus>, bool) {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == program => ended = Some(status),
            Ok(Some(_)) => {}
            Ok(None) => return (ended, true),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return (ended, false),
        }
    }
}

/// SIGTERM for everybody, once each, and SIGCONT so that stopped ones hear it.
fn terminate_tree(program: Pid) {
    let _ = rustix::process::kill_process_group(program, Signal::TERM);
    let _ = rustix::process::kill_process_group(program, Signal::CONT);
    let group = program.as_raw_nonzero().get() as u32;
    for process in tree::descendants(&tree::all(), std::process::id()) {
        if process.group != group {
            let _ = process.signal(Signal::TERM);
            let _ = process.signal(Signal::CONT);
        }
    }
}

/// Waves of SIGKILL until no child is left; most programs leave none, and then nothing is searched.
fn kill_tree(program: Pid) {
    if cfg!(not(target_os = "linux")) {
        // Without subreaper and `/proc` the group is all that can be reached.
        let _ = rustix::process::kill_process_group(program, Signal::KILL);
    }
    let mut pause = WAVE_MIN;
    while reap(None).1 {
        kill_wave();
        std::thread::sleep(pause);
        pause = (pause * 2).min(WAVE_MAX);
    }
}

/// Whole groups first: a group signal cannot be outrun by forks.
fn kill_wave() {
    let me = std::process::id();
    let own_group = rustix::process::getpgrp().as_raw_nonzero().get() as u32;
    let victims = tree::descendants(&tree::all(), me);
    let mut groups: Vec<u32> = victims.iter().map(|process| process.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups.into_iter().filter(|group| *group != own_group).filter_map(tree::raw) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    for process in victims.iter().filter(|process| !process.zombie) {
        let _ = process.signal(Signal::KILL);
    }
}

/// Not through tokio, which would have to wait first. A dead owner does not listen, and that is fine.
fn tell(lifeline: &UnixStream, report: &Report) {
    let _ = rustix::io::write(lifeline, report.line().as_bytes());
}
