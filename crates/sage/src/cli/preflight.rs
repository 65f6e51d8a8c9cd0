//! Before a run: every agent that its templates name is there.

use std::collections::BTreeMap;

use sage_agents::AgentConfig;
use sage_core::policy::Alternative;
use sage_core::template::{Kind, Operation};

use super::catalog::Ready;
use super::context::Context;
use super::failure::Failure;

/// Missing agents are found before anything is spent, those of sub-workflows too.
pub fn check_agents(context: &Context, ready: &Ready, default: Option<&str>) -> Result<(), Failure> {
    let known = context.config.agents();
    for template in ready.inner.iter().chain([&ready.template]) {
        for phase in &template.phases {
            for operation in phase.operations.iter().filter(|operation| operation.kind == Kind::Agent) {
                check_agent(&format!("{}/{}", phase.id, operation.id), operation, default, &known)?;
            }
        }
    }
    Ok(())
}

fn check_agent(
    path: &str,
    operation: &Operation,
    default: Option<&str>,
    known: &BTreeMap<String, AgentConfig>,
) -> Result<(), Failure> {
    let has_command = operation.params.contains_key("command");
    match operation.agent.as_deref().or(default) {
        None if operation.params.contains_key("script") || has_command => {}
        None => {
            return Err(Failure::usage(format!("step `{path}` names no agent and there is no default"))
                .hint("--agent fake, or `agent = \"...\"` in sage.toml"));
        }
        Some(name) => check_known(path, "", name, has_command, known)?,
    }
    let alternatives = operation.fallback.iter().flat_map(|fallback| &fallback.to);
    for alternative in alternatives {
        if let Alternative::Agent { agent: Some(name), .. } = alternative {
            check_known(path, "fallback to ", name, has_command, known)?;
        }
    }
    Ok(())
}

fn check_known(
    path: &str,
    role: &str,
    name: &str,
    has_command: bool,
    known: &BTreeMap<String, AgentConfig>,
) -> Result<(), Failure> {
    if has_command || matches!(name, "fake" | "command") {
        return Ok(());
    }
    match known.get(name) {
        Some(agent) if !agent.command.is_empty() => Ok(()),
        Some(_) => Err(Failure::usage(format!("step `{path}`: {role}agent `{name}` has no command"))
            .hint(format!("[agents.{name}] command = [...] in sage.toml"))),
        None => {
            let names: Vec<&str> = known.keys().map(String::as_str).chain(["fake"]).collect();
            let message = format!("step `{path}`: {role}agent `{name}` is not configured");
            Err(Failure::usage(message).hint(format!(
                "known agents: {}; add [agents.{name}] command = [...] to sage.toml",
                names.join(", ")
            )))
        }
    }
}
