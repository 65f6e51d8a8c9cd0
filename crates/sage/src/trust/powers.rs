//! What a step of a project does beyond text for an agent: programs, variables, permissions. Each is a phrase that
//! `sage trust` shows; a step without any is prompt text, a pause, a question or a synthesis.

use std::path::Path;

use sage_core::policy::{Alternative, OnUnknown};
use sage_core::read::param_names;
use sage_core::role::{Access, Paths, Role};
use sage_core::template::{Kind, Operation};
use serde_json::Value;

use super::launcher::{Started, texts_at};
use crate::display::text::argument;

/// Parameters of agents that only say what to do, with which model, and how much of it.
const HARMLESS: [&str; 10] = [
    "prompt",
    "system",
    "agent",
    "model",
    "maxTurns",
    "maxBudgetUsd",
    "effort",
    "mode",
    "questions",
    "files",
];
/// A parameter of the built-in checks: commands to run.
const COMMANDS: &str = "commands";
/// It has no model and starts nothing by itself.
const OFFLINE: &str = "offline";
/// Parameters and fields in which files of the project are named that a step starts or loads.
const STARTING: [&str; 7] = ["run", "argv", "command", COMMANDS, "env", "cwd", "file"];

pub fn powers(operation: &Operation) -> Vec<String> {
    let text = |name: &str| operation.params.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut does = Vec::new();
    match operation.kind {
        Kind::Shell if operation.params.contains_key("argv") => does.push(runs(&operation.params["argv"])),
        Kind::Shell => does.push(script("runs", text("run"))),
        Kind::Tool => {
            does.push(format!("calls the tool {} of {}", argument(text("tool")), argument(text("server"))));
        }
        Kind::Script => {
            does.push(format!("runs the code {}", argument(text("file"))).trim_end_matches(" ''").into())
        }
        Kind::Agent => does.extend(operation.params.iter().filter_map(|(name, value)| of_param(name, value))),
        Kind::Sleep | Kind::Approval | Kind::Workflow | Kind::Verify | Kind::Synthesize => {}
    }
    if operation.kind == Kind::Shell {
        does.extend(operation.params.get("env").and_then(variables));
    }
    let agents = operation.fallback.iter().flat_map(|fallback| &fallback.to).filter_map(|to| match to {
        Alternative::Agent { agent, .. } => agent.as_deref(),
        _ => None,
    });
    let agents = operation.agent.as_deref().into_iter().chain(agents);
    // A program or a script of its own has been named already.
    let agents = agents.filter(|name| ![OFFLINE, "command", "fake"].contains(name));
    does.extend(agents.map(|name| format!("uses the agent {}", argument(name))));
    if let Some(command) = operation.expect.as_ref().and_then(|expect| expect["command"].as_str()) {
        does.push(script("checks with", command));
    }
    if let OnUnknown::Reconcile(command) = &operation.on_unknown {
        does.push(script("reconciles with", command));
    }
    let shared = operation.targets.iter().filter(|target| target.starts_with("provider:"));
    does.extend(shared.map(|target| format!("counts as a call of {}", argument(target))));
    does
}

/// The files of the project that a step starts, as far as it names them.
pub fn started(root: &Path, started: Started, operation: &Operation) -> Started {
    let params = Value::Object(operation.params.clone());
    let argv = operation.params.get("argv").or_else(|| operation.params.get("command"));
    let words = argv.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let started = started.command(words.map(str::to_string).collect());
    let started = started.texts(texts_at(&params, &STARTING));
    let started = started.fake(root, operation.params.get("script").unwrap_or(&Value::Null));
    let started = started.texts(operation.expect.iter().flat_map(|expect| texts_at(expect, &["command"])));
    match &operation.on_unknown {
        OnUnknown::Reconcile(command) => started.texts([command.clone()]),
        _ => started,
    }
}

/// Whether a role lets an agent do more than the role of the operation that it replaces.
pub fn widens(own: Option<Role>, replaced: Option<Role>) -> Option<String> {
    let (replaced, own) = (replaced?, own?);
    let (narrow, wide): (Access, Access) = (replaced.access(), own.access());
    let writes = match (narrow.paths, wide.paths) {
        (_, Paths::None) | (Paths::All, _) => false,
        (narrow, wide) => narrow != wide,
    };
    let more = writes || (wide.run && !narrow.run) || (wide.network && !narrow.network);
    more.then(|| format!("has the role {own} instead of {replaced}"))
}

fn of_param(name: &str, value: &Value) -> Option<String> {
    let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_str() == Some("");
    match name {
        "command" | COMMANDS if !is_empty => Some(runs(value)),
        "env" => variables(value),
        "tools" => Some(format!("lets it use {} without asking", list(value))),
        "cwd" => Some(format!("works in {}", list(value))),
        "mcp" if !is_empty => Some(format!("gives it the MCP servers {}", list(value))),
        "project" if *value != false && !is_empty => {
            Some("loads the project's own settings of the agent".into())
        }
        "mcp" | "project" => None,
        "script" => Some("plays a script of the fake agent, which can run commands".into()),
        _ if param_names(Kind::Agent).contains(&name) && !HARMLESS.contains(&name) => {
            Some(format!("sets {name}={}", list(value)))
        }
        _ => None,
    }
}

