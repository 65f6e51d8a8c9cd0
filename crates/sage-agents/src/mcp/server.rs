//! A server as it is configured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agent::AgentConfig;

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpServer {
    pub command: String,
    pub args: Vec<String>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// Where it works; the project if nothing is said.
    pub cwd: Option<PathBuf>,
    /// Of one call, where the step has no timeout of its own.
    pub timeout_ms: Option<u64>,
}

impl McpServer {
    /// Its program as the shell would find it; `None` if nobody could start it. `project` is where it works.
    pub fn program(&self, project: &Path) -> Option<PathBuf> {
        let agent = AgentConfig {
            command: vec![self.command.clone()],
            env: self.env.clone(),
            ..AgentConfig::default()
        };
        agent.program("", self.cwd.as_deref().unwrap_or(project))
    }
}
