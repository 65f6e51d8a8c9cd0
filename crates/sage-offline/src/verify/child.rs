//! One command of the project as a child process: bounded in time and in what is kept of its output.
//!
//! It gets a process group of its own. At the end of its time, and also when it ended and left others behind,
//! the whole group is killed, so that nothing outlives the step and no pipe stays open.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

/// Enough to find all failures of a large run; of older output, only lines that may tell of tests or failures are kept.
const KEPT_BYTES: usize = 2 * 1024 * 1024;
/// Longer lines are not waited for.
const MAX_LINE: usize = 64 * 1024;
const TOLD_BYTES: usize = 4 * 1024 * 1024;
/// Words of lines that say how something ended, in small letters.
const TELLING: &[&str] = &[
    "fail",
    "error",
    "not ok",
    "pass",
    "tests",
    "test result",
    "not found",
    "==",
    "ran ",
    "ok (",
    "✖",
    "✔",
    "●",
    "example",
    "ignored",
    "# skipped",
    "# todo",
    "1..",
    "ok ",
    "skipped",
    "panicked",
];
/// How often is looked whether it has ended: no longer than a person notices.
const LOOK: Duration = Duration::from_millis(15);
/// What is still in the pipes after the group is dead is read within this time.
const DRAIN: Duration = Duration::from_secs(2);
/// Chunks on their way from the pipes; the readers wait when nobody takes them.
const CHUNKS: usize = 64;

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Nothing when a signal or the end of its time killed it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// What killed it, if that was not us.
    pub signal: Option<i32>,
    pub duration_ms: u64,
    /// Both streams as they came, without colours.
    pub output: String,
    /// Something in it that may matter was dropped.
    pub is_cut: bool,
}

/// The output as far as it is kept.
#[derive(Default)]
struct Kept {
    /// Lines of what was dropped.
    told: Vec<u8>,
    last: Vec<u8>,
    is_cut: bool,
}

/// Commands of one folder run one after the other, also those of other steps: they fight over the same files. The folder
/// is free again when the value is dropped, or its process dies. Nothing after `limit`.
pub fn alone_in(dir: &Path, limit: Duration) -> std::io::Result<Option<File>> {
    let (folder, end) = (File::open(dir)?, Instant::now() + limit);
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(folder)),
            Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(LOOK),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            // A file system without locks: nobody can be waited for.
            Err(_) => return Ok(Some(folder)),
        }
    }
}

/// Runs `command` with `sh` in `dir`, for at most `limit`.
pub fn run(command: &str, dir: &Path, limit: Duration) -> std::io::Result<Ended> {
    let started = Instant::now();
    // Bytecode is written there and goes with it: nothing is left beside the sources.
    let caches = std::env::temp_dir().join(format!("sage-check-{}", std::process::id()));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        // No watch modes, no colours, no caches beside the sources.
        .envs([
            ("CI", "1"),
            ("NO_COLOR", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("CARGO_TERM_COLOR", "never"),
        ])
        .env("PYTHONPYCACHEPREFIX", &caches)
        .env_remove("FORCE_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let chunks = readers(&mut child).inspect_err(|_| {
        end_group(&child);
        let _ = child.wait();
    })?;
    let mut output = Kept::default();
    let (status, timed_out) = wait(&mut child, &chunks, &mut output, started + limit)?;
    end_group(&child);
    let drained = Instant::now() + DRAIN;
    while let Ok(chunk) = chunks.recv_timeout(drained.saturating_duration_since(Instant::now())) {
        output.keep(&chunk);
    }
    let _ = std::fs::remove_dir_all(&caches);
    Ok(Ended {
        exit_code: status.and_then(|status| status.code()).filter(|_| !timed_out),
        signal: status.and_then(|status| status.signal()).filter(|_| !timed_out),
        timed_out,
        duration_ms: started.elapsed().as_millis() as u64,
        output: plain(&String::from_utf8_lossy(&[output.told, output.last].concat())),
        is_cut: output.is_cut,
    })
}

