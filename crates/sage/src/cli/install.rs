//! Programs of agents: is one missing, and what to type then. Nothing is started here.

use std::path::Path;

use sage_agents::AgentConfig;

/// Programs that everybody knows, and how to get them.
const PACKAGES: [(&str, &str); 3] = [
    ("claude", "npm install -g @anthropic-ai/claude-code"),
    ("codex", "npm install -g @openai/codex"),
    ("gemini", "npm install -g @google/gemini-cli"),
];

/// The program that an agent needs and that is not there. `dir` is where it works.
pub fn missing(agent: &AgentConfig, dir: &Path) -> Option<String> {
    let program = program_name(agent)?;
    // A file of the project may only come with the run.
    let in_project = program.contains('/') && !program.starts_with('/');
    (!in_project && agent.program(&agent.adapter, dir).is_none()).then_some(program)
}

/// `None` for agents without a program of their own: endpoints, the scripted one.
pub fn program_name(agent: &AgentConfig) -> Option<String> {
    let own = || matches!(agent.adapter.as_str(), "claude" | "codex").then(|| agent.adapter.clone());
    agent.command.first().cloned().or_else(own)
}

/// What to type to get a program.
pub fn hint(program: &str) -> String {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map_or_else(
        || format!("install `{program}`, or give its whole path in sage.toml"),
        |(_, install)| (*install).to_string(),
    )
}

/// The agents that everybody knows and that are on this machine.
pub fn found(dir: &Path) -> Vec<&'static str> {
    let names = PACKAGES.iter().map(|(name, _)| *name);
    let is_there = |name: &&str| {
        AgentConfig::built_in(name).is_some_and(|agent| agent.program(&agent.adapter, dir).is_some())
    };
    names.filter(is_there).collect()
}
