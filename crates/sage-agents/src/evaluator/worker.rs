//! `sage __evaluate`: reads expressions, one a line, and answers with their values. Nothing else.

use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use sage_core::expr::Order;
use serde_json::Value;

use super::{CPU_S, MEMORY_BYTES, WALL_S};

/// A process that holds more than this afterwards exits: the next one starts small.
const KEPT_BYTES: u64 = 128 << 20;

/// How the process says that it got no threads.
pub const LACKING_EXIT: u8 = 75;

/// Entry of the process. Its input is its lifeline: it exits at its end, also in the middle of an expression.
pub fn worker_main() -> ExitCode {
    limit_memory();
    // One at a time: the owner waits for an answer before it asks again.
    let (sender, lines) = mpsc::sync_channel::<Vec<u8>>(1);
    let reading = std::thread::Builder::new().spawn(move || read(&sender));
    let watch = match reading.and_then(|_| Watch::start()) {
        Ok(watch) => watch,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(LACKING_EXIT);
        }
    };
    for line in lines {
        limit_cpu();
        watch.begin();
        let answer = answer(&line);
        watch.end();
        let mut out = io::stdout().lock();
        let written = serde_json::to_writer(&mut out, &answer).map_err(io::Error::from);
        if written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_err() {
            return ExitCode::FAILURE;
        }
        if memory("VmRSS:").is_some_and(|bytes| bytes > KEPT_BYTES) {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Lines of the owner; the end of the input is the end of the process.
fn read(lines: &mpsc::SyncSender<Vec<u8>>) {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") && lines.send(line).is_ok() => {}
            _ => std::process::exit(0),
        }
    }
}

/// Ends the process if an expression neither ends nor uses CPU time, as after a failed allocation.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// Seconds that the present expression has taken; 0 while there is none.
    seconds: Arc<AtomicU64>,
}

impl Watch {
    fn start() -> io::Result<Watch> {
        let watch = Watch::default();
        let seconds = Arc::clone(&watch.seconds);
        std::thread::Builder::new().spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let passed =
                    seconds.fetch_update(Relaxed, Relaxed, |passed| (passed > 0).then_some(passed + 1));
                if passed.is_ok_and(|passed| passed > WALL_S) {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
                }
            }
        })?;
        Ok(watch)
    }

    fn begin(&self) {
        self.seconds.store(1, Relaxed);
    }

    fn end(&self) {
        self.seconds.store(0, Relaxed);
    }
}

fn answer(line: &[u8]) -> Result<Value, String> {
    let order: Order<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    order.evaluate().map_err(|error| error.to_string())
}

/// Beside what the program itself has mapped.
fn limit_memory() {
    if let Some(size) = memory("VmSize:") {
        set(Resource::As, size + MEMORY_BYTES);
    }
    set(Resource::Core, 0);
}

/// Counted from now: the signal that ends the process cannot be caught by an expression.
fn limit_cpu() {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    set(Resource::Cpu, u64::try_from(used.tv_sec).unwrap_or(0) + 1 + CPU_S);
}

/// Only the soft limit, so that it can be raised again.
fn set(resource: Resource, value: u64) {
    let maximum = getrlimit(resource).maximum;
    let _ = setrlimit(resource, Rlimit { current: Some(value), maximum });
}

/// A field of `/proc/self/status` in bytes; `None` where there is none.
fn memory(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}
