//! `params`: what only one kind has, checked kind by kind.
//!
//! A text with Jinja in it has no type yet, so it passes wherever a value is expected; the executor checks
//! what it becomes. Durations that are known are normalised to milliseconds.

use serde_json::{Map, Value};

use super::agent_params;
use super::fields::{Fields, check_unit, duration_of, expected};
use super::operation::{either, is_available};
use super::place::Place;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::expr;
use crate::source::{Data, Node};
use crate::template::{Kind, Source};

/// The parameters that a kind knows.
pub fn param_names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Shell => &["run", "argv", "cwd", "env", "json"],
        Kind::Sleep => &["ms", "for"],
        Kind::Agent => &[
            "prompt",
            "system",
            "agent",
            "model",
            "tools",
            "maxTurns",
            "maxBudgetUsd",
            "script",
            "command",
            "cwd",
            "env",
            "agentType",
            "effort",
            "mode",
            "questions",
            "project",
            "mcp",
            "files",
        ],
        Kind::Tool => &["server", "tool", "arguments"],
        Kind::Script => &["file", "code", "input"],
        Kind::Approval => &["message", "choices", "deadline", "default"],
        Kind::Workflow => &["template", "inputs"],
        Kind::Verify => &["commands", "of"],
        Kind::Synthesize => &["from", "threshold"],
    }
}

pub const DEFAULT_CHOICES: [&str; 2] = ["approve", "reject"];

/// The parameters, and the fields that an agent keeps beside them.
#[derive(Debug, Default)]
pub struct Given {
    pub params: Map<String, Value>,
    pub prompt: Option<Source>,
    pub agent: Option<String>,
    pub model: Option<String>,
}

impl Given {
    /// `own` are parameters that a named operation has besides those of its kind; a kind itself has none.
    pub fn read(
        fields: &Fields<'_, '_>,
        kind: Kind,
        own: Option<&[&str]>,
        problems: &mut Diagnostics,
    ) -> Given {
        let place = fields.place.field("params");
        let node = fields.object("params", problems);
        let written = node.and_then(|node| Fields::any(node, &place, problems));
        let mut given = Given::default();
        if is_available(kind) {
            if let Some(written) = &written {
                refuse_unknown(written, kind, own, problems);
                merge(written, kind, &mut given.params, problems);
            }
            given.agent_fields(fields, written.as_ref(), kind, problems);
            require(kind, fields, &given, problems);
        }
        given
    }

    fn agent_fields(
        &mut self,
        fields: &Fields<'_, '_>,
        written: Option<&Fields<'_, '_>>,
        kind: Kind,
        problems: &mut Diagnostics,
    ) {
        if kind != Kind::Agent {
            for name in ["agent", "model", "prompt"].into_iter().chain(agent_params::BESIDE) {
                if let Some(span) = fields.key_span(name) {
                    let message = format!("`{name}` is only for agents, this is a `{}` step", kind.name());
                    problems.push(Diagnostic::error(fields.place.field(name), span, message));
                }
            }
            return;
        }
        let text = |source: Option<Source>| source.map(|source| source.text);
        self.agent = text(either(fields, written, "agent", problems));
        // Whoever brings a script or a program of its own needs no other agent.
        for (param, agent) in [("script", "fake"), ("command", "command")] {
            if self.agent.is_none() && self.params.contains_key(param) {
                self.agent = Some(agent.to_owned());
            }
        }
        self.model = text(either(fields, written, "model", problems));
        for name in agent_params::BESIDE {
            if let Some(value) = agent_params::beside(fields, written, name, problems) {
                self.params.insert(name.to_owned(), value);
            }
        }
        self.prompt = either(fields, written, "prompt", problems);
        if let Some(prompt) = &self.prompt {
            self.params.insert("prompt".to_owned(), Value::String(prompt.text.clone()));
        }
    }
}

