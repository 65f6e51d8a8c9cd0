//! An agent as the project's configuration describes it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::outcome::Miss;
use crate::params::variable;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    pub name: String,
    /// Which protocol it speaks: `claude`, `codex`, `acp`, `llm`, `command`, `foreign`, `offline`, `fake`.
    pub adapter: String,
    /// The program and arguments that come first; empty means the adapter's own.
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Where a step names none.
    pub model: Option<String>,
    pub max_turns: Option<u32>,
    /// Of an `llm` agent: `anthropic`, `responses` or `chat`.
    pub api: Option<String>,
    /// Address of the endpoint.
    pub url: Option<String>,
    /// Name of the variable that holds the key; never the key itself.
    pub api_key_env: Option<String>,
    /// MCP servers of its own, in the form of `.mcp.json`. It sees no others but those of `mcp`.
    pub mcp_servers: Map<String, Value>,
    /// Names of MCP servers that it is given, where a step names none.
    pub mcp: Vec<String>,
    /// Of a `fake` agent, where a step brings none: a list of turns, or a file of the project.
    pub script: Option<Value>,
}

impl AgentConfig {
    /// Agents that need no configuration: it is enough that their program is there.
    pub const BUILT_IN: &[&str] = &["claude", "codex", "command", "fake", "foreign", "gemini", "offline"];

    pub fn built_in(name: &str) -> Option<AgentConfig> {
        let (adapter, command): (&str, &[&str]) = match name {
            "claude" | "codex" | "command" | "fake" | "foreign" | "offline" => (name, &[]),
            "gemini" => ("acp", &["gemini", "--acp"]),
            _ => return None,
        };
        let command = command.iter().map(ToString::to_string).collect();
        Some(AgentConfig { name: name.into(), adapter: adapter.into(), command, ..AgentConfig::default() })
    }

    /// Its program with arguments, or the adapter's own.
    pub fn argv(&self, own: &str) -> Vec<OsString> {
        if self.command.is_empty() {
            return vec![own.into()];
        }
        self.command.iter().map(OsString::from).collect()
    }

    /// Its program as a person would start it, with those of its variables that say where it keeps its conversations.
    pub fn typed(&self, own: &str, homes: &[&str], arguments: &[&str]) -> Vec<String> {
        let homes = homes.iter().filter_map(|name| Some(format!("{name}={}", self.env.get(*name)?)));
        let mut homes: Vec<String> = homes.collect();
        if !homes.is_empty() {
            homes.insert(0, "env".into());
        }
        let program = match self.command.as_slice() {
            [] => vec![own.to_string()],
            command => command.to_vec(),
        };
        homes.into_iter().chain(program).chain(arguments.iter().map(ToString::to_string)).collect()
    }

    /// Whether it is this program, also behind an interpreter.
    pub fn runs(&self, program: &str) -> bool {
        let is = |word: &String| Path::new(word).file_stem().is_some_and(|name| name == program);
        self.command.iter().take(2).any(is)
    }

    pub fn variables(&self) -> Result<Vec<(OsString, OsString)>, Miss> {
        self.env.iter().map(|(name, value)| variable(name, &Value::String(value.clone()))).collect()
    }

    /// A variable as the agent will see it: the configuration's, else this process's.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned().or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
    }
}
