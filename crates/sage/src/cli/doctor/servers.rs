//! The MCP servers: each is started or reached, asked who it is and what it has, and ended again.
//!
//! Nothing is remembered of it: what is trusted is decided when a server is used.

use std::sync::Arc;
use std::time::Duration;

use sage_agents::mcp::{Acquaintance, Hub};

use super::check::Check;
use crate::cli::context::{Context, runtime};
use crate::cli::failure::Failure;
use crate::cli::install;
use crate::display::text::plural;
use crate::trust::brief;

/// Nobody waits longer for a look. A server that installs itself when it starts first may need more.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn checks(context: &Context) -> Result<Vec<Check>, Failure> {
    let servers = &context.config.servers;
    let mut checks = Vec::new();
    if servers.defined.is_empty() {
        checks.push(Check::good("servers", "no MCP servers"));
    } else if !servers.known.is_empty() {
        checks.extend(runtime()?.block_on(look(context)));
    }
    checks.extend(untrusted(context));
    checks.extend(missing(context));
    if let Some(last) = checks.pop() {
        checks.push(servers.notes.iter().fold(last, |check, note| check.hint(note.clone())));
    }
    Ok(checks)
}

/// Shown, and not even looked for.
fn untrusted(context: &Context) -> impl Iterator<Item = Check> {
    let servers = context.config.untrusted.iter().filter(|it| it.name.starts_with("mcp."));
    servers.map(|it| {
        Check::warn("server", format!("`{}` is not trusted: it {}", it.place(), brief(it))).hint("sage trust")
    })
}

/// Servers that agents are to be given and that are not there.
fn missing(context: &Context) -> impl Iterator<Item = Check> {
    let named = context
        .config
        .file
        .agents
        .iter()
        .flat_map(|(agent, it)| it.mcp.iter().map(move |name| (agent, name)));
    let root = &context.project.root;
    let is_missing = |name: &str| {
        context.config.servers.named(name, root).is_none() && context.config.untrusted_server(name).is_none()
    };
    named.filter(move |(_, name)| is_missing(name)).map(|(agent, name)| {
        let says = format!("`agents.{agent}.mcp` names `{name}`, and there is no MCP server of that name");
        Check::bad("server", says).hint(format!("[mcp.{name}] command = \"...\" in sage.toml"))
    })
}

/// Looked for, not started: a server may do anything when it starts.
pub fn quick(context: &Context) -> Check {
    let servers = &context.config.servers.known;
    let root = &context.project.root;
    let missing = |(name, server): (&String, &sage_agents::McpServer)| {
        Some((name.clone(), server.missing_program(root)?.to_owned()))
    };
    match servers.iter().find_map(missing) {
        Some((name, program)) => {
            Check::warn("servers", format!("`{name}` cannot start: there is no program `{program}`"))
                .hint(install::hint(&program))
        }
        None if untrusted(context).next().is_some() => {
            let count = untrusted(context).count();
            Check::warn("servers", format!("{} not trusted", plural(count as u64, "MCP server")))
                .hint("sage trust")
        }
        None => Check::good("servers", plural(servers.len() as u64, "MCP server")),
    }
}

/// At the same time, in the order of their names.
async fn look(context: &Context) -> Vec<Check> {
    let hub = context.forgetful_hub();
    let mut looking = tokio::task::JoinSet::new();
    for name in hub.names().map(str::to_owned).collect::<Vec<_>>() {
        let server = &context.config.servers.known[&name];
        let missing = server.missing_program(&context.project.root).map(str::to_owned);
        let hub = Arc::clone(&hub);
        looking.spawn(async move {
            let check = match missing {
                Some(program) => {
                    Check::warn("server", format!("`{name}` cannot start: there is no program `{program}`"))
                        .hint(install::hint(&program))
                }
                None => check(&hub, &name).await,
            };
            (name, check)
        });
    }
    let mut checks = looking.join_all().await;
    checks.sort_by(|one, other| one.0.cmp(&other.0));
    hub.close().await;
    checks.into_iter().map(|(_, check)| check).collect()
}

async fn check(hub: &Hub, name: &str) -> Check {
    match tokio::time::timeout(PATIENCE, hub.meet(name)).await {
        Ok(Ok(met)) => Check::good("server", told(name, &met)),
        Ok(Err(failure)) => Check::warn("server", failure.message).hint(format!("[mcp.{name}] in sage.toml")),
        Err(_) => {
            let waited = PATIENCE.as_secs();
            Check::warn("server", format!("`{name}` has not answered within {waited} s"))
                .hint("the first start of a server may install it: try again")
        }
    }
}

/// `search`: fake-mcp 1, 10 tools, initialize 2025-11-25, 14 ms
fn told(name: &str, met: &Acquaintance) -> String {
    let itself = if met.calls_itself.is_empty() { "no name" } else { &met.calls_itself };
    let tools = plural(met.tools as u64, "tool");
    let (lifecycle, protocol, ms) = (met.lifecycle.name(), &met.protocol, met.took.as_millis());
    format!("`{name}`: {itself}, {tools}, {lifecycle} {protocol}, {ms} ms")
}
