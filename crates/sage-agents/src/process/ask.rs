//! Programs outside of runs: a probe or a look-up that is asked one thing, and a program that a person watches.
//!
//! ```text
//! ask ===lifeline=== keeper ---> program        it has said what it says, or its time is over: the tree goes
//! ```
//! They run under a keeper as the programs of steps do. So they carry the mark and can answer nothing in a
//! person's stead, and nothing of them stays behind. All of it blocks.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::keeper::KEEPER_ARG;
use super::report::Report;
use super::spawn::{Spec, hold_spawns};

/// More of an answer is not kept.
const KEPT_BYTES: u64 = 4 << 20;
/// A keeper needs milliseconds to kill a tree.
const KEEPER_PATIENCE: Duration = Duration::from_secs(15);
/// A report is one short line.
const REPORT_BYTES: usize = 4 << 10;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The binary that can be a keeper.
static KEEPER: OnceLock<PathBuf> = OnceLock::new();

/// This binary can be a keeper. Without that, in tests of this library, programs are children like any other.
pub fn keep_with(keeper: PathBuf) {
    let _ = KEEPER.set(keeper);
}

/// What a program said.
#[derive(Clone, Debug)]
pub struct Said {
    pub end: Report,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Said {
    pub fn succeeded(&self) -> bool {
        self.end == Report::Exited(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Why a program said nothing.
#[derive(Debug, thiserror::Error)]
pub enum Silent {
    #[error("{0}")]
    NotStarted(io::Error),
    #[error("it did not answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl Silent {
    /// There is no such program.
    pub fn is_missing(&self) -> bool {
        matches!(self, Silent::NotStarted(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Lets a program speak for as long as `patience`; then nothing of it is left.
pub fn ask(spec: &Spec, patience: Duration) -> Result<Said, Silent> {
    ask_at_length(spec, patience, KEPT_BYTES)
}

/// The same, for those who may say much.
pub fn ask_at_length(spec: &Spec, patience: Duration, kept_bytes: u64) -> Result<Said, Silent> {
    let (stdout, stdout_end) = io::pipe().map_err(Silent::NotStarted)?;
    let (stderr, stderr_end) = io::pipe().map_err(Silent::NotStarted)?;
    let mut started = Started::new(spec, stdout_end.into(), stderr_end.into()).map_err(Silent::NotStarted)?;
    let (stdout, stderr) = (listen(stdout, kept_bytes), listen(stderr, KEPT_BYTES));
    let end = started.end_within(patience);
    started.end();
    // Whoever still holds the pipes cannot be killed; what it says is not waited for.
    let heard = |from: Receiver<Vec<u8>>| from.recv_timeout(KEEPER_PATIENCE).unwrap_or_default();
    match end {
        Some(Report::Refused { passing, message }) => {
            let kind = if passing { io::ErrorKind::Other } else { io::ErrorKind::NotFound };
            Err(Silent::NotStarted(io::Error::new(kind, message)))
        }
        Some(end) => Ok(Said { end, stdout: heard(stdout), stderr: heard(stderr) }),
        None => Err(Silent::Late(patience)),
    }
}

/// As `ask`, for those who must not block.
pub async fn ask_aside(spec: Spec, patience: Duration) -> Option<Said> {
    tokio::task::spawn_blocking(move || ask(&spec, patience)).await.ok()?.ok()
}

/// Runs a program to its end in front of a person: it prints where `sage` prints, and reads what `sage` would.
pub fn accompany(spec: &Spec, stdout: Stdio) -> io::Result<Report> {
    let spec = Spec { stdin: own_stdin(), ..spec.clone() };
    let mut started = Started::new(&spec, stdout, Stdio::inherit())?;
    let end = started.end_within(Duration::MAX);
    started.end();
    match end {
        Some(Report::Refused { message, .. }) => Err(io::Error::other(message)),
        Some(end) => Ok(end),
        None => Err(io::Error::other("its keeper was killed")),
    }
}

/// The keeper opens what its program reads by name. A socket has none.
fn own_stdin() -> Option<PathBuf> {
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(io::stdin()).ok()?.st_mode);
    let named = cfg!(target_os = "linux") && kind != rustix::fs::FileType::Socket;
    named.then(|| PathBuf::from(format!("/proc/{}/fd/0", std::process::id())))
}

struct Started {
    child: Child,
    /// `None` without a keeper.
    lifeline: Option<UnixStream>,
}

impl Started {
    fn new(spec: &Spec, stdout: Stdio, stderr: Stdio) -> io::Result<Started> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = match KEEPER.get() {
            Some(keeper) => {
                let mut command = Command::new(keeper);
                let stdin = spec.stdin.as_deref().unwrap_or(Path::new("-"));
                command.arg0("sage-keeper").arg(KEEPER_ARG).arg(stdin).arg("--").arg(&spec.program);
                command.stdin(Stdio::from(OwnedFd::from(theirs)));
                command
            }
            None => {
                let mut command = Command::new(&spec.program);
                command.stdin(match &spec.stdin {
                    Some(path) => Stdio::from(std::fs::File::open(path)?),
                    None => Stdio::null(),
                });
                command
            }
        };
        command.args(&spec.args).current_dir(&spec.cwd);
        if spec.bare {
            command.env_clear();
        }
        for name in &spec.unset {
            command.env_remove(name);
        }
        command.envs(spec.env.iter().map(|(name, value)| (name, value)));
        command.stdout(stdout).stderr(stderr).process_group(0);
        let held = hold_spawns();
        let child = command.spawn();
        drop(held);
        Ok(Started { child: child?, lifeline: KEEPER.get().map(|_| ours) })
    }

    /// `None` if it has not ended by then.
    fn end_within(&mut self, patience: Duration) -> Option<Report> {
        let deadline = Instant::now().checked_add(patience);
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let Some(lifeline) = &mut self.lifeline else {
            while left().is_none_or(|left| !left.is_zero()) {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return Some(match (status.code(), status.signal()) {
                        (Some(code), _) => Report::Exited(code),
                        (None, signal) => Report::Signaled(signal.unwrap_or(0)),
                    });
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            return None;
        };
        let mut said = Vec::new();
        while !said.contains(&b'\n') && said.len() < REPORT_BYTES {
            let left = left();
            lifeline.set_read_timeout(left.map(|left| left.max(Duration::from_millis(1)))).ok()?;
            let mut chunk = [0; 512];
            match lifeline.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => said.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
        }
        String::from_utf8_lossy(&said).lines().next().and_then(Report::parse)
    }

    /// Ends whatever is left of it.
    fn end(mut self) {
        match &mut self.lifeline {
            Some(lifeline) => {
                let _ = lifeline.shutdown(Shutdown::Write);
                let _ = lifeline.set_read_timeout(Some(KEEPER_PATIENCE));
                // The keeper goes when nobody is left, and its end of the lifeline with it.
                let _ = lifeline.read_to_end(&mut Vec::new());
            }
            None => {
                let group = super::tree::raw(self.child.id());
                let _ =
                    group.map(|it| rustix::process::kill_process_group(it, rustix::process::Signal::KILL));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes all that comes, and keeps the beginning of it.
fn listen(mut from: io::PipeReader, kept_bytes: u64) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = from.by_ref().take(kept_bytes).read_to_end(&mut kept);
        let _ = io::copy(&mut from, &mut io::sink());
        let _ = tell.send(kept);
    });
    told
}

impl Spec {
    /// A program with its arguments, in a directory, with the environment of this process.
    pub fn new<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
        cwd: &Path,
    ) -> Spec {
        Spec {
            program: program.as_ref().to_owned(),
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            cwd: cwd.to_owned(),
            env: Vec::new(),
            unset: Vec::new(),
            bare: false,
            stdin: None,
        }
    }

    /// With these variables as well.
    #[must_use]
    pub fn with<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Spec {
        let variables = variables.into_iter();
        self.env.extend(variables.map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned())));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Spec {
        Spec::new("/bin/sh", ["-c", script], Path::new("/"))
    }

    // covers: R17
    #[test]
    fn an_answer_has_an_end_and_a_time() {
        let said = ask(&sh("echo yes; echo no >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!((said.text().as_str(), said.stderr.as_slice()), ("yes\n", &b"no\n"[..]));
        assert_eq!((said.end.clone(), said.succeeded()), (Report::Exited(3), false));
        let late = ask(&sh("exec sleep 1000"), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(late, Silent::Late(_)) && !late.is_missing(), "{late}");
        let missing = ask(&Spec::new("/nowhere/x", [""; 0], Path::new("/")), Duration::from_secs(60));
        assert!(missing.unwrap_err().is_missing());
    }
}
