//! `sage agents`: who can work here: installed, logged in, able to do what.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sage_agents::AgentConfig;
use sage_agents::agent::{Agent, Auth, Capabilities, Fit, Probe, Tested, adapter};
use sage_core::diagnostic::printable;
use sage_core::wire::{AllowanceView, allowance_text};
use sage_engine::clock::Clock;
use serde::Serialize;
use serde_json::json;

use super::context::{self, Context};
use super::failure::Failure;
use super::table::print_table;
use super::{allowances, install, print, print_json};
use crate::display::text::clean;
use crate::trust::{Definition, brief};

/// For one agent; they are all asked at once.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One agent as people and programs see it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub name: String,
    pub adapter: String,
    /// In `sage.toml`.
    pub configured: bool,
    pub state: State,
    /// Or the address of an endpoint.
    pub program: Option<String>,
    pub version: Option<String>,
    /// The oldest and the newest version that was tested: `2.1.200 to 2.1.325`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
    pub auth: Auth,
    pub capabilities: Capabilities,
    pub provider: Option<String>,
    /// How much of its account is used, as far as runs of the project know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowances: Vec<AllowanceView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Ready,
    /// It is there; whether it is logged in only a call would tell.
    Installed,
    NoLogin,
    Missing,
    /// Older than every version that was tested.
    TooOld,
    /// The project defines it, and the user has not trusted it: it was not probed.
    NotTrusted,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Installed => "installed",
            State::NoLogin => "no login",
            State::Missing => "missing",
            State::TooOld => "too old",
            State::NotTrusted => "not trusted",
        }
    }
}

impl Row {
    /// Does work that a person would pay for; the scripted agent and bare programs of steps do not count.
    pub fn is_usable(&self) -> bool {
        let own = matches!(self.adapter.as_str(), "fake" | "foreign" | "offline");
        let real = !own && (self.adapter != "command" || self.configured);
        real && self.can_start()
    }

    /// A step that names it does not fail at once.
    pub fn can_start(&self) -> bool {
        matches!(self.state, State::Ready | State::Installed)
    }

