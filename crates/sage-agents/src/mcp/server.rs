//! A server as it is configured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::AgentConfig;
use crate::https;

/// Calls of one server at once, where nothing is said.
const PARALLEL: u32 = 8;

/// How a server is met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// The newer one, then the older; what worked is remembered.
    #[default]
    Auto,
    /// `initialize`: all versions before 2026-07-28.
    Initialize,
    /// `server/discover`: 2026-07-28.
    Discover,
}

impl Lifecycle {
    pub fn named(name: &str) -> Option<Lifecycle> {
        let all = [Lifecycle::Auto, Lifecycle::Initialize, Lifecycle::Discover];
        all.into_iter().find(|lifecycle| lifecycle.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Lifecycle::Auto => "auto",
            Lifecycle::Initialize => "initialize",
            Lifecycle::Discover => "discover",
        }
    }
}

/// A program that speaks MCP on its standard input and output, or an address where one is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpServer {
    /// Empty if it has an address.
    pub command: String,
    pub args: Vec<String>,
    /// Set in its environment.
    pub env: BTreeMap<String, String>,
    /// Variables of the user that it sees beside the usual ones; a `*` at the end stands for any ending.
    pub inherit: Vec<String>,
    /// Where it works; the project if nothing is said.
    pub cwd: Option<PathBuf>,
    pub url: Option<String>,
    /// Sent to the address with every request.
    pub headers: BTreeMap<String, String>,
    /// Of one call, where the step has no timeout of its own.
    pub timeout_ms: Option<u64>,
    /// Calls at once.
    pub parallel: Option<u32>,
    pub lifecycle: Lifecycle,
}

/// Without the values of variables and headers: they may be secrets.
impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.url.as_ref().unwrap_or(&self.command);
        f.debug_struct("McpServer").field("place", place).finish_non_exhaustive()
    }
}

impl McpServer {
    pub fn width(&self) -> u32 {
        self.parallel.unwrap_or(PARALLEL).max(1)
    }

    /// Its program as the shell would find it; `None` if nobody could start it. `project` is where it works.
    pub fn program(&self, project: &Path) -> Option<PathBuf> {
        let agent = AgentConfig {
            command: vec![self.command.clone()],
            env: self.env.clone(),
            ..AgentConfig::default()
        };
        agent.program("", self.cwd.as_deref().unwrap_or(project))
    }

    /// The name of the program that it needs and that is not there.
    pub fn missing_program(&self, project: &Path) -> Option<&str> {
        (self.url.is_none() && self.program(project).is_none()).then_some(self.command.as_str())
    }
}

/// Whether a server may be spoken to at `url`: over HTTPS, or on this machine. `Err` ends a sentence about it.
pub fn check_address(url: &str) -> Result<(), String> {
    https::address(url).map(drop)
}
