//! Configuration: flag > environment > sage.toml > default, each value with the place it came from.

mod alerts;
mod approvals;
mod cache;
mod checks;
mod encryption;
mod file;
mod gc;
mod guarded;
mod named;
mod picked;
mod pools;
mod scripts;
mod servers;
mod shown;
mod targets;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use sage_agents::{AgentConfig, text_file};
use sage_core::alert::Thresholds;
use sage_core::budget::Cap;
use sage_core::diagnostic::did_you_mean;
use sage_core::price::PriceTable;
use sage_core::read::Binding;
use sage_engine::cache::CacheConfig;
use sage_engine::run_loop::Affinity;
use serde_json::Value;

use super::failure::Failure;
use crate::trust::{Definition, Trust};
use approvals::Inherited;
pub use approvals::{Answers, Attendance};
pub use encryption::refusal as no_encryption;
pub use file::File;
use file::{AgentFile, OperationFile, Size, Time};
pub use gc::GcConfig;
use picked::pick;
pub use servers::Servers;
pub use shown::rates_text;
pub use targets::{Targets, check_name, known_agents};
pub use values::{bytes, duration, priority};
use values::{plain_name, time, wrong};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
    pub source: String,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub file: File,
    pub parallel: u32,
    pub parallel_enabled: bool,
    pub switches: Switched,
    pub approvals: Answers,
    pub timeout: Timeout,
    pub budget: Option<Cap>,
    pub priority: Option<u8>,
    /// With less free memory, fewer steps run at once; 0 does not look.
    pub min_free_bytes: u64,
    pub ageing_ms: u64,
    pub pools: BTreeMap<String, u32>,
    /// The provider, with account, behind each agent that has one.
    pub providers: BTreeMap<String, String>,
    pub agent_budgets: BTreeMap<String, Cap>,
    pub targets: Targets,
    pub affinity: Vec<Affinity>,
    pub gc: GcConfig,
    pub scripts: sage_core::port::script::ScriptLimits,
    /// `None` if it is switched off.
    pub cache: Option<CacheConfig>,
    /// Only where the file says something about them.
    pub alerts: Option<Thresholds>,
    pub servers: Servers,
    /// The variable that asks for encrypted state, which there is none of.
    pub encryption: Option<&'static str>,
    /// Programs, addresses and rules of the project that need a person's trust.
    pub defined: Vec<Definition>,
    /// Those of them that have none: they are shown, and nothing else.
    pub untrusted: Vec<Definition>,
    /// Settings among them: the file holds as if they were not in it.
    pub ignored: Vec<Definition>,
    pub settings: Vec<Setting>,
}

/// How long a run may work.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    pub ms: u64,
    /// The user said it: it holds for templates that come with Sage, which have times of their own.
    pub is_given: bool,
}

/// More is no configuration.
pub const MAX_BYTES: u64 = 1 << 20;
const DEFAULT_TIMEOUT: &str = "10m";
const DEFAULT_MIN_MEMORY: &str = "256MB";
const DEFAULT_AGEING: &str = "60s";
const FROM_FILE: &str = "sage.toml";
const FROM_NOWHERE: &str = "default";

