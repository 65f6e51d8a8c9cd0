//! An order as Claude Code's flags and variables.

use std::ffi::OsString;

use serde_json::{Value, json};

use super::access;
use super::shape::Shape;
use crate::agent::{Conversation, Order};
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

pub const MAX_RETRIES: &str = "CLAUDE_CODE_MAX_RETRIES";

/// Set where the user has not. One retry: its announcement tells how long the endpoint wants to be left alone,
/// and it is interrupted there; with none, that is never told. Without background tasks a turn has one result.
const DEFAULTS: &[(&str, &str)] = &[
    (MAX_RETRIES, "1"),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
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
    if let Some(turns) = order.max_turns {
        flag("--max-turns", turns.to_string().into());
    }
    if let Some(budget) = order.max_budget_usd {
        flag("--max-budget-usd", budget.to_string().into());
    }
    let servers = json!({"mcpServers": order.mcp_servers});
    flag("--mcp-config", attempt.write("mcp.json", servers.to_string().as_bytes())?.into());
    // Whatever is not allowed by name is asked: the project's rules decide, not the program's own.
    flag("--permission-mode", "default".into());
    flag("--settings", settings(order).to_string().into());
    flag("--disallowedTools", access::denied(order.access).join(",").into());
    argv.push("--strict-mcp-config".into());
    if matches!(order.conversation, Conversation::Fork { .. }) {
        argv.push("--fork-session".into());
    }
    Ok(argv)
}

/// Rules that go before those of the user and of the project: what must be asked is asked.
fn settings(order: &Order) -> Value {
    json!({"permissions": {"allow": order.tools, "ask": access::asked(order.access)}})
}

pub fn env(order: &Order) -> Vec<(OsString, OsString)> {
    let missing = DEFAULTS.iter().filter(|(name, _)| !is_set(order, name));
    let mut env: Vec<(OsString, OsString)> =
        missing.map(|(name, value)| (name.into(), value.into())).collect();
    env.extend(order.env.iter().cloned());
    env
}

/// The user wants the program to try again by itself, or not.
pub fn retries_itself(order: &Order) -> bool {
    is_set(order, MAX_RETRIES)
}

fn is_set(order: &Order, name: &str) -> bool {
    order.env.iter().any(|(set, _)| set == name) || std::env::var_os(name).is_some()
}
