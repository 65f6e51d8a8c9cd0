//! `sage.toml` as it is written: names and types. What the values mean is checked where they are taken.

use std::collections::BTreeMap;

use sage_core::price::Price;
use serde::Deserialize;

/// `sage.toml`; all keys optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct File {
    pub agent: Option<String>,
    pub template: Option<String>,
    pub parallel: Option<u32>,
    pub timeout: Option<Time>,
    pub budget: Option<String>,
    pub priority: Option<String>,
    pub min_memory: Option<Size>,
    pub ageing: Option<Time>,
    pub pools: BTreeMap<String, u32>,
    pub agents: BTreeMap<String, AgentFile>,
    pub targets: BTreeMap<String, TargetFile>,
    pub affinity: Vec<AffinityFile>,
    pub prices: BTreeMap<String, Price>,
    pub approvals: sage_core::approval::Rules,
    pub switches: Switches,
    pub cache: CacheFile,
    pub checks: ChecksFile,
    pub gc: GcFile,
    pub scripts: ScriptsFile,
    pub alerts: Option<AlertsFile>,
    pub mcp: BTreeMap<String, McpFile>,
    pub operations: BTreeMap<String, OperationFile>,
}

/// How the project is built and tested.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, from = "ChecksTable")]
pub struct ChecksFile {
    pub all: PartFile,
    pub backend: PartFile,
    pub frontend: PartFile,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChecksTable {
    build: Option<Lines>,
    test: Option<Lines>,
    backend: PartFile,
    frontend: PartFile,
}

impl From<ChecksTable> for ChecksFile {
    fn from(table: ChecksTable) -> ChecksFile {
        let ChecksTable { build, test, backend, frontend } = table;
        ChecksFile { all: PartFile { build, test }, backend, frontend }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartFile {
    pub build: Option<Lines>,
    pub test: Option<Lines>,
}

/// A command line, several, or `false` for none.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Lines {
    Switch(bool),
    One(String),
    Many(Vec<String>),
}

/// An MCP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct McpFile {
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub inherit: Vec<String>,
    pub url: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub timeout: Option<Time>,
    pub parallel: Option<u32>,
    pub lifecycle: Option<String>,
}

/// The tool that carries out a named operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationFile {
    pub server: String,
    pub tool: String,
    pub arguments: Option<serde_json::Map<String, serde_json::Value>>,
    pub on_unknown: Option<String>,
    /// `false`: the tool's result has a shape of its own.
    pub schema: Option<bool>,
}

/// What the clean-up leaves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScriptsFile {
    pub memory: Option<Size>,
    pub cpu: Option<Time>,
    pub max_calls: Option<u32>,
    pub max_agents: Option<u32>,
    pub max_items: Option<u32>,
    pub max_living: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct GcFile {
    pub auto: Option<bool>,
    pub older_than: Option<Time>,
    pub keep: Option<usize>,
    pub max_size: Option<Size>,
}

/// Milliseconds, or text such as `"10m"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Time {
    Milliseconds(u64),
    Text(String),
}

impl Time {
    pub fn text(&self) -> String {
        match self {
            Time::Milliseconds(ms) => ms.to_string(),
            Time::Text(text) => text.clone(),
        }
    }
}

/// Bytes, or text such as `"512MB"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub fn text(&self) -> String {
        match self {
            Size::Bytes(bytes) => bytes.to_string(),
            Size::Text(text) => text.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct AgentFile {
    pub adapter: Option<String>,
    pub command: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub model: Option<String>,
    pub max_turns: Option<u32>,
    pub api: Option<String>,
    pub url: Option<String>,
    pub api_key_env: Option<String>,
    pub mcp_servers: serde_json::Map<String, serde_json::Value>,
    pub mcp: Vec<String>,
    pub script: Option<serde_json::Value>,
    pub provider: Option<String>,
    pub account: Option<String>,
    pub budget: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct TargetFile {
    pub concurrent: Option<u32>,
    pub requests_per_minute: Option<u64>,
    pub input_tokens_per_minute: Option<u64>,
    pub output_tokens_per_minute: Option<u64>,
    pub breaker: BreakerFile,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct BreakerFile {
    pub failures: Option<u32>,
    pub open_for: Option<Time>,
    pub successes: Option<u32>,
    pub ratio: Option<RatioFile>,
    pub slow: Option<SlowFile>,
    pub window: Option<Time>,
    pub on: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioFile {
    pub share: f64,
    pub minimum: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowFile {
    pub after: Time,
    pub share: Option<f64>,
    pub minimum: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AffinityFile {
    pub agents: Vec<String>,
    pub max_concurrent: u32,
    pub resource_profile: Option<String>,
}

/// What is not given is as usual.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct AlertsFile {
    pub enabled: Option<bool>,
    pub time_warn: Option<Time>,
    pub time_critical: Option<Time>,
    pub tokens: Option<u64>,
    pub reloads: Option<u32>,
    pub resume: Option<f64>,
    pub errors: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct CacheFile {
    pub enabled: Option<bool>,
    pub ttl: Option<Time>,
    pub max_size: Option<Size>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    pub parallel: Option<bool>,
    pub background: Option<bool>,
    pub wakes: Option<bool>,
    pub sessions: Option<bool>,
}