impl Config {
    /// `trust` decides which of the project's programs and rules count.
    pub fn load(root: &Path, trust: &Trust) -> Result<Config, Failure> {
        let path = root.join(FROM_FILE);
        let text = match text_file::read_in(root, &path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::usage(format!("cannot read `{}`: {error}", path.display()))),
        };
        let wrong = |error: toml::de::Error| {
            Failure::usage(format!("`{}`: {}", path.display(), error.to_string().trim_end()))
        };
        let file = toml::from_str(&text).map_err(wrong)?;
        let written = toml::from_str(&text).map_err(wrong)?;
        Config::from(file, &written, root, trust)
    }

    fn from(mut file: File, written: &Value, root: &Path, trust: &Trust) -> Result<Config, Failure> {
        let guarded = guarded::put_aside(&mut file, written, trust)?;
        let mut settings = Vec::new();
        let parallel = pick(
            &mut settings,
            "parallel",
            &["SAGE_PARALLEL_LIMIT"],
            file.parallel.map(|n| n.to_string()),
            pools::cores().clamp(4, 6).to_string(),
        )
        .count()?;
        file.timeout.as_ref().map_or(Ok(()), |timeout| values::check_unit("timeout", timeout))?;
        let given = file.timeout.as_ref().map(Time::text);
        let timeout =
            pick(&mut settings, "timeout", &["SAGE_WORKFLOW_TIMEOUT"], given, DEFAULT_TIMEOUT.into());
        let timeout = Timeout { ms: timeout.time_ms(DEFAULT_TIMEOUT)?, is_given: timeout.is_given() };
        let switches = switches(&mut settings, &file)?;
        pick(&mut settings, "agent", &[], file.agent.clone(), "offline".into());
        pick(&mut settings, "template", &[], file.template.clone(), "feature".into());
        pick(&mut settings, "budget", &[], file.budget.clone(), "(none)".into());
        pick(&mut settings, "priority", &[], file.priority.clone(), "P2".into());
        let given = file.min_memory.as_ref().map(Size::text);
        let min_memory = pick(&mut settings, "minMemory", &[], given, DEFAULT_MIN_MEMORY.into());
        let ageing = file.ageing.clone().unwrap_or_else(|| Time::Text(DEFAULT_AGEING.into()));
        pick(&mut settings, "ageing", &[], file.ageing.as_ref().map(Time::text), DEFAULT_AGEING.into());
        let pools = pools(&mut settings, &file)?;
        let providers = providers(&mut settings, &file)?;
        check_commands(&file)?;
        shown::agents(&mut settings, &file);
        let targets = Targets::of(&file, &providers)?;
        shown::targets(&mut settings, &file, &targets);
        tell_prices(&mut settings, &file);
        let cache = cache::read(&mut settings, &file)?;
        checks::check(&mut settings, &file)?;
        let servers = Servers::of(&file, written, root, trust)?;
        shown::servers(&mut settings, &file, &servers);
        let inherited = Inherited::read(&file.approvals, root);
        let defined = [definitions(&file, written, &servers, &inherited, root), guarded.clone()].concat();
        let open = |all: &[Definition]| all.iter().filter(|it| !trust.holds(it)).cloned().collect::<Vec<_>>();
        let (untrusted, ignored) = (open(&defined), open(&guarded));
        let approvals = Answers::of(&mut settings, &file, inherited, &untrusted)?;
        Ok(Config {
            encryption: encryption::wanted(&mut settings)?,
            alerts: alerts::read(&mut settings, &file)?,
            parallel,
            parallel_enabled: switches.parallel,
            switches,
            approvals,
            timeout,
            budget: file.budget.as_deref().map(|text| values::budget("budget", text)).transpose()?,
            priority: file.priority.as_deref().map(|text| priority_of("priority", text)).transpose()?,
            min_free_bytes: bytes(&min_memory.value)
                .map_err(|why| wrong("minMemory", why).hint("minMemory = \"512MB\", or \"0\" to not look"))?,
            ageing_ms: time("ageing", &ageing)?,
            affinity: affinity(&mut settings, &file, &pools)?,
            agent_budgets: agent_budgets(&file)?,
            gc: gc::of(&mut settings, &file)?,
            scripts: scripts::of(&mut settings, &file)?,
            pools,
            providers,
            defined,
            untrusted,
            ignored,
            servers,
            targets,
            cache,
            file,
            settings,
        })
    }

    /// An agent that may not work here yet.
    pub fn untrusted_agent(&self, name: &str) -> Option<&Definition> {
        self.untrusted.iter().find(|it| it.name.strip_prefix("agents.") == Some(name))
    }

    /// A server that may not be started here yet.
    pub fn untrusted_server(&self, name: &str) -> Option<&Definition> {
        self.untrusted.iter().find(|it| it.name.strip_prefix("mcp.") == Some(name))
    }

    /// `[checks]` that nobody has trusted.
    pub fn untrusted_checks(&self) -> Option<&Definition> {
        self.ignored.iter().find(|it| it.name == "checks")
    }

    /// All agents that the project names, trusted or not.
    pub fn agents(&self) -> BTreeMap<String, AgentConfig> {
        let agent = |(name, agent): (&String, &AgentFile)| {
            // A built-in agent may be given limits, variables or a program of its own; it speaks as it did.
            let own = AgentConfig::built_in(name).unwrap_or_default();
            let adapter = agent.adapter.clone().unwrap_or(own.adapter);
            let config = AgentConfig {
                name: name.clone(),
                adapter: if adapter.is_empty() { "command".into() } else { adapter },
                command: agent.command.clone().unwrap_or(own.command),
                env: agent.env.clone(),
                model: agent.model.clone(),
                max_turns: agent.max_turns,
                api: agent.api.clone(),
                url: agent.url.clone(),
                api_key_env: agent.api_key_env.clone(),
                mcp_servers: agent.mcp_servers.clone(),
                mcp: agent.mcp.clone(),
                script: agent.script.clone(),
            };
            (name.clone(), config)
        };
        self.file.agents.iter().map(agent).collect()
    }

    /// Named operations that tools of servers carry out.
    pub fn bindings(&self) -> BTreeMap<String, Binding> {
        let binding = |(name, bound): (&String, &OperationFile)| {
            let binding = Binding {
                server: bound.server.clone(),
                tool: bound.tool.clone(),
                arguments: bound.arguments.clone(),
                on_unknown: bound.on_unknown.clone(),
                is_checked: bound.schema != Some(false),
            };
            (name.clone(), binding)
        };
        self.file.operations.iter().map(binding).collect()
    }

    /// The built-in prices and those of the project.
    pub fn prices(&self) -> PriceTable {
        PriceTable::built_in().with(self.file.prices.clone())
    }
}

