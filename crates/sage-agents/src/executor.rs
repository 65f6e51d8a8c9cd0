//! The port's one implementation: sends a call to the part that can do it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::port::{
    BoxFuture, CutAttempt, Fork, KnownTool, StepCall, StepCx, StepExecutor, StepOutcome, Usage, Wakes,
};
use sage_core::seal::Key;
use sage_core::secret::Redactor;
use sage_core::template::Kind;

use crate::agent::{self, AgentConfig, Hears, NamedServers, TrustedParts, hears};
use crate::attempt::Attempt;
use crate::changes;
use crate::command;
use crate::llm::MoreTools;
use crate::mcp::{self, Hub, HubConfig, McpServer};
use crate::measure::Measured;
use crate::outcome::Miss;
use crate::{fake, footprint, offline, prompt_files, secrets, session, shell, synthesize, worktree};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Kept of each stream of a program.
const OUTPUT_CAP_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct ExecutorConfig {
    /// The executable that answers to `__keep` and `debug fake-agent`: this one.
    pub keeper: PathBuf,
    pub grace: Duration,
    /// In bytes, per stream.
    pub output_cap: usize,
    pub agents: BTreeMap<String, AgentConfig>,
    /// What the project defines and the user has not trusted: it is refused by name.
    pub untrusted: Untrusted,
    /// MCP servers by name; each is started when a step needs it.
    pub servers: BTreeMap<String, McpServer>,
    /// The user's key: sessions and trusted tools are sealed with it. Without one, neither is kept.
    pub key: Option<Key>,
    /// Where the trusted definitions of their tools are kept; `None` forgets them at the end.
    pub tools: Option<PathBuf>,
    /// Where sessions are kept; `None` switches them off.
    pub sessions: Option<PathBuf>,
    /// Where the worktrees of isolated steps are; default: `.sage/worktrees` of the project.
    pub worktrees: Option<PathBuf>,
    /// How those report who know nothing of sage; `None` if nobody listens.
    pub wakes: Option<Arc<dyn Wakes>>,
    /// MCP servers that agents are given by name.
    pub named_servers: NamedServers,
    /// Which parts of the project's own configuration of agents may count.
    pub trusted_parts: TrustedParts,
    /// What the `llm` agent can use beside files.
    pub more_tools: Option<MoreTools>,
    /// Directories of Sage that no agent reads or writes, wherever they are.
    pub private: Vec<PathBuf>,
    /// Takes values of keys out of everything that agents, programs and servers say.
    pub redactor: Redactor,
}

/// Names of agents and MCP servers that may not be started.
#[derive(Clone, Debug, Default)]
pub struct Untrusted {
    pub agents: BTreeSet<String>,
    pub servers: BTreeSet<String>,
}

impl Default for ExecutorConfig {
    fn default() -> ExecutorConfig {
        ExecutorConfig {
            keeper: own_executable(),
            grace: GRACE,
            output_cap: OUTPUT_CAP_BYTES,
            agents: BTreeMap::new(),
            untrusted: Untrusted::default(),
            servers: BTreeMap::new(),
            key: None,
            tools: None,
            sessions: None,
            worktrees: None,
            wakes: None,
            named_servers: NamedServers::default(),
            trusted_parts: TrustedParts::default(),
            more_tools: None,
            private: Vec::new(),
            redactor: Redactor::default(),
        }
    }
}

/// On Linux the very file that runs, also after an upgrade has replaced it.
pub fn own_executable() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sage"))
    }
}

impl ExecutorConfig {
    /// Where sessions are kept, if they are.
    pub fn session_store(&self) -> Option<session::Store> {
        let (dir, key) = (self.sessions.clone()?, self.key.clone()?);
        Some(session::Store::new(dir, Some(key)))
    }

    /// The way to the servers, which `project` is the working directory of.
    pub fn hub(&self, project: PathBuf) -> Hub {
        Hub::new(HubConfig {
            servers: self.servers.clone(),
            untrusted: self.untrusted.servers.clone(),
            project,
            keeper: self.keeper.clone(),
            key: self.key.clone(),
            state: self.tools.clone(),
            log_bytes: self.output_cap as u64,
            redactor: secrets::redactor(self),
        })
    }
}

