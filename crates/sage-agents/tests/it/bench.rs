//! One attempt on the bench: `Bench::shell("exit 3").timeout(200).run().await.failed(FailureClass::Failed)`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sage_agents::activity::{Entry, Reader, What};
use sage_agents::{AgentConfig, Executor, ExecutorConfig};
use sage_core::policy::{Cause, FailureClass};
use sage_core::port::{
    BoxFuture, Progress, Refusal, StepCall, StepCx, StepExecutor, StepOutcome, StopSignal, Usage,
};
use sage_core::seal::Key;
use sage_core::template::Kind;
use serde_json::{Value, json};

/// Far above what anything here needs, also on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Of the user whose steps these are.
pub fn key() -> Key {
    Key::new(&[7; 32])
}

pub fn sage() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sage-keeper-test"))
}

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub config: ExecutorConfig,
    pub call: StepCall,
    pub cx: StepCx,
    pub progress: Arc<Mutex<Vec<Progress>>>,
}

impl Bench {
    pub fn new(kind: Kind, params: Value) -> Bench {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join(".scratch");
        std::fs::create_dir(&scratch).unwrap();
        let progress = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&progress);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let call = StepCall {
            run: format!("run_{}x{count}", std::process::id()),
            feature: "login-page".into(),
            path: "build/step[2]".into(),
            kind,
            operation: "agent".into(),
            attempt: 1,
            key: "c0ffee".into(),
            params: params.as_object().unwrap().clone(),
            agent: None,
            model: None,
            allow: Default::default(),
            role: None,
            session: None,
            isolation: Default::default(),
            schema: None,
            input: json!({"params": {}, "inputs": {"who": "you"}}),
            timeout_ms: None,
            idle_timeout_ms: None,
            unknown: false,
            fresh: false,
            feedback: None,
            messages: Vec::new(),
            keep_output: false,
            files: Vec::new(),
        };
        let cx = StepCx {
            watch: None,
            project: dir.path().to_path_buf(),
            scratch,
            children_lock: None,
            proofs: Vec::new(),
            stop: StopSignal::default(),
            nudge: Default::default(),
            questions: Default::default(),
            messages: Default::default(),
            crowd: Default::default(),
            prices: Arc::new(sage_core::price::PriceTable::built_in()),
            capped: false,
            progress: Arc::new(move |it| sink.lock().unwrap().push(it)),
        };
        let config = ExecutorConfig {
            keeper: sage(),
            grace: Duration::from_millis(300),
            key: Some(key()),
            ..ExecutorConfig::default()
        };
        Bench { dir, config, call, cx, progress }
    }

    pub fn shell(script: &str) -> Bench {
        Bench::new(Kind::Shell, json!({ "run": script }))
    }

    pub fn fake(script: Value) -> Bench {
        let mut bench = Bench::new(Kind::Agent, json!({ "script": script, "prompt": "go" }));
        bench.call.agent = Some("fake".into());
        bench
    }

    pub fn command(argv: &[&str], prompt: &str) -> Bench {
        let mut bench = Bench::new(Kind::Agent, json!({ "command": argv, "prompt": prompt }));
        bench.call.agent = Some("command".into());
        bench
    }

    pub fn param(mut self, name: &str, value: Value) -> Bench {
        self.call.params.insert(name.into(), value);
        self
    }

    pub fn timeout(mut self, ms: u64) -> Bench {
        self.call.timeout_ms = Some(ms);
        self
    }

    pub fn idle_timeout(mut self, ms: u64) -> Bench {
        self.call.idle_timeout_ms = Some(ms);
        self
    }

    pub fn attempt(mut self, attempt: u32) -> Bench {
        self.call.attempt = attempt;
        self
    }

    pub fn grace(mut self, grace: Duration) -> Bench {
        self.config.grace = grace;
        self
    }

    pub fn output_cap(mut self, bytes: usize) -> Bench {
        self.config.output_cap = bytes;
        self
    }

    pub fn agent(mut self, agent: AgentConfig) -> Bench {
        self.config.agents.insert(agent.name.clone(), agent);
        self
    }

    /// Works in the project of another one, with a scratch directory of its own.
    pub fn beside(mut self, other: &Bench, path: &str) -> Bench {
        self.cx.project = other.cx.project.clone();
        self.call.path = path.into();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What the agent did, one line each: messages, `> tool argument`, `< tool: result`, `# note`; usage is left out.
    pub fn activity(&self) -> String {
        let mut reader = Reader::new(&self.cx.scratch);
        let line = |entry: Entry| match entry.what {
            What::Message { text } => format!("{text}\n"),
            What::Tool { tool, input } => format!("> {tool} {input}\n"),
            What::Result { tool, text, failed } => {
                format!("< {tool}: {}{text}\n", if failed { "failed: " } else { "" })
            }
            What::Note { text } => format!("# {text}\n"),
            What::Heard { text } => format!("@ {text}\n"),
            What::Usage { .. } | What::Unknown => String::new(),
        };
        reader.read().into_iter().map(line).collect()
    }

    /// A pid that the script wrote to a file; waits for it.
    pub async fn pid(&self, name: &str) -> u32 {
        until(name, || self.read(name).ends_with('\n')).await;
        self.read(name).trim().parse().unwrap()
    }

    pub fn start(&self) -> BoxFuture<'static, StepOutcome> {
        Executor::new(self.config.clone()).execute(self.cx.clone(), self.call.clone())
    }

    /// Runs to the end, and sees that nothing is left.
    pub async fn run(&self) -> Outcome {
        let outcome = tokio::time::timeout(DEADLINE, self.start()).await.expect("the attempt does not end");
        assert_eq!(marked(&self.call.run), [] as [u32; 0], "processes are left");
        Outcome(outcome)
    }

    /// Runs while `story` happens beside it.
    pub async fn run_with(&self, story: impl Future<Output = ()>) -> Outcome {
        tokio::join!(self.run(), story).0
    }

    /// What was reported as used, in the order of the reports.
    pub fn usages(&self) -> Vec<Usage> {
        let progress = self.progress.lock().unwrap();
        let used = progress.iter().filter_map(|it| match it {
            Progress::Usage(usage, _) => Some(usage.clone()),
            _ => None,
        });
        used.collect()
    }

    /// What was said about the use of the account: window and percent, in the order of the reports.
    pub fn allowances(&self) -> Vec<(String, u32)> {
        let progress = self.progress.lock().unwrap();
        let told = progress.iter().filter_map(|it| match it {
            Progress::Allowance(told) => Some((told.window.clone(), told.used_percent)),
            _ => None,
        });
        told.collect()
    }

    /// What earlier attempts had used that were cut off, by their number.
    pub fn lost(&self) -> Vec<(u32, Usage)> {
        let progress = self.progress.lock().unwrap();
        let lost = progress.iter().filter_map(|it| match it {
            Progress::Lost { attempt, usage } => Some((*attempt, usage.clone())),
            _ => None,
        });
        lost.collect()
    }

    pub fn spawned_pid(&self) -> Option<u32> {
        self.progress.lock().unwrap().iter().find_map(|it| match it {
            Progress::Spawned { pid, start_time } => {
                assert!(*start_time > 0);
                Some(*pid)
            }
            _ => None,
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let swept = sage_agents::sweep(&self.call.run, None);
        if !std::thread::panicking() {
            assert!(swept.left.is_empty());
        }
    }
}

#[derive(Debug)]
pub struct Outcome(pub StepOutcome);

impl Outcome {
    #[track_caller]
    pub fn succeeded(self) -> Value {
        match self.0 {
            StepOutcome::Succeeded { result, .. } => result,
            other => panic!("not a success: {other:?}"),
        }
    }

    #[track_caller]
    pub fn failed(self, wanted: FailureClass) -> Failure {
        match self.0 {
            StepOutcome::Failed { class, cause, message, partial, usage, refusal } => {
                assert_eq!(class, wanted, "{message}");
                Failure { cause, message, partial: partial.unwrap_or_default(), usage, refusal }
            }
            other => panic!("not a failure: {other:?}"),
        }
    }

    #[track_caller]
    pub fn stopped(self) {
        assert!(matches!(self.0, StepOutcome::Stopped { .. }), "{:?}", self.0);
    }
}

#[derive(Debug)]
pub struct Failure {
    pub cause: Option<Cause>,
    pub message: String,
    pub partial: Value,
    pub usage: Usage,
    pub refusal: Option<Refusal>,
}

impl Failure {
    #[track_caller]
    pub fn because_of(self, cause: Cause) -> Failure {
        assert_eq!(self.cause, Some(cause), "{}", self.message);
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Failure {
        assert!(self.message.contains(part), "`{part}` is not in: {}", self.message);
        self
    }
}

/// Waits for a condition; the only way to wait in these tests.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// Alive and not a zombie.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// All processes whose environment says that they belong to `run`.
pub fn marked(run: &str) -> Vec<u32> {
    let entry = format!("SAGE_RUN={run}");
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|it| it.file_name().to_str()?.parse().ok())
        .filter(|pid| has_entry(*pid, &entry))
        .collect()
}

fn has_entry(pid: u32, entry: &str) -> bool {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|line| line == entry.as_bytes())
}

pub fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