fn wait(
    child: &mut Child,
    chunks: &Receiver<Vec<u8>>,
    output: &mut Kept,
    end: Instant,
) -> std::io::Result<(Option<ExitStatus>, bool)> {
    loop {
        while let Ok(chunk) = chunks.recv_timeout(LOOK) {
            output.keep(&chunk);
            if Instant::now() >= end {
                break;
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok((Some(status), false));
        }
        if Instant::now() >= end {
            end_group(child);
            return Ok((child.wait().ok(), true));
        }
        // Both pipes closed and still running: `recv_timeout` no longer waits.
        std::thread::sleep(LOOK);
    }
}

/// One thread for each stream; they end with their pipe. Lines stay whole: the other stream does not cut a count in two.
fn readers(child: &mut Child) -> std::io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = sync_channel(CHUNKS);
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for mut stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::Builder::new().spawn(move || {
            let (mut buffer, mut begun) = ([0; 16 * 1024], Vec::new());
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                begun.extend_from_slice(&buffer[..count]);
                let ended = begun.iter().rposition(|byte| b"\n\r".contains(byte)).map(|at| at + 1);
                let whole = ended.unwrap_or(if begun.len() > MAX_LINE { begun.len() } else { 0 });
                if whole > 0 && sender.send(begun.drain(..whole).collect()).is_err() {
                    return;
                }
            }
            let _ = sender.send(begun);
        })?;
    }
    Ok(receiver)
}

fn end_group(child: &Child) {
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        // Fails when the group is empty, which is what we want.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Kept {
    fn keep(&mut self, chunk: &[u8]) {
        self.last.extend_from_slice(chunk);
        if self.last.len() > 2 * KEPT_BYTES {
            let excess = self.last.len() - KEPT_BYTES;
            let line = self.last[..excess].iter().rposition(|byte| b"\n\r".contains(byte));
            // A line without an end may be anything.
            self.is_cut |= line.is_none();
            let dropped: Vec<u8> = self.last.drain(..line.map_or(excess, |at| at + 1)).collect();
            self.condense(&String::from_utf8_lossy(&dropped));
        }
    }

    fn condense(&mut self, dropped: &str) {
        for line in dropped.split(['\n', '\r']) {
            let small = line.to_lowercase();
            if !TELLING.iter().any(|word| small.contains(word)) {
                continue;
            }
            if self.told.len() + line.len() > TOLD_BYTES {
                self.is_cut = true;
                return;
            }
            self.told.extend_from_slice(line.as_bytes());
            self.told.push(b'\n');
        }
    }
}

/// Without escape sequences; a line that was written over (progress bars) keeps its last state.
fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                while letters.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                letters.next();
            }
            '\u{1b}' => {}
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => clean.truncate(clean.rfind('\n').map_or(0, |at| at + 1)),
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(command: &str, limit_ms: u64) -> Ended {
        run(command, &std::env::temp_dir(), Duration::from_millis(limit_ms)).unwrap()
    }

    // covers: P4
    #[test]
    fn a_line_of_one_stream_is_not_cut_by_the_other() {
        let each = "printf 'test result: '; echo noise >&2; echo 'ok. 1 passed'";
        let ended = sh(&format!("n=0; while [ $n -lt 300 ]; do {each}; n=$((n + 1)); done"), 60_000);
        let whole = ended.output.lines().filter(|line| *line == "test result: ok. 1 passed").count();
        assert_eq!((whole, ended.output.lines().count()), (300, 600), "{}", ended.output);
    }

    // covers: P4
    #[test]
    fn exit_code_and_both_streams_are_kept() {
        let ended = sh("echo out; echo err >&2; exit 3", 10_000);
        assert_eq!((ended.exit_code, ended.timed_out), (Some(3), false));
        assert!(ended.output.contains("out") && ended.output.contains("err"), "{}", ended.output);
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let ended = sh("echo begun; sleep 60 & sleep 60", 300);
        assert_eq!((ended.exit_code, ended.timed_out), (None, true));
        assert!(ended.duration_ms < 10_000, "{}", ended.duration_ms);
        assert_eq!(ended.output, "begun\n");
    }

    #[test]
    fn what_is_left_behind_does_not_hold_the_step() {
        let ended = sh("sleep 60 & echo done", 30_000);
        assert_eq!(ended.exit_code, Some(0));
        assert!(ended.duration_ms < 10_000, "{}", ended.duration_ms);
    }

    #[test]
    fn colours_and_progress_are_taken_out() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\r\n 1%\r50%\rdone\n"), "red\ndone\n");
    }

    #[test]
    fn endless_output_is_bounded() {
        let ended = sh("yes | head -c 9000000; echo end", 60_000);
        assert!(ended.output.len() <= 2 * KEPT_BYTES + TOLD_BYTES, "{}", ended.output.len());
        assert!(ended.output.ends_with("end\n"));
        assert!(!ended.is_cut);
    }

    // covers: P4
    #[test]
    fn failures_at_the_start_of_a_long_output_are_kept() {
        let ended = sh("echo '--- FAIL: TestA (0.00s)'; yes | head -c 9000000; echo end", 60_000);
        assert!(ended.output.starts_with("--- FAIL: TestA (0.00s)\n"));
        assert!(!ended.is_cut);
        let ended = sh("yes 'it may fail' | head -c 15000000", 60_000);
        assert!(ended.is_cut, "more of it than is kept");
    }
}