/// A named operation may be given more than it takes: a project's own version of it need not know what the
/// template offers. What looks like a typing error is told all the same.
fn refuse_unknown(written: &Fields<'_, '_>, kind: Kind, own: Option<&[&str]>, problems: &mut Diagnostics) {
    let known = [param_names(kind), own.unwrap_or_default()].concat();
    for (key, _) in written.entries().iter().filter(|(key, _)| !known.contains(&&*key.name)) {
        let message = format!("unknown parameter `{}` of `{}`", printable(&key.name), kind.name());
        let place = written.place.field(&key.name);
        let near = did_you_mean(&key.name, known.iter().copied());
        match (near, own) {
            (Some(hint), Some(_)) => problems.push(Diagnostic::warning(place, key.span, message).hint(hint)),
            (None, Some(_)) => {}
            (near, None) => {
                let hint = near.unwrap_or_else(|| format!("parameters: {}", known.join(", ")));
                problems.push(Diagnostic::error(place, key.span, message).hint(hint));
            }
        }
    }
}

/// Checks each parameter and puts it into `params`.
fn merge(written: &Fields<'_, '_>, kind: Kind, params: &mut Map<String, Value>, problems: &mut Diagnostics) {
    for (key, node) in written.entries() {
        let name = &*key.name;
        let beside = kind == Kind::Agent && matches!(name, "agent" | "model" | "prompt");
        if node.data == Data::Null || beside {
            continue;
        }
        let place = written.place.field(name);
        let (name, value) = value(kind, name, node, &place, problems);
        params.insert(name.to_owned(), value);
    }
}

pub(super) fn alternatives(kind: Kind, name: &str) -> &'static [&'static str] {
    match (kind, name) {
        (Kind::Shell, "run") => &["argv"],
        (Kind::Shell, "argv") => &["run"],
        (Kind::Sleep, "ms") => &["for"],
        (Kind::Sleep, "for") => &["ms"],
        _ => &[],
    }
}

/// The value of one parameter as the executor gets it.
fn value<'n>(
    kind: Kind,
    name: &'n str,
    node: &Node<'_>,
    place: &Place<'_>,
    problems: &mut Diagnostics,
) -> (&'n str, Value) {
    let own = (kind == Kind::Agent).then(|| agent_params::value(name, node, place, problems));
    if let Some(value) = own.flatten() {
        return (name, value);
    }
    let rendered = !(kind == Kind::Shell && name == "run");
    let plain = kind == Kind::Synthesize;
    if rendered && !plain && node.as_str().is_some_and(expr::is_dynamic) {
        let planned = match (kind, name) {
            (Kind::Workflow, "template") => {
                Some("the template of a `workflow` step must be a plain name: it is part of the plan")
            }
            (Kind::Tool, "server") => {
                Some("the server of a `tool` step must be a plain name: it is part of the plan")
            }
            _ => None,
        };
        if let Some(message) = planned {
            problems.push(Diagnostic::error(place, node.span, message));
        }
        return (name, node.to_json());
    }
    let fits = match (kind, name) {
        (Kind::Shell | Kind::Agent, "argv" | "command") => return (name, texts(node, place, problems)),
        (Kind::Shell | Kind::Agent, "env") => return (name, variables(node, place, problems)),
        (Kind::Sleep, "ms") => return ("ms", milliseconds(node, place, false, problems)),
        (Kind::Sleep, "for") => return ("ms", milliseconds(node, place, true, problems)),
        (Kind::Approval, "deadline") => return (name, milliseconds(node, place, true, problems)),
        (Kind::Approval, "choices") => return (name, choices(node, place, problems)),
        (Kind::Synthesize, "from") => return (name, step_names(node, place, problems)),
        (Kind::Synthesize, "threshold") => share(node).then_some(()).ok_or("a number from 0 to 1"),
        (Kind::Shell, "json") => matches!(node.data, Data::Bool(_)).then_some(()).ok_or("true or false"),
        (Kind::Workflow, "inputs") | (Kind::Tool, "arguments") => {
            matches!(node.data, Data::Map(_)).then_some(()).ok_or("an object")
        }
        (Kind::Agent, "script") => {
            matches!(node.data, Data::Seq(_) | Data::Str(_)).then_some(()).ok_or("a list of turns, or a file")
        }
        (Kind::Agent, "tools") => {
            matches!(node.data, Data::Seq(_) | Data::Str(_)).then_some(()).ok_or("a list of names")
        }
        (Kind::Agent, "maxTurns" | "maxBudgetUsd") => {
            matches!(node.data, Data::Number(_)).then_some(()).ok_or("a number")
        }
        (Kind::Script, "input") => Ok(()),
        (_, name) if !param_names(kind).contains(&name) => Ok(()),
        _ => matches!(node.data, Data::Str(_)).then_some(()).ok_or("text"),
    };
    if let Err(what) = fits {
        problems.push(expected(what, node, place));
    }
    (name, node.to_json())
}