/// The definition of `[approvals]`.
const APPROVALS: &str = "approvals";

/// All that the project defines and that would start or send something, or answer for a person.
fn definitions(
    file: &File,
    written: &Value,
    servers: &Servers,
    inherited: &Inherited,
    root: &Path,
) -> Vec<Definition> {
    let agents = written["agents"].as_object().into_iter().flatten();
    let agents = agents.filter_map(|(name, agent)| Definition::agent(root, name, FROM_FILE, agent));
    let rules = file.approvals.grants().then(|| Definition::approvals(FROM_FILE, &written[APPROVALS]));
    servers.defined.iter().cloned().chain(agents).chain(rules).chain(inherited.defined.clone()).collect()
}

/// What is switched on: each can be switched off without harm to the others.
#[derive(Clone, Copy, Debug)]
pub struct Switched {
    /// Steps may run at once at all.
    pub parallel: bool,
    pub background: bool,
    pub wakes: bool,
    pub sessions: bool,
}

fn switches(settings: &mut Vec<Setting>, file: &File) -> Result<Switched, Failure> {
    let given = &file.switches;
    let switches = [
        ("switches.parallel", ["SAGE_PARALLEL", "ENABLE_PARALLEL_EXECUTION"], given.parallel),
        ("switches.background", ["SAGE_BACKGROUND", "ENABLE_BACKGROUND_AGENTS"], given.background),
        ("switches.wakes", ["SAGE_WAKES", "ENABLE_WAKE_MESSAGING"], given.wakes),
        ("switches.sessions", ["SAGE_SESSIONS", "ENABLE_SESSION_PERSISTENCE"], given.sessions),
    ];
    let mut on = [true; 4];
    for (on, (name, variables, given)) in on.iter_mut().zip(switches) {
        let value = pick(settings, name, &variables, given.map(|b| b.to_string()), "true".into());
        *on = value.switch().map_err(|failure| not_a_count(failure, name, &value.value))?;
    }
    let [parallel, background, wakes, sessions] = on;
    Ok(Switched { parallel, background, wakes, sessions })
}

/// Somebody who gives a number to the switch means the limit.
fn not_a_count(failure: Failure, name: &str, value: &str) -> Failure {
    match value.trim().parse::<u32>() {
        Ok(count) if name == "switches.parallel" => {
            let hint = format!("SAGE_PARALLEL_LIMIT={count}    (how many steps may run at once)");
            Failure { hints: vec![hint], ..failure }
        }
        _ => failure,
    }
}

fn pools(settings: &mut Vec<Setting>, file: &File) -> Result<BTreeMap<String, u32>, Failure> {
    if let Some((pool, _)) = file.pools.iter().find(|(_, size)| **size == 0) {
        return Err(Failure::usage(format!("pool `{pool}` has no room: its steps would wait for ever"))
            .hint(format!("[pools] {pool} = 1 in sage.toml")));
    }
    let reserved = |name: &&String| *name == "global" || *name == "parallel" || name.contains(':');
    if let Some(name) = file.pools.keys().find(reserved) {
        return Err(wrong("pools", format!("`{name}` cannot be the name of a pool"))
            .hint("`parallel = 4` says how many steps run at once; [targets] limits targets"));
    }
    let mut pools = pools::defaults();
    pools.extend(file.pools.clone());
    for (name, size) in &pools {
        let source = if file.pools.contains_key(name) { FROM_FILE } else { FROM_NOWHERE };
        tell(settings, format!("pools.{name}"), size.to_string(), source);
    }
    Ok(pools)
}

