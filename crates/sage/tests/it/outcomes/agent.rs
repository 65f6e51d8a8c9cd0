//! Which agents there are, and how each of them is told to talk to the scripted endpoint only.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One agent of a table.
pub struct Agent {
    pub name: &'static str,
    /// What its steps are billed as; `None` where nobody knows a price.
    pub model: Option<&'static str>,
    /// What every response uses unless its turn says otherwise, as the protocol sends it.
    pub usage: fn() -> Value,
    /// A use of the agent's own tool for commands.
    pub shell: fn(&str) -> Value,
    /// Its tables in `sage.toml`, with a private home and this endpoint; `None` where it is not installed.
    pub install: fn(&Home<'_>) -> Option<Setup>,
    /// Whether a process is the agent itself: its program and its command line.
    pub is: fn(&Path, &str) -> bool,
    /// What the last message says of requests that it makes beside its work: a title, a suggestion. They cost nothing
    /// and are not counted.
    pub beside: &'static [&'static str],
    /// How many rows are played at once.
    pub at_once: usize,
}

/// Where an agent lives.
pub struct Home<'a> {
    pub path: &'a Path,
    /// Of the endpoint.
    pub url: &'a str,
}

impl Home<'_> {
    pub fn text(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes a file of the agent's own.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// How an agent is started.
#[derive(Default)]
pub struct Setup {
    pub adapter: &'static str,
    pub command: Vec<String>,
    pub env: Vec<(&'static str, String)>,
    /// Further lines of its table.
    pub more: String,
}

impl Setup {
    /// As tables of `sage.toml`. Strings and lists of JSON are those of TOML.
    pub fn tables(&self, name: &str, more_env: &[(&'static str, String)]) -> String {
        let command = if self.command.is_empty() {
            String::new()
        } else {
            format!("command = {}\n", Value::from(self.command.clone()))
        };
        let mut env: std::collections::BTreeMap<&str, &str> =
            self.env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        env.extend(more_env.iter().map(|(name, value)| (*name, value.as_str())));
        let env: String =
            env.iter().map(|(name, value)| format!("{name} = {}\n", Value::from(*value))).collect();
        let (adapter, more) = (self.adapter, &self.more);
        format!("[agents.{name}]\nadapter = \"{adapter}\"\n{command}{more}[agents.{name}.env]\n{env}")
    }
}

fn tools(variable: &str, below: &str) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_BIN_EXE_sage"));
    let beside = target.ancestors().nth(2).unwrap().join("tools").join(below);
    std::env::var_os(variable).map_or(beside, PathBuf::from)
}

/// A program that `./test` installs; said where it is not.
fn installed(folder: &Path, name: &str) -> Option<String> {
    let program = folder.join(name);
    if !program.exists() {
        println!("skipped: {name} is not installed (./test does)");
        return None;
    }
    Some(program.display().to_string())
}

/// Claude Code, Codex, Gemini CLI, codex-acp.
pub fn program(name: &str) -> Option<String> {
    installed(&tools("SAGE_TEST_AGENTS", "agents/node_modules/.bin"), name)
}

/// opencode, qwen, claude-agent-acp.
pub fn acp_program(name: &str) -> Option<String> {
    installed(&tools("SAGE_TEST_ACP", "acp").join("node_modules/.bin"), name)
}

/// A node of at least this major version: the system's, or the one that came with the MCP clients.
pub fn node(least: u32) -> Option<String> {
    let candidates = ["node".into(), tools("SAGE_TEST_MCP", "mcp").join("node_modules/node/bin/node")];
    let fits = |node: &PathBuf| {
        let output = Command::new(node).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let major: u32 = version.trim_start_matches('v').split('.').next()?.parse().ok()?;
        (major >= least).then_some(())
    };
    let found = candidates.into_iter().find(|node| fits(node).is_some());
    if found.is_none() {
        println!("skipped: there is no node {least} or newer");
    }
    Some(found?.display().to_string())
}

/// Usage as Anthropic sends it: the input is without what came from the cache.
pub fn anthropic_usage() -> Value {
    serde_json::json!({"input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20,
        "output_tokens": 7})
}

/// Usage as OpenAI sends it: the input is with what came from the cache, the output with reasoning.
pub fn openai_usage() -> Value {
    serde_json::json!({"input_tokens": 1000, "cache_read_input_tokens": 300, "output_tokens": 50, "reasoning": 20})
}
