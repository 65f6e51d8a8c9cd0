//! The language of these tests: a project in a directory of its own, the binary run in it, its journal.
//!
//! ```text
//! Sage::new().template("t", "...") -> args(["run", "x"]) -> run() -> Outcome   .exit(0).stderr_has("..")
//!                                                        -> spawn() -> Running  .signal(..), .kill(), .end()
//! ```
//! What must stay true: nothing waits longer than a deadline, nothing outlives its test (processes are ended
//! by their pid), and no text of a panic ever goes unnoticed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sage_core::event::{End, Event};
use sage_engine::journal::{self, Head, JournalError, Record};
use sage_engine::open::Engine;
use serde_json::Value;

/// Far beyond what anything here takes, also on a busy machine: only a hang gets there.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// A project; its directory is gone with it, and so is every process of its runs.
pub struct Sage {
    /// The project is a folder of it: what is written beside the project is seen.
    outside: tempfile::TempDir,
    root: PathBuf,
    /// What the project defined when its person trusted it; `None` if nobody does.
    trusted: Option<Mutex<Vec<Vec<u8>>>>,
}

impl Sage {
    pub fn new() -> Sage {
        let outside = tempfile::Builder::new().prefix("sage-it-").tempdir().unwrap();
        let root = outside.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join(".sage/templates")).unwrap();
        Sage { outside, root, trusted: Some(Mutex::default()) }
    }

    /// A project that came from elsewhere: nobody has trusted what it defines.
    pub fn untrusted() -> Sage {
        let mut sage = Sage::new();
        sage.trusted = None;
        sage
    }

    /// Trusts what the project defines, by the product's own command, after each change of it.
    fn trust(&self) {
        let Some(trusted) = &self.trusted else { return };
        let read = |name: &str| {
            let path = self.root.join(name);
            if path.is_file() { std::fs::read(path).unwrap_or_default() } else { Vec::new() }
        };
        let mut defined: Vec<Vec<u8>> = ["sage.toml", ".mcp.json", "node_modules/.bin/tsc"].map(read).into();
        // Those that have the name of a built-in one.
        let built_in = ["feature", "bugfix", "enhancement", "delivery", "swarm", "audit"];
        defined.extend(built_in.map(|name| read(&format!(".sage/templates/{name}.yaml"))));
        let operations =
            std::fs::read_dir(self.root.join(".sage/operations")).into_iter().flatten().flatten();
        let mut operations: Vec<String> =
            operations.map(|it| format!(".sage/operations/{}", it.file_name().display())).collect();
        operations.sort();
        defined.extend(operations.iter().map(|name| read(name)));
        let mut trusted = trusted.lock().unwrap();
        if *trusted == defined || defined.iter().all(Vec::is_empty) {
            return;
        }
        let mut command = self.bare_command(env!("CARGO_BIN_EXE_sage"));
        command.arg("-C").arg(&self.root).args(["trust", "--yes"]);
        // Files that cannot be read are told by the command that the test is about.
        command.stdin(Stdio::null()).output().unwrap();
        *trusted = defined;
    }

    /// Only what programs need; settings of whoever runs the tests change nothing.
    fn bare_command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env_clear();
        // What all projects of a user share is the test's own, too.
        command.env("XDG_STATE_HOME", self.user_state());
        for name in ["PATH", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", &self.root).env("USER", "tester").env("TMPDIR", self.outside.path());
        // A repository somewhere above the temporary directory is not the test's.
        command.env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap_or(&self.root));
        command
    }

    /// A project in which nothing is, not even `.sage`.
    pub fn bare() -> Sage {
        let sage = Sage::new();
        std::fs::remove_dir_all(sage.root.join(".sage")).unwrap();
        sage
    }

    pub fn template(self, name: &str, text: &str) -> Sage {
        self.write(&format!(".sage/templates/{name}.yaml"), text);
        self
    }

    /// A workflow in code.
    pub fn code(self, name: &str, text: &str) -> Sage {
        self.write(&format!(".sage/templates/{name}.ts"), text);
        self
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that holds the project and nothing else.
    pub fn outside(&self) -> &Path {
        self.outside.path()
    }

    /// Where sage keeps what all projects of a user share: beside the project, and gone with it.
    pub fn user_state(&self) -> PathBuf {
        self.outside.path().join("user-state")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The lines of a file of the project; none if there is none.
    pub fn lines(&self, path: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.root.join(path)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn args<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Invocation<'_> {
        let mut all: Vec<OsString> = vec!["-C".into(), self.root.clone().into()];
        all.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        Invocation { sage: self, args: all, env: BTreeMap::new(), umask: None }
    }

    /// Splits at spaces: for commands without any in their arguments.
    pub fn sage(&self, command: &str) -> Outcome {
        self.args(command.split_whitespace()).run()
    }

    pub fn spawn(&self, command: &str) -> Running {
        self.args(command.split_whitespace()).spawn()
    }

    /// The engine itself, for a look without a process.
    pub fn engine(&self) -> Engine {
        Engine { key: self.key(), ..engine(&self.root) }
    }

    /// What this user's state is sealed with, once something was.
    pub fn key(&self) -> Option<sage_core::seal::Key> {
        sage_engine::user_key::read(&self.user_state().join("sage")).unwrap()
    }

    /// The journal of a feature's newest run.
    pub fn journal(&self, feature: &str) -> Journal {
        let id = self.engine().latest(feature).unwrap_or_else(|| panic!("no run of `{feature}`"));
        Journal::read(&self.run_dir(&id))
    }

    pub fn run_dir(&self, id: &str) -> PathBuf {
        self.root.join(".sage/state/runs").join(id)
    }

    /// The directory of a feature's newest run.
    pub fn latest_dir(&self, feature: &str) -> PathBuf {
        self.run_dir(&self.engine().latest(feature).unwrap())
    }

    pub fn status(&self, feature: &str) -> Value {
        self.args(["status", feature, "--json"]).run().exit(0).json()
    }

    /// State of a step as `sage status` tells it.
    pub fn state_of(&self, feature: &str, step: &str) -> String {
        let status = self.status(feature);
        let found = status["steps"].as_array().unwrap().iter().find(|s| s["path"] == step);
        found.unwrap_or_else(|| panic!("no step {step} in {status}"))["state"].as_str().unwrap().to_owned()
    }

    /// What `sage result` gives, without times and metrics.
    pub fn results(&self, feature: &str) -> Value {
        let phases = self.args(["result", feature, "--json"]).run().exit(0).json()["result"].clone();
        let bare = |phase: &Value| serde_json::json!({"phase": phase["phaseId"], "status": phase["status"], "results": phase["results"]});
        phases.as_array().unwrap().iter().map(bare).collect()
    }

    /// Living processes of any run of this project.
    pub fn alive(&self) -> Vec<u32> {
        let runs = std::fs::read_dir(self.root.join(".sage/state/runs")).into_iter().flatten().flatten();
        let marks: Vec<Vec<u8>> =
            runs.map(|run| format!("SAGE_RUN={}", run.file_name().display()).into_bytes()).collect();
        processes_with(|line| marks.iter().any(|mark| mark == line))
    }

    /// Everything that was started in this project, in the background too: all of it knows the user's state.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("XDG_STATE_HOME={}", self.user_state().display()).into_bytes();
        processes_with(|line| line == mark)
    }

    /// Dying takes a moment; staying alive is an error.
    #[track_caller]
    pub fn assert_nothing_alive(&self) {
        wait_until(|| self.alive().is_empty(), DEADLINE, "all processes of the project to be gone");
    }

    /// Every file and directory beside and in the project, but for what `.sage` and the user's state hold.
    pub fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.outside.path().canonicalize().unwrap()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).unwrap().flatten() {
                let path = entry.path();
                if path.file_name() == self.user_state().file_name() {
                    continue;
                }
                let meta = entry.metadata().unwrap();
                found.push(format!("{} {}", path.display(), if meta.is_dir() { 0 } else { meta.len() }));
                if meta.is_dir() && path != self.root.join(".sage") {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

impl Drop for Sage {
    fn drop(&mut self) {
        // Twice: somebody in the background may just have started somebody else.
        for pid in [self.alive(), self.processes(), self.processes()].concat() {
            let pid = Pid::from_raw(pid.cast_signed());
            let _ = pid.map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
    }
}

/// The engine of a project's directory; it is only used to read and to recover.
pub fn engine(root: &Path) -> Engine {
    Engine {
        project: sage_engine::project::Project::new(root.to_owned(), root.join(".sage")),
        vfs: sage_engine::vfs::DiskFs::new(),
        key: None,
        accepts_foreign: false,
        executor: Arc::new(sage_agents::Executor::new(sage_agents::ExecutorConfig::default())),
        clock: sage_engine::clock::Clock::System,
        commit: sage_engine::run_loop::CommitMode::Thread,
        limits: sage_engine::limits::Limits::alone(Default::default()),
        affinity: Arc::new([]),
        prices: Arc::new(sage_core::price::PriceTable::built_in()),
        min_free_bytes: 0,
        approvals: Default::default(),
        wakes: None,
        cache: None,
        evaluator: Arc::new(sage_core::port::Unguarded),
        scripts: None,
        script_limits: Default::default(),
        sweep: |_| (Vec::new(), Vec::new()),
    }
}

/// Processes with a line in their environment that `wanted` takes. Zombies have none.
pub fn processes_with(wanted: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|&byte| byte == 0).any(&wanted) {
            found.push(pid);
        }
    }
    found
}

/// In the project, with no settings but the repository's own.
#[track_caller]
pub fn git(sage: &Sage, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(sage.root()).args(args).env("HOME", sage.root()).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A process that is there and has not ended.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[track_caller]
pub fn wait_until(mut done: impl FnMut() -> bool, deadline: Duration, what: &str) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < deadline, "waited {deadline:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One call of the binary, not yet started.
pub struct Invocation<'s> {
    sage: &'s Sage,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    umask: Option<&'static str>,
}

impl Invocation<'_> {
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(key.as_ref().into(), value.as_ref().into());
        self
    }

    pub fn umask(mut self, umask: &'static str) -> Self {
        self.umask = Some(umask);
        self
    }

    pub fn run(self) -> Outcome {
        self.spawn().end()
    }

    pub fn spawn(self) -> Running {
        let shown = format!("sage {:?}", &self.args[2..]);
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (stdout, stderr) = (Stream::of(child.stdout.take()), Stream::of(child.stderr.take()));
        Running { child: Some(child), stdout, stderr, shown, deadline: Instant::now() + DEADLINE }
    }

    /// Another program, as if it had been called in the same way.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = self.sage.bare_command(program);
        command.envs(&self.env);
        command
    }

    /// For whoever talks to it while it runs.
    pub fn command(self) -> Command {
        self.sage.trust();
        let binary = env!("CARGO_BIN_EXE_sage");
        let mut command = match self.umask {
            None => self.sage.bare_command(binary),
            Some(umask) => {
                let mut shell = self.sage.bare_command("/bin/sh");
                shell.args(["-c", &format!("umask {umask} && exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        command.args(&self.args).envs(self.env);
        command
    }
}

/// What a process prints, collected while it runs.
struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Stream {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Stream {
        let mut pipe = pipe.unwrap();
        let text = Arc::new(Mutex::new(Vec::new()));
        let collected = text.clone();
        let thread = std::thread::spawn(move || {
            let mut piece = [0u8; 16 << 10];
            while let Ok(n @ 1..) = pipe.read(&mut piece) {
                collected.lock().unwrap().extend_from_slice(&piece[..n]);
            }
        });
        Stream { text, thread: Some(thread) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    /// All of it. Somebody who keeps the pipe open after the end is an error.
    fn finish(&mut self, shown: &str) -> String {
        if let Some(thread) = self.thread.take() {
            wait_until(|| thread.is_finished(), DEADLINE, &format!("the end of the output of {shown}"));
            thread.join().unwrap();
        }
        self.so_far()
    }
}

/// A sage at work. Dropped, it is killed.
pub struct Running {
    child: Option<Child>,
    stdout: Stream,
    stderr: Stream,
    shown: String,
    deadline: Instant,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        // It may have ended by itself; whoever cares looks at how.
        let _ = rustix::process::kill_process(pid, signal);
    }

    pub fn ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Waits for something while the process should still be there.
    #[track_caller]
    pub fn until(&mut self, mut done: impl FnMut() -> bool, what: &str) {
        while !done() {
            let late = Instant::now() > self.deadline;
            if late || (self.ended() && !done()) {
                let how = if late { "is late" } else { "ended" };
                let (stdout, stderr) = (self.stdout(), self.stderr());
                panic!("{} {how} while a test waited for {what}\n{stdout}\n{stderr}", self.shown);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGKILL. True if it was still alive then.
    pub fn kill(mut self) -> bool {
        let mut child = self.child.take().unwrap();
        let _ = child.kill();
        let status = child.wait().unwrap();
        assert_calm(&self.shown, &self.stdout.so_far(), &self.stderr.so_far());
        status.signal() == Some(Signal::KILL.as_raw())
    }

    /// Waits for the end.
    #[track_caller]
    pub fn end(mut self) -> Outcome {
        while !self.ended() {
            if Instant::now() > self.deadline {
                panic!("{} hangs\n{}\n{}", self.shown, self.stdout(), self.stderr());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = self.child.take().unwrap().wait().unwrap();
        let (stdout, stderr) = (self.stdout.finish(&self.shown), self.stderr.finish(&self.shown));
        assert_calm(&self.shown, &stdout, &stderr);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Outcome { code, stdout, stderr, shown: std::mem::take(&mut self.shown) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[track_caller]
fn assert_calm(shown: &str, stdout: &str, stderr: &str) {
    for text in [stdout, stderr] {
        assert!(
            !text.contains("panicked at") && !text.contains("RUST_BACKTRACE"),
            "{shown} panicked:\n{text}"
        );
    }
}

/// How a call ended.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    shown: String,
}

impl Outcome {
    fn told(&self) -> String {
        format!("{} -> {}\n--- stdout\n{}\n--- stderr\n{}", self.shown, self.code, self.stdout, self.stderr)
    }

    #[track_caller]
    pub fn exit(self, code: i32) -> Outcome {
        assert_eq!(self.code, code, "{}", self.told());
        self
    }

    #[track_caller]
    pub fn stderr_has(self, text: &str) -> Outcome {
        assert!(self.stderr.contains(text), "no {text:?} in stderr of {}", self.told());
        self
    }

    #[track_caller]
    pub fn stderr_lacks(self, text: &str) -> Outcome {
        assert!(!self.stderr.contains(text), "{text:?} in stderr of {}", self.told());
        self
    }

    #[track_caller]
    pub fn stdout_has(self, text: &str) -> Outcome {
        assert!(self.stdout.contains(text), "no {text:?} in stdout of {}", self.told());
        self
    }

    /// The one JSON value on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.told()))
    }

    /// One JSON object a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}: {}", self.told()))
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// A journal as it is on disk, verified.
pub struct Journal {
    pub records: Vec<Entry>,
}

pub struct Entry {
    pub head: Head,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    pub event: Event,
}

impl Journal {
    /// The most attempts that were under way at the same moment, by the journal's records.
    pub fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0usize, 0);
        for entry in &self.records {
            match &entry.event {
                Event::StepStarted(_) => now += 1,
                Event::StepFinished(_) | Event::StepRetried(_) => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        most
    }

    #[track_caller]
    pub fn read(dir: &Path) -> Journal {
        let mut records = Vec::new();
        let vfs = sage_engine::vfs::DiskFs::new();
        let checked =
            journal::check(vfs.as_ref(), dir, None, |record: Record<'_>| -> Result<(), JournalError> {
                let event = Event::parse(record.kind, record.data).unwrap();
                records.push(Entry { head: record.head(), at_ms: record.ts_ms, event });
                Ok(())
            });
        checked.unwrap_or_else(|error| panic!("journal in {}: {error}", dir.display()));
        Journal { records }
    }

    pub fn heads(&self) -> Vec<Head> {
        self.records.iter().map(|entry| entry.head).collect()
    }

    /// Paths of steps with an attempt that succeeded.
    pub fn succeeded(&self) -> Vec<String> {
        let path = |entry: &Entry| match &entry.event {
            Event::StepFinished(e) if matches!(e.end, End::Succeeded { .. }) => Some(e.step.to_string()),
            _ => None,
        };
        self.records.iter().filter_map(path).collect()
    }

    /// Paths of all starts, in order, from a record on.
    pub fn started_after(&self, seq: u64) -> Vec<String> {
        let path = |entry: &Entry| match &entry.event {
            Event::StepStarted(e) if entry.head.seq > seq => Some(e.step.to_string()),
            _ => None,
        };
        self.records.iter().filter_map(path).collect()
    }

    pub fn started(&self) -> Vec<String> {
        self.started_after(0)
    }

    pub fn reused_after(&self, seq: u64) -> Vec<String> {
        let path = |entry: &Entry| match &entry.event {
            Event::StepReused(e) if entry.head.seq > seq => Some(e.step.to_string()),
            _ => None,
        };
        self.records.iter().filter_map(path).collect()
    }

    pub fn last_seq(&self) -> u64 {
        self.records.last().map_or(0, |entry| entry.head.seq)
    }

    /// No step that succeeded has a start after it.
    #[track_caller]
    pub fn assert_nothing_repeated(&self) {
        let mut done = std::collections::BTreeSet::new();
        for entry in &self.records {
            match &entry.event {
                Event::StepStarted(e) => {
                    assert!(!done.contains(&e.step), "{} ran again in record {}", e.step, entry.head.seq);
                }
                Event::StepFinished(e) if matches!(e.end, End::Succeeded { .. }) => {
                    done.insert(e.step.clone());
                }
                _ => {}
            }
        }
    }
}

/// Small, seeded and good enough to choose moments with.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }
}

/// More of everything that costs time: `SAGE_LONG=1`.
pub fn long() -> bool {
    std::env::var_os("SAGE_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}
