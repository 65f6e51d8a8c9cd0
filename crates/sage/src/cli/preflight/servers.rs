//! Servers of `tool` steps: known, and with a program that is there.

use sage_core::diagnostic::did_you_mean;
use sage_core::template::{Kind, Template};

use super::templates;
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
    let failure = Failure::usage(format!("step `{path}`: there is no MCP server `{name}`"));
    let names: Vec<&str> = servers.known.keys().map(String::as_str).collect();
    let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    let near = did_you_mean(name, names).unwrap_or_else(|| format!("known servers: {known}"));
    let failure = failure.hint(near).hint(format!("[mcp.{name}] command = \"...\" in sage.toml"));
    // It may be one of those that were left out.
    Err(servers.notes.iter().fold(failure, |failure, note| failure.hint(note.clone())))
}

/// Only looked for: starting a server is the run's affair.
pub fn check_programs(context: &Context, ready: &Ready) -> Result<(), Failure> {
    for (path, name) in uses(templates(ready)) {
        let Some(server) = context.config.servers.known.get(name) else { continue };
        if let Some(program) = server.missing_program(&context.project.root) {
            let message =
                format!("step `{path}`: server `{name}` cannot start: there is no program `{program}`");
            return Err(Failure::usage(message).hint(install::hint(program)).hint("sage doctor"));
        }
    }
    Ok(())
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