/// A list of texts. Numbers and truth values are what YAML makes of `[sleep, 1]`; a program gets text.
fn texts(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Value {
    let Data::Seq(items) = &node.data else {
        problems.push(expected("a list of texts", node, place));
        return Value::Null;
    };
    if items.is_empty() {
        problems.push(Diagnostic::error(place, node.span, "the list is empty: it must name a program"));
    }
    let text = |(index, item)| scalar_text(item, &place.index(index), problems);
    Value::Array(items.iter().enumerate().map(text).collect())
}

fn scalar_text(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Value {
    match &node.data {
        Data::Str(text) if text.contains('\0') => {
            problems.push(Diagnostic::error(
                place,
                node.span,
                "a NUL character cannot be given to a program",
            ));
            Value::Null
        }
        Data::Str(text) => Value::String(text.clone().into_owned()),
        Data::Number(number) => Value::String(number.to_string()),
        Data::Bool(value) => Value::String(value.to_string()),
        _ => {
            problems.push(expected("text", node, place));
            Value::Null
        }
    }
}

fn variables(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Value {
    let Some(entries) = node.as_map() else {
        problems.push(expected("an object of texts", node, place));
        return Value::Null;
    };
    let mut map = Map::with_capacity(entries.len());
    for (key, value) in entries {
        let place = place.field(&key.name);
        if key.name.is_empty() || key.name.contains(['=', '\0']) {
            problems.push(Diagnostic::error(place, key.span, "not a name of an environment variable"));
        }
        map.insert(key.name.clone().into_owned(), scalar_text(value, &place, problems));
    }
    Value::Object(map)
}

fn share(node: &Node<'_>) -> bool {
    matches!(&node.data, Data::Number(number) if number.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)))
}

/// A list of names, always: a single one may stand alone. They are part of the plan, so they are plain.
fn step_names(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Value {
    let items: &[Node<'_>] = match &node.data {
        Data::Seq(items) => items,
        Data::Str(_) => std::slice::from_ref(node),
        _ => {
            problems.push(expected("a list of steps", node, place));
            return Value::Array(Vec::new());
        }
    };
    if items.is_empty() {
        problems.push(Diagnostic::error(place, node.span, "the list is empty: it must name a step"));
    }
    for (index, item) in items.iter().enumerate() {
        match item.as_str() {
            Some(name) if expr::is_dynamic(name) => {
                let message = "the steps of a synthesis must be plain names: they are part of the plan";
                problems.push(Diagnostic::error(place.index(index), item.span, message));
            }
            Some(name) if !name.is_empty() => {}
            _ => problems.push(expected("the name of a step", item, &place.index(index))),
        }
    }
    Value::Array(items.iter().map(Node::to_json).collect())
}

/// `unit`: its name does not say that a number is milliseconds.
fn milliseconds(node: &Node<'_>, place: &Place<'_>, unit: bool, problems: &mut Diagnostics) -> Value {
    match duration_of(node) {
        Ok(ms) => {
            if unit {
                check_unit(node, ms, place, problems);
            }
            Value::from(ms)
        }
        Err(error) => {
            problems.push(Diagnostic::error(place, node.span, error.to_string()));
            Value::from(0)
        }
    }
}

fn choices(node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Value {
    let Data::Seq(items) = &node.data else {
        problems.push(expected("a list of texts", node, place));
        return Value::Null;
    };
    let mut seen: Vec<&str> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = place.index(index);
        match item.as_str() {
            Some("") | None => problems.push(expected("a choice", item, &place)),
            Some(text) if seen.contains(&text) => {
                problems.push(Diagnostic::error(
                    place,
                    item.span,
                    format!("duplicate choice `{}`", printable(text)),
                ));
            }
            Some(text) => seen.push(text),
        }
    }
    if items.is_empty() {
        problems.push(Diagnostic::error(place, node.span, "there must be a choice"));
    }
    node.to_json()
}

/// What must be there, after merging.
fn require(kind: Kind, fields: &Fields<'_, '_>, given: &Given, problems: &mut Diagnostics) {
    let span = fields.get("type").map_or(fields.span, |node| node.span);
    let params = &given.params;
    let place = fields.place.field("params");
    if let Some(name) = params.get("run").and_then(Value::as_str).and_then(unrendered) {
        let message = format!("`run` is never rendered: `{{{{ {name} ... }}}}` reaches the shell as it is");
        let hint = format!("env: {{ VALUE: \"{{{{ {name} ... }}}}\" }}, and write $VALUE in `run`");
        problems.push(Diagnostic::warning(place, span, message).hint(hint));
    }
    let mut wrong = |message: &str, hint: &str| {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        problems.push(Diagnostic::error(place, span, message).hint_if(hint));
    };
    match kind {
        Kind::Shell => match (params.contains_key("run"), params.contains_key("argv")) {
            (true, true) => wrong("a shell step has either `run` or `argv`, not both", ""),
            (false, false) => wrong("a shell step needs `run` or `argv`", "params: { run: \"make test\" }"),
            _ => {}
        },
        Kind::Sleep => match (params.contains_key("ms"), params.contains_key("for")) {
            (true, true) => wrong("a sleep step has either `ms` or `for`, not both", ""),
            (false, false) => wrong("a sleep step needs `ms` or `for`", "params: { for: 2s }"),
            _ => {}
        },
        Kind::Script => match (params.contains_key("file"), params.contains_key("code")) {
            (true, true) => wrong("a script step has either `file` or `code`, not both", ""),
            (false, false) => {
                wrong("a script step needs `file` or `code`", "params: { file: tools/rank.ts }")
            }
            _ => {}
        },
        Kind::Workflow if !params.contains_key("template") => {
            wrong("a workflow step needs the name of a `template`", "");
        }
        Kind::Tool if !(params.contains_key("server") && params.contains_key("tool")) => {
            wrong("a tool step needs a `server` and its `tool`", "params: { server: github, tool: search }");
        }
        Kind::Agent => require_agent(given, &mut wrong),
        Kind::Approval => require_default(params, &mut wrong),
        _ => {}
    }
}

/// The name of ours that a script seems to want rendered. Other programs use braces too.
fn unrendered(script: &str) -> Option<&'static str> {
    let insides = script.match_indices("{{").map(|(at, _)| script[at + 2..].trim_start());
    insides
        .flat_map(|inside| {
            expr::CONTEXT.into_iter().filter(move |name| {
                inside
                    .strip_prefix(name)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
        })
        .next()
}

fn require_agent(given: &Given, wrong: &mut dyn FnMut(&str, &str)) {
    let scripted = given.params.contains_key("script");
    let agent = given.agent.as_deref();
    if given.prompt.is_none() && !(scripted && agent.is_none_or(|agent| agent == "fake")) {
        wrong("an agent needs a `prompt`", "");
    }
    if scripted && agent.is_some_and(|agent| agent != "fake") {
        wrong("`script` is only for the agent `fake`", "");
    }
}

fn require_default(params: &Map<String, Value>, wrong: &mut dyn FnMut(&str, &str)) {
    let Some(default) = params.get("default").and_then(Value::as_str) else {
        return;
    };
    let choices = params.get("choices").and_then(Value::as_array);
    let names: Vec<&str> = match choices {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => DEFAULT_CHOICES.to_vec(),
    };
    let dynamic = expr::is_dynamic(default) || names.iter().any(|name| expr::is_dynamic(name));
    if !dynamic && !names.contains(&default) {
        let hint = format!("choices: {}", names.join(", "));
        wrong("`default` is not one of the choices", &hint);
    }
}
