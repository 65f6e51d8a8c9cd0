//! The real Claude Code against a scripted endpoint: `Desk::new(script)` or nothing, where it is not installed.
//!
//! It is looked for in `$SAGE_TEST_AGENTS`, else in `tools/agents/node_modules/.bin` of the target directory.
//! Its home, its temporary files and its key are the test's own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_agents::AgentConfig;
use sage_agents::fake_llm::{FakeLlm, Script};
use sage_core::port::{
    Asks, BoxFuture, Continuity, Permission, PermissionAsk, Progress, Questions, StepOutcome, Usage,
};
use sage_core::role::Role;
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, Outcome, sage};

/// Words that the program would never say by itself.
pub const TASK: &str = "paint the fence blue";

fn installed() -> Option<PathBuf> {
    let target = sage().parent().unwrap().parent().unwrap().join("tools/agents/node_modules/.bin");
    let folder = std::env::var_os("SAGE_TEST_AGENTS").map_or(target, PathBuf::from);
    let program = folder.join("claude");
    if !program.exists() {
        println!("skipped: there is no `{}`", program.display());
        return None;
    }
    Some(program)
}

pub struct Desk {
    pub bench: Bench,
    pub llm: FakeLlm,
    pub asked: Arc<Mutex<Vec<PermissionAsk>>>,
}

impl Desk {
    pub fn new(script: Value) -> Option<Desk> {
        let program = installed()?;
        let llm = FakeLlm::start(script).unwrap();
        let mut bench = Bench::new(Kind::Agent, json!({ "prompt": TASK })).grace(Duration::from_secs(5));
        bench.call.agent = Some("claude".into());
        bench.config.sessions = Some(bench.path(".sessions"));
        let home = bench.path(".home");
        std::fs::create_dir(&home).unwrap();
        let (home, own) = (home.to_str().unwrap(), home.join(".claude"));
        let env = [
            ("HOME", home),
            ("TMPDIR", home),
            ("CLAUDE_CONFIG_DIR", own.to_str().unwrap()),
            ("ANTHROPIC_BASE_URL", &llm.url()),
            ("ANTHROPIC_API_KEY", "sk-ant-none"),
        ];
        let agent = AgentConfig {
            name: "claude".into(),
            adapter: "claude".into(),
            command: vec![program.to_str().unwrap().into()],
            env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..AgentConfig::default()
        };
        Some(Desk { bench: bench.agent(agent), llm, asked: Arc::default() })
    }

    pub fn config(&mut self) -> &mut AgentConfig {
        self.bench.config.agents.get_mut("claude").unwrap()
    }

    pub fn env(mut self, name: &str, value: &str) -> Desk {
        self.config().env.insert(name.into(), value.into());
        self
    }

    pub fn server(mut self, name: &str, server: Value) -> Desk {
        self.config().mcp_servers.insert(name.into(), server);
        self
    }

    pub fn role(mut self, role: Role) -> Desk {
        self.bench.call.role = Some(role);
        self
    }

    pub fn schema(mut self) -> Desk {
        let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        self.bench.call.schema = Some(number);
        self
    }

    pub fn param(mut self, name: &str, value: Value) -> Desk {
        self.bench.call.params.insert(name.into(), value);
        self
    }

    pub fn answers(
        mut self,
        answer: impl Fn(PermissionAsk) -> BoxFuture<'static, Permission> + Send + Sync + 'static,
    ) -> Desk {
        let asked = Arc::clone(&self.asked);
        self.bench.cx.questions = Questions::new(Arc::new(Answers { asked, answer }));
        self
    }

    pub fn allows(self) -> Desk {
        self.answers(|_| Box::pin(std::future::ready(Permission::Allow { input: None })))
    }

    pub async fn run(&self) -> Outcome {
        self.bench.run().await
    }

    /// Another script; what the endpoint has seen is forgotten.
    pub fn script(&self, script: Value) {
        self.llm.reset(Script::try_from(script).unwrap());
    }

    pub fn tools_asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|ask| ask.tool.clone()).collect()
    }

    /// What the endpoint was last sent of the conversation, as text; without the program's own instructions.
    pub fn last_sent(&self) -> String {
        let prompts = self.llm.prompts();
        let messages = prompts.last().and_then(|prompt| prompt["messages"].as_array()).into_iter().flatten();
        let own = messages.filter(|message| message["role"] != "system");
        own.map(|message| message["content"].to_string()).collect::<Vec<_>>().join("\n")
    }

    pub fn continuity(&self) -> Vec<Continuity> {
        let progress = self.bench.progress.lock().unwrap();
        let told = progress.iter().filter_map(|it| match it {
            Progress::Session { continuity, .. } => Some(*continuity),
            _ => None,
        });
        told.collect()
    }

    /// As `assert_usage`, of a turn that the program ended while its last answer was on its way: nobody knows how long
    /// that one was.
    #[track_caller]
    pub fn assert_usage_but_for_the_last_words(&self, outcome: &Outcome, answers: u64) {
        let StepOutcome::Failed { usage, .. } = &outcome.0 else { panic!("{outcome:?}") };
        let sent = self.llm.sent_usage();
        assert_eq!(usage.prompt_tokens(), sent.prompt_tokens(), "{outcome:?}");
        let (told, sent) = (usage.output.unwrap_or(0), sent.output.unwrap_or(0));
        assert!(told <= sent && told * answers > sent * (answers - 1), "{told} of {sent}: {outcome:?}");
    }

    /// What was reported is what the endpoint sent, and nothing else.
    #[track_caller]
    pub fn assert_usage(&self, outcome: &Outcome) {
        let usage = match &outcome.0 {
            StepOutcome::Succeeded { usage, .. }
            | StepOutcome::Failed { usage, .. }
            | StepOutcome::Stopped { usage } => usage,
        };
        let told = Usage { cost_usd: None, ..usage.clone() };
        let sent = Usage { reasoning: None, ..self.llm.sent_usage() };
        let zero = |usage: &Usage| {
            [usage.input, usage.cache_read, usage.cache_write, usage.output].map(Option::unwrap_or_default)
        };
        assert!(told.input.is_some(), "{outcome:?}");
        assert_eq!(zero(&told), zero(&sent), "{outcome:?}");
    }
}

struct Answers<F> {
    asked: Arc<Mutex<Vec<PermissionAsk>>>,
    answer: F,
}

impl<F: Fn(PermissionAsk) -> BoxFuture<'static, Permission> + Send + Sync> Asks for Answers<F> {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.asked.lock().unwrap().push(ask.clone());
        (self.answer)(ask)
    }
}

pub fn tool(name: &str, input: Value) -> Value {
    json!({"tool": {"name": name, "input": input}})
}

pub fn bash(command: &str) -> Value {
    tool("Bash", json!({ "command": command }))
}