/// Agent -> `provider` or `provider/account`.
fn providers(settings: &mut Vec<Setting>, file: &File) -> Result<BTreeMap<String, String>, Failure> {
    let mut providers: BTreeMap<String, String> = BTreeMap::new();
    let names = targets::known_agents().map(str::to_string).chain(file.agents.keys().cloned());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let agent = file.agents.get(&name);
        let (given, account) =
            agent.map_or((None, None), |agent| (agent.provider.as_deref(), agent.account.as_deref()));
        for (field, text) in [("provider", given), ("account", account)] {
            text.map_or(Ok(()), |text| plain_name(&format!("agents.{name}.{field}"), text))?;
        }
        let own_name = account.map(|_| name.as_str());
        let adapter = agent.and_then(|agent| agent.adapter.as_deref());
        let known = targets::known_provider(&name).or_else(|| targets::known_provider(adapter?));
        let Some(provider) = given.or(known).or(own_name) else { continue };
        let provider =
            account.map_or_else(|| provider.to_string(), |account| format!("{provider}/{account}"));
        if agent.is_some() {
            let source = if given.or(account).is_some() { FROM_FILE } else { FROM_NOWHERE };
            tell(settings, format!("agents.{name}.provider"), provider.clone(), source);
        }
        providers.insert(name, provider);
    }
    Ok(providers)
}

/// An empty command runs nothing; one that is left out may be a step's own affair. A server is started or reached.
fn check_commands(file: &File) -> Result<(), Failure> {
    let empty = |(_, agent): &(&String, &AgentFile)| agent.command.as_ref().is_some_and(Vec::is_empty);
    for (name, agent) in &file.agents {
        for (server, value) in &agent.mcp_servers {
            let key = format!("agents.{name}.mcpServers.{server}");
            servers::refuse_both(value).map_err(|why| wrong(&key, why))?;
        }
    }
    match file.agents.iter().filter(|(name, _)| *name != "fake").find(empty) {
        Some((name, _)) => Err(wrong(&format!("agents.{name}.command"), "it is empty")
            .hint(format!("[agents.{name}] command = [\"program\", \"argument\"] in sage.toml"))),
        None => Ok(()),
    }
}

fn agent_budgets(file: &File) -> Result<BTreeMap<String, Cap>, Failure> {
    let given = file.agents.iter().filter_map(|(name, agent)| Some((name, agent.budget.as_deref()?)));
    given
        .map(|(name, text)| Ok((name.clone(), values::budget(&format!("agents.{name}.budget"), text)?)))
        .collect()
}

fn affinity(
    settings: &mut Vec<Setting>,
    file: &File,
    pools: &BTreeMap<String, u32>,
) -> Result<Vec<Affinity>, Failure> {
    let mut rules = Vec::new();
    for (number, rule) in file.affinity.iter().enumerate() {
        let key = format!("affinity[{number}]");
        if rule.agents.is_empty() {
            return Err(wrong(&key, "it names no agents").hint("agents = [\"claude\", \"codex\"]"));
        }
        if rule.max_concurrent == 0 {
            return Err(wrong(&key, "with `maxConcurrent = 0` its agents would wait for ever")
                .hint("maxConcurrent = 1"));
        }
        if let Some(profile) = rule.resource_profile.as_ref().filter(|name| !pools.contains_key(*name)) {
            let known = || format!("pools: {}", pools.keys().cloned().collect::<Vec<_>>().join(", "));
            return Err(wrong(&key, format!("there is no pool `{profile}`"))
                .hint(did_you_mean(profile, pools.keys().map(String::as_str)).unwrap_or_else(known)));
        }
        let profile = rule.resource_profile.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
        let value = format!("{}: {} at once{profile}", rule.agents.join(", "), rule.max_concurrent);
        tell(settings, key, value, FROM_FILE);
        rules.push(Affinity {
            agents: rule.agents.clone(),
            max_concurrent: rule.max_concurrent,
            profile: rule.resource_profile.clone(),
        });
    }
    Ok(rules)
}

fn tell_prices(settings: &mut Vec<Setting>, file: &File) {
    for (model, price) in &file.prices {
        let usd = |rate: sage_core::price::Rate| rate.micro_usd() as f64 / 1e6;
        let value = format!("{} in, {} out", usd(price.input), usd(price.output));
        tell(settings, format!("prices.{model}"), value, FROM_FILE);
    }
}

fn priority_of(key: &str, text: &str) -> Result<u8, Failure> {
    priority(text).map_err(|why| wrong(key, why).hint(format!("{key} = \"P1\"")))
}

fn tell(settings: &mut Vec<Setting>, name: String, value: String, source: &str) {
    settings.push(Setting { name, value, source: source.into() });
}
