//! The real codex against the scripted model: `Codex::new(script)`, then turns of one conversation.
//!
//! Without codex on this machine the tests say so and pass. `SAGE_TEST_AGENTS` is the directory it is in.

use std::path::{Path, PathBuf};

use sage_agents::fake_llm::{FakeLlm, Script};
use sage_agents::{AgentConfig, Executor, ExecutorConfig};
use sage_core::port::{BoxFuture, Continuity, Progress, StepExecutor, StepOutcome, Usage};
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, Outcome, marked};

pub struct Codex {
    pub llm: FakeLlm,
    pub bench: Bench,
    /// Codex's own home. Not below the temporary directory: its sandbox does not work from there.
    pub home: tempfile::TempDir,
}

impl Codex {
    /// `None`, with a notice, where codex is not installed.
    pub fn new(script: Value) -> Option<Codex> {
        let program = installed()?;
        let llm = FakeLlm::start(script).unwrap();
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut bench = Bench::new(Kind::Agent, json!({"prompt": "the first task"}));
        bench.call.agent = Some("codex".into());
        bench.call.idle_timeout_ms = Some(20_000);
        bench.config = ExecutorConfig { sessions: Some(bench.path(".sessions")), ..bench.config.clone() };
        bench = bench.agent(config(&program, &llm, home.path(), 0));
        Some(Codex { llm, bench, home })
    }

    /// Codex's own provider tries again by itself; so does this one then.
    pub fn tries_again(mut self, times: u32) -> Codex {
        let program = installed().unwrap();
        self.bench = self.bench.agent(config(&program, &self.llm, self.home.path(), times));
        self
    }

    pub fn script(&self, script: Value) {
        self.llm.reset(Script::try_from(script).unwrap());
    }

    /// Another piece of work, in the same named session.
    pub fn task(&mut self, prompt: &str) {
        self.bench.call.session = Some("talk".into());
        self.bench.call.key = format!("key of {prompt}");
        self.bench.call.params.insert("prompt".into(), prompt.into());
    }

    /// The same work once more.
    pub fn again(&mut self) {
        self.bench.call.attempt += 1;
        self.bench.call.unknown = true;
    }

    pub fn start(&self) -> BoxFuture<'static, StepOutcome> {
        Executor::new(self.bench.config.clone()).execute(self.bench.cx.clone(), self.bench.call.clone())
    }

    pub async fn run(&self) -> Outcome {
        self.bench.run().await
    }

    /// The answer, and what it used.
    pub async fn answers(&self) -> (Value, Usage) {
        match self.run().await.0 {
            StepOutcome::Succeeded { result, usage } => (result, usage),
            other => panic!("not a success: {other:?}\n{}", self.bench.read(".scratch/stderr.log")),
        }
    }

    pub fn continuity(&self) -> Option<Continuity> {
        let progress = self.bench.progress.lock().unwrap();
        progress.iter().rev().find_map(|it| match it {
            Progress::Session { continuity, .. } => Some(*continuity),
            _ => None,
        })
    }

    /// What the last request carried, as text.
    pub fn last_input(&self) -> String {
        self.llm.prompts().last().map(|body| body["input"].to_string()).unwrap_or_default()
    }

    /// Codex's own file about its only thread.
    pub fn thread_file(&self) -> Option<PathBuf> {
        let mut path = self.home.path().join("sessions");
        while path.is_dir() {
            path = std::fs::read_dir(&path).ok()?.next()?.ok()?.path();
        }
        path.exists().then_some(path)
    }

    /// The process of codex itself, not its keeper and not the script that starts it.
    pub fn pid(&self) -> Option<u32> {
        let is_codex = |pid: &u32| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            exe.ends_with("bin/codex")
        };
        // Its sandbox is the same program, and numbers of processes begin again: the oldest one is meant.
        let codexes = marked(&self.bench.call.run).into_iter().filter(is_codex);
        codexes.filter_map(|pid| Some((sage_agents::start_time(pid)?, pid))).min().map(|(_, pid)| pid)
    }
}

fn config(program: &Path, llm: &FakeLlm, home: &Path, retries: u32) -> AgentConfig {
    let provider = format!(
        "model_providers.fake={{name=\"fake\",base_url=\"{}/v1\",env_key=\"FAKE_KEY\",wire_api=\"responses\",\
         request_max_retries={retries},stream_max_retries={retries}}}",
        llm.url()
    );
    let words = [&program.display().to_string(), "-c", &provider, "-c", "model_provider=\"fake\""];
    let home = home.display().to_string();
    let env = [("CODEX_HOME", home.as_str()), ("HOME", &home), ("FAKE_KEY", "none")];
    AgentConfig {
        name: "codex".into(),
        adapter: "codex".into(),
        command: words.map(String::from).to_vec(),
        env: env.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        model: Some("fake-1".into()),
        ..AgentConfig::default()
    }
}

fn installed() -> Option<PathBuf> {
    let given = std::env::var_os("SAGE_TEST_AGENTS").map(PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = given.unwrap_or_else(|| target.join("tools/agents/node_modules/.bin"));
    let program = folder.join("codex");
    if program.exists() {
        return Some(program);
    }
    println!("skipped: there is no codex in {}", folder.display());
    None
}