    /// `ready, 2.1.0`
    pub fn told(&self) -> String {
        let version = self.version.as_deref().map(|version| format!(", {}", printable(version)));
        format!("{}{}", self.state.text(), version.unwrap_or_default())
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let mut rows = probe_all(context)?;
    let used = allowances::newest(&context.engine(), Clock::System.now_ms());
    for row in &mut rows {
        let own = used.get(&row.name).into_iter().flatten();
        row.allowances = own.map(|allowance| AllowanceView::new(&row.name, allowance)).collect();
    }
    if args.json {
        print_json(&json!({"type": "agents", "agents": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    table(&rows);
    for (agent, allowances) in &used {
        allowances.iter().for_each(|it| print(format_args!("{}\n", clean(&allowance_text(agent, it)))));
    }
    for row in &rows {
        row.hint.iter().for_each(|hint| eprintln!("hint: {}: {}", row.name, printable(hint)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Every built-in and every configured agent, by name.
pub fn probe_all(context: &Context) -> Result<Vec<Row>, Failure> {
    let built_in = AgentConfig::BUILT_IN
        .iter()
        .filter_map(|name| Some(((*name).to_string(), AgentConfig::built_in(name)?)));
    let mut agents: BTreeMap<String, AgentConfig> = built_in.collect();
    agents.extend(context.config.agents());
    let runtime = context::runtime()?;
    let rows = runtime.block_on(async {
        let mut probes = tokio::task::JoinSet::new();
        for config in agents.into_values() {
            let context = context.clone();
            probes.spawn(async move { row(&context, config).await });
        }
        probes.join_all().await
    });
    // A program that does not answer must not hold up the end.
    runtime.shutdown_background();
    let mut rows = rows;
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

/// Nothing of it is started, not even to ask for its version.
fn untrusted(context: &Context, config: AgentConfig, definition: &Definition) -> Row {
    Row {
        configured: true,
        provider: context.config.providers.get(&config.name).cloned(),
        capabilities: adapter(&config.adapter).map(Agent::capabilities).unwrap_or_default(),
        state: State::NotTrusted,
        program: config.command.first().cloned().or(config.url),
        version: None,
        tested: None,
        allowances: Vec::new(),
        auth: Auth::Unknown,
        hint: Some(format!("{} {}; to trust it, type: sage trust", definition.place(), brief(definition))),
        name: config.name,
        adapter: config.adapter,
    }
}

async fn row(context: &Context, config: AgentConfig) -> Row {
    if let Some(definition) = context.config.untrusted_agent(&config.name) {
        return untrusted(context, config, definition);
    }
    let speaks = adapter(&config.adapter);
    let probe = match speaks {
        Some(agent) => patient(agent, context, &config).await,
        None => without_adapter(context, &config),
    };
    let tested = Tested::of(&config);
    let fit = tested.zip(probe.version.as_deref()).and_then(|(tested, version)| tested.fit(version));
    let is_own = matches!(config.adapter.as_str(), "fake" | "command" | "offline");
    let state = match (&probe.found, probe.auth) {
        _ if speaks.is_none() && !is_own => State::Missing,
        (None, _) if install::program_name(&config).is_some() => State::Missing,
        _ if fit == Some(Fit::TooOld) => State::TooOld,
        (_, Auth::Missing) => State::NoLogin,
        (_, Auth::Unknown) if !is_own => State::Installed,
        _ => State::Ready,
    };
    Row {
        configured: context.config.file.agents.contains_key(&config.name),
        provider: context.config.providers.get(&config.name).cloned(),
        capabilities: speaks.map(Agent::capabilities).unwrap_or_default(),
        state,
        program: probe.found,
        hint: unfit(fit, tested, probe.hint),
        version: probe.version,
        tested: tested.map(Tested::range),
        allowances: Vec::new(),
        auth: probe.auth,
        name: config.name,
        adapter: config.adapter,
    }
}

/// What to do about a version that was not tested, before anything else; a newer one usually works.
fn unfit(fit: Option<Fit>, tested: Option<&Tested>, hint: Option<String>) -> Option<String> {
    let Some(tested) = tested else { return hint };
    match (fit, hint) {
        (Some(Fit::TooOld), _) => {
            Some(format!("versions {} were tested; {}", tested.range(), tested.update()))
        }
        (Some(Fit::Newer), None) => {
            Some(format!("newer than the versions that were tested ({})", tested.range()))
        }
        (_, hint) => hint,
    }
}

async fn patient(agent: &dyn Agent, context: &Context, config: &AgentConfig) -> Probe {
    let found = config.program(&config.adapter, &context.project.root);
    let found_text = found.as_ref().map(|path| path.display().to_string());
    // `PATH` may lead into the project, which has not defined it as an agent.
    let root = &context.project.root;
    let is_inside =
        |path: &Path| path.starts_with(root) || path.canonicalize().is_ok_and(|path| path.starts_with(root));
    let is_bare = config.command.first().is_none_or(|program| !program.contains('/'));
    if is_bare && found.is_some_and(|path| is_inside(&path)) {
        let hint = Some("it is a file of the project: looking does not start it".to_string());
        return Probe { found: found_text, hint, ..Probe::default() };
    }
    let late = || Probe {
        found: found_text.clone(),
        hint: Some(format!("it does not answer within {} s", PATIENCE.as_secs())),
        ..Probe::default()
    };
    tokio::time::timeout(PATIENCE, agent.probe(config)).await.unwrap_or_else(|_| late())
}

/// Plain programs, which have no version and no login that anybody knows of.
fn without_adapter(context: &Context, config: &AgentConfig) -> Probe {
    let found = config.command.first().and_then(|_| config.program("", &context.project.root));
    let hint = match config.adapter.as_str() {
        "fake" | "offline" => None,
        "command" => install::missing(config, &context.project.root).map(|program| install::hint(&program)),
        other => Some(format!("this sage has no adapter `{other}`")),
    };
    Probe { found: found.map(|path| path.display().to_string()), hint, ..Probe::default() }
}

fn abilities(row: &Row) -> String {
    let can = row.capabilities;
    let words = [
        (can.resume, "resume"),
        (can.fork, "fork"),
        (can.asks, "asks"),
        (can.schema, "schema"),
        (can.live_usage, "usage"),
        (can.max_turns, "turns"),
        (can.max_budget, "budget"),
        (can.questions, "questions"),
        (can.plans, "plan"),
        (can.effort, "effort"),
        (can.agent_types, "agentType"),
        (can.project, "project"),
        (can.mcp, "mcp"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).collect();
    if words.is_empty() { "-".into() } else { words.join(" ") }
}

fn table(rows: &[Row]) {
    let text = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_string(), printable);
    let program = |row: &Row| match row.adapter.as_str() {
        "fake" | "offline" => "(built in)".to_string(),
        "command" if row.program.is_none() && row.state == State::Ready => "(named by the step)".to_string(),
        _ => text(&row.program),
    };
    let head = ["AGENT", "STATE", "VERSION", "PROVIDER", "CAN", "PROGRAM"].map(str::to_string);
    let mut lines = vec![head];
    lines.extend(rows.iter().map(|row| {
        let state = row.state.text().to_string();
        [row.name.clone(), state, text(&row.version), text(&row.provider), abilities(row), program(row)]
    }));
    print_table(&lines);
}