#[derive(Clone, Debug)]
pub struct Executor {
    config: Arc<ExecutorConfig>,
    hub: Arc<Hub>,
    measured: Measured,
}

impl Default for Executor {
    fn default() -> Executor {
        Executor::new(ExecutorConfig::default())
    }
}

impl Executor {
    pub fn new(config: ExecutorConfig) -> Executor {
        let hub = Arc::new(config.hub(PathBuf::from(".")));
        Executor::with_hub(config, hub)
    }

    /// Shares its servers with others of this process.
    pub fn with_hub(config: ExecutorConfig, hub: Arc<Hub>) -> Executor {
        let redactor = secrets::redactor(&config);
        let config = Arc::new(ExecutorConfig { redactor, ..config });
        Executor { config, hub, measured: Measured::default() }
    }

    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Of an agent that is configured, built in, or named like its adapter.
    fn adapter_name(&self, agent: &str) -> String {
        let configured = self.config.agents.get(agent).cloned().or_else(|| AgentConfig::built_in(agent));
        configured.map_or_else(|| agent.to_string(), |config| config.adapter)
    }
}

impl Executor {
    /// It writes drafts and no code.
    fn is_offline(&self, call: &StepCall) -> bool {
        call.agent.as_deref().is_some_and(|agent| self.adapter_name(agent) == "offline")
    }
}

/// The one way out: whatever a step's target has said, values of keys are not in it.
fn redacted(mut outcome: StepOutcome, redactor: &Redactor) -> StepOutcome {
    match &mut outcome {
        StepOutcome::Succeeded { result, .. } => redactor.value(result),
        StepOutcome::Failed { message, partial, .. } => {
            redactor.string(message);
            partial.iter_mut().for_each(|partial| redactor.value(partial));
        }
        StepOutcome::Stopped { .. } => {}
    }
    outcome
}

