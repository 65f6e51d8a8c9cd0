//! The process that runs code, seen from inside: `sage __script`.
//!
//! ```text
//! stdin --reader thread--> inbox --> prepare (types off, imports) --> limits --> step loop --> stdout
//!   | end of file: exit                         watchdog thread: exit when the CPU time is used up
//! ```
//! Two threads beside the code see to it that the process ends also while a native function computes, which the engine
//! cannot interrupt.

mod bridge;
mod limit;
mod loading;
mod steps;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

use super::answer::FailureKind;
use super::wire::{FromWorker, Start, ToWorker};

/// How the process says that the CPU time was used up.
pub const CPU_EXIT: u8 = 97;

/// Entry of the process.
pub fn worker(stdin: impl Read + Send + 'static, stdout: impl Write + 'static) -> ExitCode {
    let inbox = match listen(stdin) {
        Ok(inbox) => inbox,
        Err(error) => {
            eprintln!("cannot start a thread: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut link = Link { inbox, stdout: Box::new(stdout) };
    let Ok(ToWorker::Start(start)) = link.inbox.recv() else {
        eprintln!("started by sage itself, not by people");
        return ExitCode::from(2);
    };
    limit::outside(&start.limits);
    let last = match limit::watch(start.limits.cpu_ms) {
        Ok(()) => run(start, &mut link).unwrap_or_else(|broken| broken),
        Err(error) => failed(FailureKind::Broken, format!("cannot start a thread: {error}")),
    };
    link.say(&last);
    ExitCode::SUCCESS
}

fn run(start: Start, link: &mut Link) -> Result<FromWorker, FromWorker> {
    let loaded = loading::load(&start, link)?;
    // From here on the code is in control: no more threads.
    limit::processes();
    steps::run(start, loaded, link)
}

/// The way to the owner.
struct Link {
    inbox: Receiver<ToWorker>,
    stdout: Box<dyn Write>,
}

impl Link {
    /// An owner that does not listen is gone, and so are we in a moment.
    fn say(&mut self, message: &FromWorker) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            let _ = self.stdout.write_all(&line).and_then(|()| self.stdout.flush());
        }
    }

    fn hear(&self) -> Result<ToWorker, FromWorker> {
        self.inbox.recv().map_err(|_| failed(FailureKind::Broken, "the owner is gone"))
    }
}

fn failed(kind: FailureKind, message: impl Into<String>) -> FromWorker {
    FromWorker::Failed { kind, message: message.into() }
}

/// Lines become messages; the end of the input is the end of the process.
fn listen(stdin: impl Read + Send + 'static) -> std::io::Result<Receiver<ToWorker>> {
    let (sender, inbox) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut lines = BufReader::with_capacity(64 << 10, stdin);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            match serde_json::from_slice(&line) {
                Ok(message) => drop(sender.send(message)),
                Err(_) => break,
            }
            line.clear();
        }
        std::process::exit(0);
    })?;
    Ok(inbox)
}
