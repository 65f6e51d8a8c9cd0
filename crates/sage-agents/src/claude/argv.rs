//! An order as Claude Code's flags and variables.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use super::shape::Shape;
use super::{access, project};
use crate::agent::{Conversation, Order, effort};
use crate::attempt::Attempt;
use crate::outcome::Miss;

const FLAGS: &[&str] = &[
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-prompt-tool",
    "stdio",
    // Without them a long answer looks like a hang, and nobody knows what it costs before it is over.
    "--include-partial-messages",
];

/// Not the project's own settings: an agent can write them, and the next one would have what they allow, their
/// hooks and their variables. Skills and agents of `.claude/` can do the same and are left out with them. A step
/// switches them on (project.rs), or the agent's command does: `["claude", "--setting-sources", "user,project"]`.
const SOURCES: &str = "--setting-sources";

pub const MAX_RETRIES: &str = "CLAUDE_CODE_MAX_RETRIES";

/// Set where the user has not. One retry: its announcement tells how long the endpoint wants to be left alone,
/// and it is interrupted there; with none, that is never told. Without background tasks a turn has one result.
const DEFAULTS: &[(&str, &str)] = &[
    (MAX_RETRIES, "1"),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    // Of the folders of `--add-dir`: without the project's settings its `CLAUDE.md` would not be read either.
    ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
];

pub fn argv(attempt: &Attempt<'_>, order: &Order, shape: Option<&Shape>) -> Result<Vec<OsString>, Miss> {
    let mut argv = order.config.argv("claude");
    argv.extend(FLAGS.iter().map(OsString::from));
    let mut flag = |name: &str, value: OsString| argv.extend([name.into(), value]);
    match &order.conversation {
        Conversation::New { id } => flag("--session-id", id.into()),
        Conversation::Resume { id, .. } => flag("--resume", id.into()),
        Conversation::Fork { of, id, .. } => {
            flag("--resume", of.into());
            flag("--session-id", id.into());
        }
    }
    if let Some(model) = &order.model {
        flag("--model", model.into());
    }
    if let Some(system) = &order.system {
        // A file: an argument has an end, and everybody can read it.
        flag("--append-system-prompt-file", attempt.write("system.txt", system.as_bytes())?.into());
    }
    if let Some(shape) = shape {
        flag("--json-schema", shape.schema.to_string().into());
    }
    if let Some(agents) = project::agents(attempt, order) {
        flag("--agents", agents.into());
    }
    if let Some(name) = &order.agent_type {
        flag("--agent", name.into());
    }
    if let Some(plugin) = project::plugin(attempt, order)? {
        flag("--plugin-dir", plugin);
    }
    if let Some(effort) =
        order.effort.as_deref().and_then(|wanted| effort::nearest(wanted, effort::ANTHROPIC))
    {
        flag("--effort", effort.into());
    }
    if let Some(turns) = order.max_turns {
        flag("--max-turns", turns.to_string().into());
    }
    if let Some(budget) = order.max_budget_usd {
        flag("--max-budget-usd", budget.to_string().into());
    }
    let servers = json!({"mcpServers": order.mcp_servers});
    flag("--mcp-config", attempt.write("mcp.json", servers.to_string().as_bytes())?.into());
    if !order.config.command.iter().any(|word| word.starts_with(SOURCES)) {
        flag(SOURCES, project::sources(order).into());
    }
    for folder in memories(&order.cwd, &attempt.cx.project) {
        flag("--add-dir", folder.into());
    }
    // Whatever is not allowed by name is asked: the project's rules decide, not the program's own.
    flag("--permission-mode", if order.plans { "plan" } else { "default" }.into());
    flag("--settings", settings(attempt, order).to_string().into());
    let denied = access::denied(order.access, order.questions != Some(false), order.plans);
    flag("--disallowedTools", denied.join(",").into());
    argv.push("--strict-mcp-config".into());
    if matches!(order.conversation, Conversation::Fork { .. }) {
        argv.push("--fork-session".into());
    }
    Ok(argv)
}

/// Where the `CLAUDE.md` of the project and of the place of work are.
fn memories<'a>(cwd: &'a Path, project: &'a Path) -> Vec<&'a Path> {
    let mut folders = vec![cwd];
    folders.extend(Some(project).filter(|project| *project != cwd && cwd.starts_with(project)));
    folders
}

/// Rules that go before those of the user: what must be asked is asked.
fn settings(attempt: &Attempt<'_>, order: &Order) -> Value {
    let deny = access::closed(&attempt.cx.project, &attempt.config.private);
    // What the step opens would be open while it plans, too.
    let open = if order.plans { &[] } else { order.tools.as_slice() };
    let ask = access::asked(order.access, open);
    json!({"permissions": {"allow": open, "ask": ask, "deny": deny}})
}

pub fn env(order: &Order) -> Vec<(OsString, OsString)> {
    let missing = DEFAULTS.iter().filter(|(name, _)| !is_set(order, name));
    let mut env: Vec<(OsString, OsString)> =
        missing.map(|(name, value)| (name.into(), value.into())).collect();
    env.extend(order.environment());
    // Every command begins where the agent works: rules decide about relative paths as seen from there.
    env.push(("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR".into(), "1".into()));
    env
}

/// The user wants the program to try again by itself, or not.
pub fn retries_itself(order: &Order) -> bool {
    is_set(order, MAX_RETRIES)
}

fn is_set(order: &Order, name: &str) -> bool {
    order.env.iter().any(|(set, _)| set == name) || std::env::var_os(name).is_some()
}
