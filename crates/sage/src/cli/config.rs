//! Configuration: flag > environment > sage.toml > default, each value with the place it came from.

use std::collections::BTreeMap;
use std::path::Path;

use sage_agents::AgentConfig;
use serde::Deserialize;

use super::failure::Failure;

/// `sage.toml`; all keys optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct File {
    pub agent: Option<String>,
    pub template: Option<String>,
    pub parallel: Option<u32>,
    pub timeout: Option<Time>,
    pub pools: BTreeMap<String, u32>,
    pub agents: BTreeMap<String, AgentFile>,
    #[serde(rename = "switches")]
    pub switches: Switches,
}

/// Milliseconds, or text such as `"10m"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Time {
    Milliseconds(u64),
    Text(String),
}

impl Time {
    fn text(&self) -> String {
        match self {
            Time::Milliseconds(ms) => ms.to_string(),
            Time::Text(text) => text.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentFile {
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    pub parallel: Option<bool>,
    pub background: Option<bool>,
    pub wakes: Option<bool>,
    pub sessions: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    pub source: String,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub file: File,
    pub parallel: u32,
    pub parallel_enabled: bool,
    pub timeout_ms: Option<u64>,
    pub settings: Vec<Setting>,
}

const DEFAULT_TIMEOUT: &str = "10m";

impl Config {
    pub fn load(root: &Path) -> Result<Config, Failure> {
        let path = root.join("sage.toml");
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                Failure::usage(format!("`{}`: {}", path.display(), error.to_string().trim_end()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
            Err(error) => return Err(Failure::usage(format!("cannot read `{}`: {error}", path.display()))),
        };
        Config::from(file)
    }

    fn from(file: File) -> Result<Config, Failure> {
        if let Some((pool, _)) = file.pools.iter().find(|(_, size)| **size == 0) {
            return Err(Failure::usage(format!("pool `{pool}` has no room: its steps would wait for ever"))
                .hint(format!("[pools] {pool} = 1 in sage.toml")));
        }
        let cores = std::thread::available_parallelism().map_or(4, |n| n.get() as u32);
        let mut settings = Vec::new();
        let parallel = pick(
            &mut settings,
            "parallel",
            &["SAGE_PARALLEL_LIMIT"],
            file.parallel.map(|n| n.to_string()),
            cores.clamp(4, 6).to_string(),
        );
        let parallel = number(&parallel, "SAGE_PARALLEL_LIMIT")?;
        let given = file.timeout.as_ref().map(Time::text);
        let timeout =
            pick(&mut settings, "timeout", &["SAGE_WORKFLOW_TIMEOUT"], given, DEFAULT_TIMEOUT.into());
        let timeout_ms = duration(&timeout)?;
        let switches = [
            ("switches.parallel", ["SAGE_PARALLEL", "ENABLE_PARALLEL_EXECUTION"], file.switches.parallel),
            (
                "switches.background",
                ["SAGE_BACKGROUND", "ENABLE_BACKGROUND_AGENTS"],
                file.switches.background,
            ),
            ("switches.wakes", ["SAGE_WAKES", "ENABLE_WAKE_MESSAGING"], file.switches.wakes),
            ("switches.sessions", ["SAGE_SESSIONS", "ENABLE_SESSION_PERSISTENCE"], file.switches.sessions),
        ];
        let mut parallel_enabled = true;
        for (name, variables, given) in switches {
            let value = pick(&mut settings, name, &variables, given.map(|b| b.to_string()), "true".into());
            let on = switch(&value, variables[0])?;
            if name == "switches.parallel" {
                parallel_enabled = on;
            }
        }
        pick(&mut settings, "agent", &[], file.agent.clone(), "(none)".into());
        pick(&mut settings, "template", &[], file.template.clone(), "feature".into());
        Ok(Config { file, parallel, parallel_enabled, timeout_ms: Some(timeout_ms), settings })
    }

    pub fn agents(&self) -> BTreeMap<String, AgentConfig> {
        let agent = |(name, agent): (&String, &AgentFile)| {
            let config = AgentConfig {
                name: name.clone(),
                adapter: "command".into(),
                command: agent.command.clone(),
                env: agent.env.clone(),
            };
            (name.clone(), config)
        };
        self.file.agents.iter().map(agent).collect()
    }
}

fn pick(
    settings: &mut Vec<Setting>,
    name: &'static str,
    variables: &[&str],
    file: Option<String>,
    default: String,
) -> String {
    let from_env =
        variables.iter().find_map(|var| Some((std::env::var(var).ok().filter(|v| !v.is_empty())?, *var)));
    let (value, source) = match (from_env, file) {
        (Some((value, variable)), _) => (value, format!("environment {variable}")),
        (None, Some(value)) => (value, "sage.toml".into()),
        (None, None) => (default, "default".into()),
    };
    settings.push(Setting { name, value: value.clone(), source });
    value
}

fn number(text: &str, what: &str) -> Result<u32, Failure> {
    match text.parse() {
        Ok(0) | Err(_) => {
            Err(Failure::usage(format!("`{what}` must be a whole number from 1 on, not `{text}`")))
        }
        Ok(n) => Ok(n),
    }
}

fn switch(text: &str, what: &str) -> Result<bool, Failure> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Ok(true),
        "0" | "false" | "off" | "no" => Ok(false),
        _ => Err(Failure::usage(format!("`{what}` must be true or false, not `{text}`"))),
    }
}

/// Milliseconds as a number, or text such as `10m`.
pub fn duration(text: &str) -> Result<u64, Failure> {
    let value = text.parse::<u64>().map_or_else(|_| text.into(), serde_json::Value::from);
    sage_core::duration::from_json(&value).map_err(|error| Failure::usage(error.to_string()))
}