impl StepExecutor for Executor {
    fn execute(&self, mut cx: StepCx, mut call: StepCall) -> BoxFuture<'static, StepOutcome> {
        let (config, hub) = (Arc::clone(&self.config), Arc::clone(&self.hub));
        let may_change = cx.watch.is_some() && !self.is_offline(&call);
        let measured = may_change.then(|| self.measured.clone());
        Box::pin(async move {
            cx.questions = cx.questions.redacting(&config.redactor);
            if let Some(measured) = measured {
                measured.before_change(&config, &cx, &call).await;
            }
            let lease = match worktree::enter(&config, &mut cx, &call).await {
                Ok(lease) => lease,
                Err(miss) => return miss.into(),
            };
            let before = if lease.is_none() { footprint::before(&config, &cx, &call).await } else { None };
            if let Err(miss) = prompt_files::lay_out(&cx, &mut call) {
                return redacted(worktree::leave(lease, &cx, miss.into()).await, &config.redactor);
            }
            changes::before(&config, &cx, &call).await;
            let attempt = Attempt { config: &config, cx: &cx, call: &call };
            // Programs need it and say so; without it, only an explanation is poorer.
            let _ = attempt.write_input();
            let outcome = match call.kind {
                Kind::Shell => shell::run(&attempt).await,
                Kind::Agent => agent(&attempt).await,
                Kind::Synthesize => synthesize::run(&attempt).await,
                Kind::Tool => mcp::run(&attempt, &hub).await,
                kind => Miss::invalid(format!("`{}` steps have no executor here", kind.name())).into(),
            };
            if let (Some(before), StepOutcome::Succeeded { .. }) = (before, &outcome) {
                footprint::tell(&config, &cx, &call, before).await;
            }
            redacted(worktree::leave(lease, &cx, outcome).await, &config.redactor)
        })
    }

    fn ended(&self, cx: StepCx, call: StepCall) -> BoxFuture<'static, ()> {
        let config = Arc::clone(&self.config);
        Box::pin(async move { changes::after(&config, &cx, &call).await })
    }

    fn fork(&self, fork: &Fork) -> Result<BTreeMap<String, String>, String> {
        if let Some(worktrees) = &self.config.worktrees {
            worktree::fork(worktrees, fork, self.config.key.as_ref())
                .map_err(|error| format!("its worktrees: {error}"))?;
        }
        match self.config.session_store() {
            Some(store) => session::fork(&store, fork).map_err(|error| error.to_string()),
            None => Ok(BTreeMap::new()),
        }
    }

    fn fingerprint(&self, agent: &str, project: &std::path::Path) -> String {
        let configured = self.config.agents.get(agent).cloned().or_else(|| AgentConfig::built_in(agent));
        configured.map_or_else(|| agent.into(), |config| config.fingerprint(&self.config.keeper, project))
    }

    fn look(&self, project: &std::path::Path) -> Option<Digest> {
        footprint::look(project)
    }

    fn known_tool(&self, server: &str, tool: &str) -> Option<KnownTool> {
        let pin = self.hub.pin(server, tool)?;
        Some(KnownTool { repeatable: pin.is_repeatable(), definition: pin.hash })
    }

    fn take_notes(&self) -> Vec<String> {
        self.hub.take_notes()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let hub = Arc::clone(&self.hub);
        Box::pin(async move { hub.close().await })
    }

    fn used_by(&self, cut: &CutAttempt<'_>) -> Option<Usage> {
        let known = self.config.agents.get(cut.agent).cloned();
        let config = known.or_else(|| AgentConfig::built_in(cut.agent))?;
        session::used_by(&self.config.session_store()?, agent::adapter(&config.adapter)?, &config, cut)
    }

    fn resumes(&self, agent: &str) -> bool {
        let configured = self.config.agents.get(agent).cloned().or_else(|| AgentConfig::built_in(agent));
        let adapter = configured.and_then(|config| agent::adapter(&config.adapter));
        self.config.session_store().is_some() && adapter.is_some_and(|adapter| adapter.capabilities().resume)
    }

    /// Any program may tell it (note.rs), but few do; all others have a place for it in what they say.
    fn tells_usage(&self, agent: &str) -> bool {
        self.adapter_name(agent) != "command"
    }

    /// Without a model the same question has the same answer.
    fn reconsiders(&self, agent: &str) -> bool {
        let known = self.config.agents.contains_key(agent) || AgentConfig::built_in(agent).is_some();
        let asked = known || matches!(agent, "fake" | "command");
        asked && self.adapter_name(agent) != "offline"
    }

    /// Any program prints its answer and nothing else, and others work where nobody sees them; a scripted agent
    /// tells all that it does.
    fn shows_progress(&self, agent: &str) -> bool {
        !["command", "foreign", "offline"].contains(&self.adapter_name(agent).as_str())
    }
}

async fn agent(attempt: &Attempt<'_>) -> StepOutcome {
    let Some(name) = attempt.call.agent.as_deref() else {
        return Miss::invalid(format!("no agent is named; known: {}", known(attempt.config))).into();
    };
    if attempt.config.untrusted.agents.contains(name) {
        let message = format!("agent `{name}` of sage.toml is not trusted; to trust it, type: sage trust");
        return Miss::invalid(message).into();
    }
    let configured = attempt.config.agents.get(name);
    let config = configured.cloned().or_else(|| AgentConfig::built_in(name));
    let Some(config) = config else {
        return Miss::invalid(format!("unknown agent `{name}`; known: {}", known(attempt.config))).into();
    };
    if hears(&config, attempt.config.sessions.is_some()) == Hears::Never {
        attempt.cx.messages.close();
    }
    match config.adapter.as_str() {
        "fake" => fake::run(attempt, config.script.as_ref()).await,
        "offline" => offline::run(attempt).await,
        "command" => command::run(attempt, configured).await,
        adapter => match agent::adapter(adapter) {
            Some(adapter) => agent::run(attempt, adapter, &config).await,
            None => Miss::invalid(format!("agent `{name}` has the unknown adapter `{adapter}`")).into(),
        },
    }
}

fn known(config: &ExecutorConfig) -> String {
    let mut names: Vec<&str> = AgentConfig::BUILT_IN.to_vec();
    names.extend(config.agents.keys().map(String::as_str));
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
