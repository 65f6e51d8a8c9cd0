//! What every command works on: the project, its configuration, the engine.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sage_agents::agent::{NamedServers, TrustedParts};
use sage_agents::llm::MoreTools;
use sage_agents::mcp::Hub;
use sage_agents::{Executor, ExecutorConfig, Untrusted};
use sage_core::seal::Key;
use sage_engine::approvals::Approvals;
use sage_engine::background::Records;
use sage_engine::cache::Cache;
use sage_engine::clock::Clock;
use sage_engine::inbox::Inbox;
use sage_engine::limits::{Limits, LimitsConfig};
use sage_engine::open::Engine;
use sage_engine::project::Project;
use sage_engine::run_loop::CommitMode;
use sage_engine::vfs::DiskFs;

use super::config::{Attendance, Config};
use super::failure::Failure;
use super::known::OfProject;
use super::reports::Reports;
use crate::code::{Author, CodeMode, CodeTools, Guard, HubTools, ProjectSkills};
use crate::command_line::root_of;
use crate::trust::{Trust, agent_files, owner, user};

#[derive(Clone, Debug)]
pub struct Context {
    pub project: Project,
    pub config: Config,
    pub disk: Arc<DiskFs>,
    /// What this user's state is sealed with; none before anything was sealed.
    pub key: Option<Key>,
    /// A person said that state which is not sealed may be continued.
    pub accepts_foreign: bool,
    /// Which of the project's definitions this user has trusted.
    pub trust: Trust,
}

impl Context {
    /// The nearest parent with `.sage` or `sage.toml`, else the directory itself.
    pub fn find(directory: Option<&Path>) -> Result<Context, Failure> {
        let given = directory.unwrap_or(Path::new("."));
        let start = given.canonicalize().map_err(|error| {
            Failure::usage(format!("cannot use the directory `{}`: {error}", given.display()))
        })?;
        if !start.is_dir() {
            return Err(Failure::usage(format!("`{}` is not a directory", given.display())));
        }
        let root = root_of(&start).to_path_buf();
        owner::check(&root, &start)?;
        let trust = Trust::load(user::dir(), &root);
        let config = Config::load(&root, &trust)?;
        let (project, disk) = (project_at(root), Arc::new(DiskFs::default()));
        Ok(Context { project, config, disk, key: user::key(), accepts_foreign: false, trust })
    }

    /// For a command that writes state: what it writes is sealed.
    pub fn seal_state(&mut self) {
        match user::make_key() {
            Ok(key) => self.key = Some(key),
            Err(why) => eprintln!(
                "note: state is not sealed ({why}); to resume a run, you will be asked to confirm it"
            ),
        }
    }

    pub fn records(&self) -> Records {
        Records::new(&self.project.state(), self.key.as_ref())
    }

    /// Limits that other runs of the project share, and per provider other projects of the user.
    pub fn limits(&self) -> Limits {
        let config = LimitsConfig {
            targets: self.config.targets.named.clone(),
            default_target: self.config.targets.default.clone(),
            ageing_ms: self.config.ageing_ms,
        };
        Limits::shared(config, self.project.limits(), self.user_state().join("limits"))
    }

    /// What projects of this user share; without a home directory it is the project's alone.
    fn user_state(&self) -> PathBuf {
        user::dir().unwrap_or_else(|| self.project.state().join("user"))
    }

    pub fn inbox(&self) -> Inbox {
        Inbox::open(self.project.inbox())
    }

    /// Also one that is switched off can be looked at.
    pub fn cache(&self) -> Cache {
        let config = self.config.cache.unwrap_or_default();
        Cache::new(self.disk.clone(), self.project.cache(), config, self.key.clone())
    }

    fn executor(&self) -> ExecutorConfig {
        let untrusted = &self.config.untrusted;
        let names =
            |kind: &str| untrusted.iter().filter_map(|it| Some(it.name.strip_prefix(kind)?.into())).collect();
        let untrusted = Untrusted { agents: names("agents."), servers: names("mcp.") };
        let mut agents = self.config.agents();
        agents.retain(|name, _| !untrusted.agents.contains(name));
        // What was trusted is the program of the project, not one of the same name in a step's folder or worktree.
        for program in agents.values_mut().filter_map(|agent| agent.command.first_mut()) {
            if program.contains('/') {
                *program = self.project.root.join(&program).display().to_string();
            }
        }
        ExecutorConfig {
            agents,
            untrusted,
            servers: self.config.servers.known.clone(),
            named_servers: self.named_servers(),
            trusted_parts: self.trusted_parts(),
            key: self.key.clone(),
            tools: Some(self.project.state().join("tools")),
            sessions: self.config.switches.sessions.then(|| self.project.sessions()),
            worktrees: Some(self.project.dir.join("worktrees")),
            wakes: self.config.switches.wakes.then(|| Arc::new(Reports(self.inbox())) as _),
            private: vec![self.project.dir.clone(), self.user_state()],
            ..ExecutorConfig::default()
        }
    }

    /// Servers for agents that name them.
    fn named_servers(&self) -> NamedServers {
        let (servers, root) = (self.config.servers.clone(), self.project.root.clone());
        NamedServers::new(move |name| servers.named(name, &root))
    }