fn runs(value: &Value) -> String {
    format!("runs {}", list(value))
}

fn list(value: &Value) -> String {
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> = value.as_str().into_iter().chain(words).map(argument).collect();
    words.join(" ")
}

fn variables(value: &Value) -> Option<String> {
    let shown = |(name, value): (&String, &Value)| format!("{name}={}", list(value));
    let table: Vec<String> = value.as_object().into_iter().flatten().map(shown).collect();
    let all = if value.is_object() { table.join(", ") } else { value.to_string() };
    (!all.is_empty()).then(|| format!("sets {all}"))
}

/// All of a script: one line between quotes, several below.
fn script(what: &str, text: &str) -> String {
    let text = text.trim();
    if text.contains('\n') { format!("{what}:\n{text}") } else { format!("{what} `{text}`") }
}

#[cfg(test)]
mod tests {
    use sage_core::read::Library;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut library = Library::default();
        assert_eq!(library.add("x.y", text), vec![], "{text}");
        powers(&library.get("x.y").unwrap().alone().unwrap())
    }

    // covers: R17
    #[test]
    fn text_for_an_agent_has_no_powers() {
        for text in [
            "Just a prompt",
            "---\nrole: auditor\nmodel: m\nschema: {type: object}\nfilter: {top: 3}\ncache: {files: ['**']}\n---\np",
            "---\nparams: { topic: a, system: s, maxTurns: 3, maxBudgetUsd: 1, effort: high, mode: plan, project: false }\n---\np",
            "---\nagent: offline\nexpect: { passed: true }\nparams: { commands: [], part: all }\n---\np",
            "---\nkind: sleep\nparams: { for: 2s }\n---\n",
            "---\nkind: approval\n---\nShip it?",
            "---\nfallback: { value: 1 }\noutput: docs/x.md\n---\np",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    // covers: R17
    #[test]
    fn programs_variables_and_permissions_are_powers() {
        let table = [
            ("---\nkind: shell\n---\ntouch a", "runs `touch a`"),
            ("---\nkind: shell\n---\ntrue\ntouch a", "runs:\ntrue\ntouch a"),
            ("---\ntarget: provider:x\n---\np", "counts as a call of provider:x"),
            ("---\nkind: shell\nparams: { argv: [./a, 'b c'] }\n---\n", "runs ./a 'b c'"),
            ("---\nkind: tool\nparams: { server: s, tool: t }\n---\n", "calls the tool t of s"),
            ("---\nkind: script\nparams: { file: a.ts }\n---\n", "runs the code a.ts"),
            ("---\nkind: script\nparams: { code: 'return 1' }\n---\n", "runs the code"),
            ("---\nparams: { command: [./evil.sh] }\n---\np", "runs ./evil.sh"),
            ("---\nagent: command\nparams: { command: [./evil.sh] }\n---\np", "runs ./evil.sh"),
            ("---\nparams: { env: { NODE_OPTIONS: '-r ./x' } }\n---\np", "sets NODE_OPTIONS='-r ./x'"),
            ("---\nparams: { tools: [Bash] }\n---\np", "lets it use Bash without asking"),
            ("---\nparams: { cwd: /etc }\n---\np", "works in /etc"),
            ("---\nparams: { agentType: x }\n---\np", "sets agentType=x"),
            ("---\nmcp: [db, git]\n---\np", "gives it the MCP servers db git"),
            ("---\nparams: { project: [skills] }\n---\np", "loads the project's own settings of the agent"),
            ("---\nparams: { commands: [./evil.sh] }\n---\np", "runs ./evil.sh"),
            (
                "---\nparams: { script: [] }\n---\np",
                "plays a script of the fake agent, which can run commands",
            ),
            ("---\nagent: claude\n---\np", "uses the agent claude"),
            ("---\nfallback: claude\n---\np", "uses the agent claude"),
            ("---\nexpect: { command: ./evil.sh }\n---\np", "checks with `./evil.sh`"),
            ("---\nonUnknown: { reconcile: ./evil.sh }\n---\np", "reconciles with `./evil.sh`"),
        ];
        for (text, does) in table {
            assert_eq!(of(text), [does], "{text}");
        }
    }

    // covers: R17
    #[test]
    fn a_role_that_may_do_more_is_told() {
        use Role::{Auditor, Cleaner, Implementer, Observer, Planner, Researcher};
        for (own, replaced) in [(Auditor, Auditor), (Observer, Researcher), (Cleaner, Implementer)] {
            assert_eq!(widens(Some(own), Some(replaced)), None, "{own} {replaced}");
        }
        for (own, replaced) in [(Implementer, Auditor), (Planner, Researcher), (Researcher, Auditor)] {
            assert!(widens(Some(own), Some(replaced)).is_some(), "{own} {replaced}");
        }
        assert_eq!(widens(Some(Implementer), None), None);
    }
}
