//! An evaluating process, seen from outside.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use super::EVALUATE_ARG;
use super::worker::LACKING_EXIT;
use crate::process::hold_spawns;

const STDERR_BYTES: u64 = 4 << 10;

/// Why there is no value.
#[derive(Debug)]
pub enum Ended {
    /// The expression has none, with the reason.
    Failed(String),
    /// The process was gone before it took the expression.
    Gone,
    Time,
    Memory,
    /// The machine has no process for it.
    Lacking(String),
    Other(String),
}

/// Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(program: &Path) -> io::Result<Process> {
        let mut command = Command::new(program);
        command.arg(EVALUATE_ARG).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let held = hold_spawns();
        let spawned = command.spawn();
        drop(held);
        let mut child = spawned?;
        let lost = || io::Error::other("the process has no pipes");
        let stdin = child.stdin.take().ok_or_else(lost)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(lost)?);
        Ok(Process { child, stdin, stdout })
    }

    /// Evaluates one expression. After an outer error the process is of no use.
    pub fn ask(&mut self, line: &[u8]) -> Result<Result<Value, String>, Ended> {
        if self.stdin.write_all(line).and_then(|()| self.stdin.flush()).is_err() {
            return Err(self.ended(Ended::Gone));
        }
        let mut answer = Vec::new();
        match self.stdout.read_until(b'\n', &mut answer) {
            Ok(_) if answer.ends_with(b"\n") => {
                serde_json::from_slice(&answer).map_err(|error| Ended::Other(error.to_string()))
            }
            _ => Err(self.ended(Ended::Gone)),
        }
    }

    /// Why it ended; `otherwise` if it exited by itself.
    fn ended(&mut self, otherwise: Ended) -> Ended {
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(STDERR_BYTES).read_to_end(&mut words);
        }
        match self.child.wait() {
            Ok(status) if status.success() => otherwise,
            Ok(status) => how(status, String::from_utf8_lossy(&words).trim()),
            Err(error) => Ended::Other(error.to_string()),
        }
    }
}

fn how(status: ExitStatus, words: &str) -> Ended {
    const KILL: i32 = 9;
    const XCPU: i32 = 24;
    const ABORT: i32 = 6;
    match status.signal() {
        Some(XCPU | KILL) => Ended::Time,
        Some(ABORT) if words.contains("memory allocation") => Ended::Memory,
        None if status.code() == Some(i32::from(LACKING_EXIT)) => Ended::Lacking(words.into()),
        _ if words.is_empty() => Ended::Other(status.to_string()),
        _ => Ended::Other(format!("{status}: {words}")),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