    /// Parts of the project's own configuration of agents that steps may switch on. Nothing is nothing to trust.
    fn trusted_parts(&self) -> TrustedParts {
        let (trust, root) = (self.trust.clone(), self.project.root.clone());
        TrustedParts::new(move |part| agent_files::untrusted(&root, &trust, &[part]).is_empty())
    }

    pub fn sessions(&self) -> sage_agents::session::Store {
        sage_agents::session::Store::new(self.project.sessions(), self.key.clone())
    }

    /// The way to the MCP servers, for whoever needs them without a run. Starts nothing.
    pub fn hub(&self) -> Arc<Hub> {
        Arc::new(self.executor().hub(self.project.root.clone()))
    }

    /// Code mode for the project, over the servers of a hub.
    pub fn code_mode(&self, hub: Arc<Hub>, author: Author) -> CodeMode {
        let rules = self.config.approvals.rules.clone();
        self.code_over(HubTools::new(Guard::new(hub, self.limits()), rules, author))
    }

    fn code_over(&self, tools: HubTools) -> CodeMode {
        let store = super::skills::store(&self.project, self.disk.clone(), self.key.as_ref());
        let skills = ProjectSkills::new(store, super::skills::known_secrets());
        CodeMode::new(Arc::new(tools), skills)
    }

    /// For models without a program around them: tools as code instead of the definitions of all servers.
    fn with_code(&self, config: ExecutorConfig, hub: &Arc<Hub>, limits: &Limits) -> ExecutorConfig {
        if config.servers.is_empty() {
            return config;
        }
        let rules = &self.config.approvals.rules;
        let guard = || Guard::new(Arc::clone(hub), limits.clone());
        let tools = || HubTools::new(guard(), rules.clone(), Author::Model);
        let all = Arc::new(self.code_over(tools()));
        let reading = Arc::new(self.code_over(tools().only_reading()));
        let (context, named) = (self.clone(), (Arc::clone(hub), limits.clone(), rules.clone()));
        let more = MoreTools::new(move |access, servers| {
            let Some(servers) = servers else {
                let mode = if access.write { &all } else { &reading };
                return Box::new(CodeTools::new(Arc::clone(mode)));
            };
            let (hub, limits, rules) = &named;
            let guard = Guard::new(Arc::clone(hub), limits.clone());
            let tools = HubTools::new(guard, rules.clone(), Author::Model).only(servers);
            let tools = if access.write { tools } else { tools.only_reading() };
            Box::new(CodeTools::new(Arc::new(context.code_over(tools))))
        });
        ExecutorConfig { more_tools: Some(more), ..config }
    }

    /// One that remembers nothing, for a look.
    pub fn forgetful_hub(&self) -> Arc<Hub> {
        let config = ExecutorConfig { tools: None, ..self.executor() };
        Arc::new(config.hub(self.project.root.clone()))
    }

    /// What answers agents, for as long as somebody may be there to do it.
    pub fn approvals(&self, attendance: Attendance) -> Approvals {
        let known = OfProject::new(&self.config.file, &self.project.root);
        self.config.approvals.approvals(attendance, Arc::new(known))
    }

    pub fn engine(&self) -> Engine {
        let (hub, limits) = (self.hub(), self.limits());
        let config = self.with_code(self.executor(), &hub, &limits);
        Engine {
            project: self.project.clone(),
            vfs: self.disk.clone(),
            key: self.key.clone(),
            accepts_foreign: self.accepts_foreign,
            executor: Arc::new(Executor::with_hub(config, hub)),
            clock: Clock::System,
            commit: CommitMode::Thread,
            limits,
            affinity: self.config.affinity.clone().into(),
            prices: Arc::new(self.config.prices()),
            min_free_bytes: self.config.min_free_bytes,
            approvals: Arc::new(self.approvals(Attendance::of(false))),
            wakes: self.config.switches.wakes.then(|| self.inbox()),
            cache: self.config.cache.map(|_| self.cache()),
            evaluator: Arc::new(sage_agents::Evaluators::new(crate::code::program())),
            scripts: Some(Arc::new(sage_script::workflow::Scripts)),
            script_limits: self.config.scripts,
            sweep: |run| {
                let swept = sage_agents::sweep(run, None);
                (swept.killed, swept.left)
            },
        }
    }
}

/// The project at a real path, with `.sage`, or the directory that `SAGE_DIR` names.
pub fn project_at(root: PathBuf) -> Project {
    let named = std::env::var_os("SAGE_DIR").filter(|dir| !dir.is_empty());
    let dir = named.map_or_else(|| root.join(".sage"), |dir| root.join(dir));
    let is_inside = dir.starts_with(&root) && !dir.components().any(|part| part == Component::ParentDir);
    // Links outside of the project are the user's own; those in it are nobody's to follow.
    let dir = match (dir.parent(), dir.file_name()) {
        (Some(above), Some(name)) if !is_inside => sage_fence::real_dir(above).join(name),
        _ => dir,
    };
    Project::new(root, dir)
}

/// Every running step needs a handful of descriptors, and the usual soft limit of 1,024 is for other programs.
const DESCRIPTORS: u64 = 65_536;

/// Asks for more descriptors, as far as we may; what is left then limits how many steps can run at once.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if limit.current.is_some_and(|now| now < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// The runtime of commands that run or signal.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    raise_descriptors();
    super::threads::runtime().map_err(|error| {
        Failure::failed(format!("cannot start threads: {error}"))
            .hint("ulimit -u    (shows the limit of processes and threads)")
    })
}
