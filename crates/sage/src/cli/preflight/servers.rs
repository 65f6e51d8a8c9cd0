//! Servers of `tool` steps, and those that agents are given: known, and with a program that is there.

use sage_agents::AgentConfig;
use sage_agents::agent::adapter;
use sage_core::diagnostic::did_you_mean;
use sage_core::template::{Kind, Operation, Template};
use serde_json::Value;

use super::{Use, templates};
use crate::cli::catalog::Ready;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::install;
use crate::trust::Definition;

pub fn check_known(context: &Context, ready: &Ready) -> Result<(), Failure> {
    let servers = &context.config.servers;
    // Whether it is trusted is another question.
    let is_known =
        |name: &str| servers.known.contains_key(name) || context.config.untrusted_server(name).is_some();
    let Some((path, name)) = uses(templates(ready)).find(|(_, name)| !is_known(name)) else {
        return Ok(());
    };
    Err(missing(context, format!("step `{path}`: there is no MCP server `{name}`"), name))
}

/// Servers that a step names, or else its agent.
fn names(operation: &Operation, agent: Option<&AgentConfig>) -> Vec<String> {
    match operation.params.get("mcp") {
        None | Some(Value::Null) => agent.map(|agent| agent.mcp.clone()).unwrap_or_default(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(list) => {
            let list = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            list.map(str::to_string).collect()
        }
    }
}

/// Those that the agent of a step shall be given: each is known, and the agent can use it.
pub fn check_named(context: &Context, it: &Use<'_>, agent: &AgentConfig) -> Result<(), Failure> {
    let Use { path, role, name, operation } = it;
    let config = &context.config;
    for server in names(operation, Some(agent)) {
        let found = config.servers.named(&server, &context.project.root);
        let is_of_project = config.servers.known.contains_key(&server);
        if found.is_none() && config.untrusted_server(&server).is_none() {
            let what =
                format!("step `{path}`: {role}agent `{name}` is to be given the MCP server `{server}`");
            return Err(missing(context, format!("{what}, and there is none of that name"), &server));
        }
        if agent.adapter == "llm" && found.is_some() && !is_of_project {
            let message = format!(
                "step `{path}`: {role}agent `{name}` can use only servers of the project, not `{server}`"
            );
            return Err(
                Failure::usage(message).hint(format!("[mcp.{server}] command = \"...\" in sage.toml"))
            );
        }
        let refused = found.zip(adapter(&agent.adapter));
        let refused = refused.and_then(|(found, adapter)| adapter.refuses_server(&server, &found));
        if let Some(why) = refused {
            return Err(Failure::usage(format!("step `{path}`: {role}agent `{name}`: {why}")));
        }
    }
    Ok(())
}

/// Programs of those servers.
pub fn check_named_programs(context: &Context, it: &Use<'_>, agent: &AgentConfig) -> Result<(), Failure> {
    for name in names(it.operation, Some(agent)) {
        check_program(context, &it.path, &name)?;
    }
    Ok(())
}

/// Servers that a step or its agent names and that are not trusted.
pub fn untrusted_named<'c>(
    context: &'c Context,
    operation: &Operation,
    agent: Option<&AgentConfig>,
) -> Vec<&'c Definition> {
    names(operation, agent).iter().filter_map(|name| context.config.untrusted_server(name)).collect()
}

fn missing(context: &Context, message: String, name: &str) -> Failure {
    let servers = &context.config.servers;
    let failure = Failure::usage(message);
    let names: Vec<&str> = servers.known.keys().map(String::as_str).collect();
    let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    let near = did_you_mean(name, names).unwrap_or_else(|| format!("known servers: {known}"));
    let failure = failure.hint(near).hint(format!("[mcp.{name}] command = \"...\" in sage.toml"));
    // It may be one of those that were left out.
    servers.notes.iter().fold(failure, |failure, note| failure.hint(note.clone()))
}

fn check_program(context: &Context, path: &str, name: &str) -> Result<(), Failure> {
    let Some(server) = context.config.servers.known.get(name) else { return Ok(()) };
    match server.missing_program(&context.project.root) {
        Some(program) => {
            let message =
                format!("step `{path}`: server `{name}` cannot start: there is no program `{program}`");
            Err(Failure::usage(message).hint(install::hint(program)).hint("sage doctor"))
        }
        None => Ok(()),
    }
}

/// Only looked for: starting a server is the run's affair.
pub fn check_programs(context: &Context, ready: &Ready) -> Result<(), Failure> {
    uses(templates(ready)).try_for_each(|(path, name)| check_program(context, &path, name))
}

/// Servers that tool steps name and that are not trusted.
pub fn untrusted<'a>(
    context: &'a Context,
    templates: impl Iterator<Item = &'a Template>,
) -> impl Iterator<Item = &'a Definition> {
    uses(templates).filter_map(|(_, name)| context.config.untrusted_server(name))
}

/// Path of a step, and the server that it names.
fn uses<'a>(templates: impl Iterator<Item = &'a Template>) -> impl Iterator<Item = (String, &'a str)> {
    templates.flat_map(|template| &template.phases).flat_map(|phase| {
        let tools = phase.operations.iter().filter(|operation| operation.kind == Kind::Tool);
        tools.filter_map(|operation| {
            let name = operation.params.get("server")?.as_str()?;
            Some((format!("{}/{}", phase.id, operation.id), name))
        })
    })
}
