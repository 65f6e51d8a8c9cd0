//! What an agent is asked to do in one turn: everything is decided, an adapter only translates.

use std::ffi::OsString;
use std::path::PathBuf;

use sage_core::port::{PromptFile, Usage};
use sage_core::role::{Access, Role};
use serde_json::{Map, Value};

use super::{AgentConfig, ProjectPart};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::params::Params;

#[derive(Clone, Debug)]
pub struct Order {
    pub config: AgentConfig,
    pub prompt: String,
    /// Files of the prompt; none where the agent has got them before.
    pub files: Vec<PromptFile>,
    pub system: Option<String>,
    pub model: Option<String>,
    /// The answer shall be JSON that fits this.
    pub schema: Option<Value>,
    /// What its role lets it do. Enforced by tools and sandbox, not by words.
    pub access: Access,
    /// Tools that it may use without asking, in the agent's own spelling; from `params.tools`.
    pub tools: Vec<String>,
    pub conversation: Conversation,
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    pub max_turns: Option<u32>,
    /// One of the agent's own agents, by name.
    pub agent_type: Option<String>,
    /// How much it thinks.
    pub effort: Option<String>,
    pub max_budget_usd: Option<f64>,
    /// Whether it may ask a person something; without a word about it, as its adapter does by itself.
    pub questions: Option<bool>,
    /// It plans first, and works when its plan is approved.
    pub plans: bool,
    /// What of the project's own configuration of the agent counts.
    pub project: Vec<ProjectPart>,
    /// Its own and those that were named, in the form of `.mcp.json`.
    pub mcp_servers: Map<String, Value>,
    /// Names of MCP servers, if the step or the agent names some.
    pub mcp: Option<Vec<String>>,
    /// Where the session keeps its files; of agents that keep their own conversations nothing is there.
    pub session_dir: Option<PathBuf>,
}

/// Which conversation the turn belongs to. Ids are the agent's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Conversation {
    /// `id` is ours, a UUID, for agents that let us choose.
    New { id: String },
    /// `counters` are what the agent had counted when the conversation last stopped.
    Resume { id: String, counters: Option<Usage> },
    /// A copy of `of` as it is now, under the new `id`.
    Fork { of: String, id: String, counters: Option<Usage> },
}

impl Conversation {
    /// Of the conversation that the turn belongs to, also if that is a new one.
    pub fn id(&self) -> &str {
        match self {
            Conversation::New { id } | Conversation::Resume { id, .. } | Conversation::Fork { id, .. } => id,
        }
    }
}

fn plans(params: Params<'_>) -> Result<bool, Miss> {
    match params.text("mode")? {
        None => Ok(false),
        Some("plan") => Ok(true),
        Some(other) => Err(Miss::invalid(format!("unknown `mode` `{other}`; known: plan"))),
    }
}

/// Files that look like a repository are none: git would run programs that their `config` names.
fn git_settings(env: &[(OsString, OsString)]) -> [(OsString, OsString); 3] {
    let given = env.iter().rev().find(|(name, _)| name == "GIT_CONFIG_COUNT").map(|(_, value)| value.clone());
    let given = given.or_else(|| std::env::var_os("GIT_CONFIG_COUNT"));
    let count: usize = given.and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    [
        ("GIT_CONFIG_COUNT".into(), (count + 1).to_string().into()),
        (format!("GIT_CONFIG_KEY_{count}").into(), "safe.bareRepository".into()),
        (format!("GIT_CONFIG_VALUE_{count}").into(), "explicit".into()),
    ]
}

impl Order {
    pub fn new(
        attempt: &Attempt<'_>,
        config: &AgentConfig,
        prompt: String,
        conversation: Conversation,
    ) -> Result<Order, Miss> {
        let params = attempt.params();
        let mut env = config.variables()?;
        env.extend(params.env("env")?);
        let max_turns = params.count("maxTurns")?.or(config.max_turns);
        let named = params.get("mcp").map(|_| params.words("mcp")).transpose()?;
        let named = named.or_else(|| (!config.mcp.is_empty()).then(|| config.mcp.clone()));
        let mut mcp_servers = config.mcp_servers.clone();
        for name in named.iter().flatten() {
            let server = attempt.config.named_servers.find(name).ok_or_else(|| {
                let message =
                    format!("there is no trusted MCP server `{name}`; hint: sage trust, or sage doctor");
                Miss::invalid(message)
            })?;
            mcp_servers.insert(name.clone(), server);
        }
        Ok(Order {
            config: config.clone(),
            prompt,
            files: attempt.call.files.clone(),
            system: params.text("system")?.map(str::to_string),
            model: attempt.call.model.clone().or_else(|| config.model.clone()),
            schema: attempt.call.schema.clone(),
            access: attempt.call.role.unwrap_or(Role::Implementer).access(),
            tools: params.texts("tools")?,
            conversation,
            cwd: attempt.cwd()?,
            env,
            max_turns,
            agent_type: params.text("agentType")?.map(str::to_string),
            effort: params.text("effort")?.map(str::to_string),
            max_budget_usd: params.number("maxBudgetUsd")?,
            questions: params.get("questions").map(|_| params.flag("questions")).transpose()?,
            plans: plans(params)?,
            project: attempt.config.trusted_parts.wanted(params)?,
            mcp_servers,
            mcp: named,
            session_dir: None,
        })
    }

    /// What its program is given: its variables, and that git does as the rules about its commands expect.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.env.iter().cloned().chain(git_settings(&self.env)).collect()
    }
}
