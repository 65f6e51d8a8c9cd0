//! The process that runs code, seen from outside: start, lines both ways, its end.
//!
//! Its standard input is its lifeline: when the owner dies, the process sees the end of it and goes. Dropping a
//! `Process` kills it. It cannot start others, so nobody else has to be found.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::SCRIPT_ARG;
use super::limits::MAX_MESSAGE_BYTES;
use super::wire::{FromWorker, ToWorker};
use super::worker::CPU_EXIT;

/// A process that has closed its output is gone within milliseconds.
const END_PATIENCE: Duration = Duration::from_millis(500);
const STDERR_BYTES: u64 = 4 * 1024;

#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Cpu,
    Memory,
    Other(String),
}

impl Process {
    pub fn start(program: &Path) -> io::Result<Process> {
        let mut command = Command::new(program);
        command
            .arg(SCRIPT_ARG)
            .env_clear()
            // Local time is the machine's affair.
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is the owner's business.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let lost = || io::Error::other("the process has no pipes");
        let stdin = child.stdin.take().ok_or_else(lost)?;
        let stdout = BufReader::with_capacity(64 << 10, child.stdout.take().ok_or_else(lost)?);
        Ok(Process { child, stdin, stdout, line: Vec::new() })
    }

    pub async fn say(&mut self, message: &ToWorker) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stdin.write_all(&line).await
    }

    /// The next message; `None` when the process says no more. Nothing is lost if it is dropped in between.
    pub async fn hear(&mut self) -> io::Result<Option<FromWorker>> {
        loop {
            let chunk = self.stdout.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            self.line.extend_from_slice(&chunk[..taken]);
            self.stdout.consume(taken);
            if self.line.len() > MAX_MESSAGE_BYTES + 1_024 {
                return Err(io::Error::other(format!(
                    "a message of more than {} MiB",
                    MAX_MESSAGE_BYTES >> 20
                )));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
        }
    }

    /// Kills it and sees that it is gone.
    pub async fn kill(mut self) {
        let _ = self.child.start_kill();
        let _ = tokio::time::timeout(END_PATIENCE, self.child.wait()).await;
    }

    /// Why it has said no more.
    pub async fn obituary(mut self) -> End {
        drop(self.stdin);
        let ended = tokio::time::timeout(END_PATIENCE, self.child.wait()).await;
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let mut read = stderr.take(STDERR_BYTES);
            let _ = tokio::time::timeout(END_PATIENCE, read.read_to_end(&mut words)).await;
        }
        let words = String::from_utf8_lossy(&words).trim().to_string();
        match ended {
            Ok(Ok(status)) => how(status, &words),
            _ => End::Other("it closed its output and did not end".into()),
        }
    }
}

fn how(status: ExitStatus, words: &str) -> End {
    const XCPU: i32 = 24;
    const ABORT: i32 = 6;
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(CPU_EXIT) => End::Cpu,
        (_, Some(XCPU)) => End::Cpu,
        (_, Some(ABORT)) if words.contains("memory allocation") => End::Memory,
        _ if words.is_empty() => End::Other(status.to_string()),
        _ => End::Other(format!("{status}: {words}")),
    }
}
