//! An operation: its kind (a primitive or a named operation), its fields, its merged parameters.

use serde_json::Value;

use super::fields::{Fields, expected, source_of};
use super::library::{Library, primitive};
use super::place::Place;
use super::{cache, fallback, filter, id, limits, params, policies};
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::expr;
use crate::role::{Role, UnknownRole};
use crate::source::{Data, Node};
use crate::template::{Isolation, Kind, Operation, Source, Span};

pub const OPERATION_FIELDS: &[&str] = &[
    "id",
    "type",
    "params",
    "needs",
    "when",
    "foreach",
    "maxParallel",
    "tolerate",
    "agent",
    "model",
    "session",
    "role",
    "prompt",
    "files",
    "mcp",
    "schema",
    "filter",
    "output",
    "expect",
    "retry",
    "timeout",
    "idleTimeout",
    "stall",
    "fallback",
    "hedge",
    "cache",
    "pool",
    "target",
    "priority",
    "budget",
    "isolation",
    "verify",
    "onUnknown",
];

pub const EXPECT_FIELDS: &[&str] = &["files", "headMoved", "changes", "passed", "command"];

const MAX_PARALLEL: u32 = 100_000;

/// An operation of a template: a kind, or a named operation with what it adds.
pub fn read(
    node: &Node<'_>,
    place: &Place<'_>,
    library: &Library,
    problems: &mut Diagnostics,
) -> Option<Operation> {
    let type_name = node.get("type").and_then(Node::as_str).unwrap_or_default();
    let Some(named) = library.get(type_name) else {
        return read_with(node, place, type_name, None, library, problems);
    };
    let own: Vec<&str> = named.param_names().collect();
    read_with(&named.under(node), place, type_name, Some(&own), library, problems)
}

/// An operation of a primitive kind. `own` are parameters that only a named one has.
pub(super) fn read_with(
    node: &Node<'_>,
    place: &Place<'_>,
    type_name: &str,
    own: Option<&[&str]>,
    library: &Library,
    problems: &mut Diagnostics,
) -> Option<Operation> {
    let fields = open(node, place, problems)?;
    let known_kind = kind_of(&fields, library, problems);
    if let Some(kind) = known_kind {
        refuse_kind(&fields, kind, problems);
    }
    // An unknown type has been reported; a kind whose parameters are not checked avoids further errors.
    let kind = known_kind.unwrap_or(Kind::Verify);
    let given = params::Given::read(&fields, kind, own, problems);
    refuse_unavailable(&fields, problems);
    let schema = schema(&fields, problems);
    let (filter, max_tokens) = filter::read(&fields, problems);
    let timeouts = limits::timeouts(&fields, problems);
    let on_unknown = policies::on_unknown(&fields, kind, problems);
    let targets = limits::targets(&fields, &given, kind, problems);
    let operation = Operation {
        id: id(&fields, problems).unwrap_or_default(),
        span: fields.get("id").or(fields.get("type")).map_or(first_byte(node), |named| named.span),
        kind,
        type_name: type_name.to_owned(),
        dynamic: expr::is_rendered_dynamic(kind, &given.params),
        params: given.params,
        needs: fields.names("needs", problems),
        when: fields.condition("when", problems),
        foreach: foreach(&fields, problems),
        max_parallel: fields.count("maxParallel", 1, MAX_PARALLEL, problems),
        tolerate: policies::tolerate(&fields, problems),
        agent: given.agent,
        model: given.model,
        role: role(&fields, problems),
        session: fields.source("session", problems),
        isolation: isolation(&fields, known_kind, problems),
        prompt: given.prompt,
        schema,
        filter,
        max_tokens,
        output: output(&fields, problems),
        expect: expect(&fields, known_kind, problems),
        retry: policies::retry(&fields, kind, problems),
        timeout_ms: timeouts.attempt,
        step_timeout_ms: timeouts.step,
        idle_timeout_ms: timeouts.idle,
        queue_timeout_ms: timeouts.queue,
        pools: limits::pools(&fields, problems),
        targets,
        priority: policies::priority(&fields, problems),
        fallback: fallback::read(&fields, known_kind, problems),
        hedge: limits::hedge(&fields, known_kind, &on_unknown, problems),
        stall: limits::stall(&fields, problems),
        budget: limits::budget(&fields, problems),
        cache: cache::read(&fields, problems),
        on_unknown,
    };
    warn_without_foreach(&fields, problems);
    Some(operation)
}

/// The fields. A parameter written beside `params` gets a hint of its own, for that is the usual mistake.
fn open<'n, 'a>(
    node: &'n Node<'a>,
    place: &'n Place<'n>,
    problems: &mut Diagnostics,
) -> Option<Fields<'n, 'a>> {
    let fields = Fields::any(node, place, problems)?;
    let kind = fields.get("type").and_then(Node::as_str).and_then(primitive);
    for (key, _) in fields.entries() {
        let name = &*key.name;
        if OPERATION_FIELDS.contains(&name) {
            continue;
        }
        let is_param = kind.is_some_and(|kind| params::param_names(kind).contains(&name));
        let hint = if is_param {
            Some(format!("write it under `params`: {{ {name}: ... }}"))
        } else {
            elsewhere(name).or_else(|| did_you_mean(name, OPERATION_FIELDS.iter().copied()))
        };
        let message = format!("unknown field `{}`", printable(name));
        problems.push(Diagnostic::error(place.field(name), key.span, message).hint_if(hint));
    }
    Some(fields)
}

/// Where that is said which has no field here.
fn elsewhere(name: &str) -> Option<String> {
    let hint = match name {
        // Such rules are about several steps at once.
        "affinity" => "affinity rules are in sage.toml: [[affinity]]",
        "stepTimeout" => "write it under `timeout`: { step: ... }",
        "queueTimeout" => "write it under `timeout`: { queue: ... }",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The kind that `type` names.
fn kind_of(fields: &Fields<'_, '_>, library: &Library, problems: &mut Diagnostics) -> Option<Kind> {
    if fields.get("type").is_none() {
        fields.missing("type", problems);
    }
    let text = fields.text("type", problems)?;
    let kind = primitive(text);
    if kind.is_none() {
        let mut names: Vec<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
        let kinds = names.join(", ");
        names.extend(library.names());
        let hint = did_you_mean(text, names).unwrap_or_else(|| format!("kinds: {kinds}"));
        let span = fields.get("type").map_or(fields.span, |node| node.span);
        let message = format!("unknown type `{}`", printable(text));
        problems.push(Diagnostic::error(fields.place.field("type"), span, message).hint(hint));
    }
    kind
}

fn refuse_kind(fields: &Fields<'_, '_>, kind: Kind, problems: &mut Diagnostics) {
    if is_available(kind) {
        return;
    }
    let span = fields.get("type").map_or(fields.span, |node| node.span);
    let message = format!("the kind `{}` is not available in this version", kind.name());
    problems.push(Diagnostic::error(fields.place.field("type"), span, message));
}

/// What would give another result if it were ignored is refused.
fn refuse_unavailable(fields: &Fields<'_, '_>, problems: &mut Diagnostics) {
    if let Some(node) = fields.get("verify") {
        let message = "`verify` is not available in this version";
        problems.push(Diagnostic::error(fields.place.field("verify"), node.span, message));
    }
}

fn role(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Role> {
    let text = fields.text("role", problems)?;
    let span = fields.get("role").map_or(fields.span, |node| node.span);
    let report = |unknown: UnknownRole| {
        let problem = Diagnostic::error(fields.place.field("role"), span, unknown.to_string());
        problems.push(problem.hint(unknown.hint));
    };
    Role::parse(text).map_err(report).ok()
}

fn isolation(fields: &Fields<'_, '_>, kind: Option<Kind>, problems: &mut Diagnostics) -> Isolation {
    let Some(node) = fields.get("isolation") else { return Isolation::None };
    let place = fields.place.field("isolation");
    match node.as_str() {
        Some("none") => return Isolation::None,
        Some("worktree") => {}
        _ => {
            problems.push(expected("`none` or `worktree`", node, &place));
            return Isolation::None;
        }
    }
    if let Some(kind) =
        kind.filter(|kind| !matches!(kind, Kind::Shell | Kind::Agent | Kind::Script | Kind::Verify))
    {
        let message = format!("`isolation` has no effect on a step of the kind `{}`", kind.name());
        problems.push(Diagnostic::warning(place, node.span, message));
        return Isolation::None;
    }
    if let Some(hedge) = fields.get("hedge") {
        let message = "a step with `isolation: worktree` cannot be hedged";
        let problem = Diagnostic::error(fields.place.field("hedge"), hedge.span, message);
        let hint = "both attempts would write to the same worktree: leave out one of the two";
        problems.push(problem.also(node.span, "isolation").hint(hint));
    }
    Isolation::Worktree
}

pub fn is_available(kind: Kind) -> bool {
    !matches!(kind, Kind::Verify)
}

/// jq, also where a list is meant as it is.
fn foreach(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Source> {
    let node = fields.get("foreach")?;
    if let Data::Seq(_) = node.data {
        let list = node.to_json().to_string().replace('\'', "''");
        let problem = expected("a jq expression", node, &fields.place.field("foreach"));
        problems.push(problem.hint(format!("foreach: '{}'", printable(&list))));
        return None;
    }
    fields.source("foreach", problems)
}

fn warn_without_foreach(fields: &Fields<'_, '_>, problems: &mut Diagnostics) {
    if fields.get("foreach").is_some() {
        return;
    }
    for name in ["maxParallel", "tolerate"] {
        if let Some(span) = fields.key_span(name) {
            let message = format!("`{name}` has no effect without `foreach`");
            problems.push(Diagnostic::warning(fields.place.field(name), span, message));
        }
    }
}

fn schema(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Value> {
    let node = fields.get("schema")?;
    match node.data {
        Data::Map(_) | Data::Bool(_) => Some(node.to_json()),
        _ => {
            problems.push(expected("a JSON Schema", node, &fields.place.field("schema")));
            None
        }
    }
}

/// A file to write. It must stay in the project, whatever is filled in later.
fn output(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Source> {
    let source = fields.source("output", problems)?;
    let text = source.text.trim();
    let leaves = text.starts_with(['/', '~']) || text.split(['/', '\\']).any(|part| part == "..");
    if text.is_empty() || leaves {
        let message = "`output` must be a path inside the project";
        problems.push(Diagnostic::error(fields.place.field("output"), source.span, message));
    }
    Some(source)
}

fn expect(fields: &Fields<'_, '_>, kind: Option<Kind>, problems: &mut Diagnostics) -> Option<Value> {
    let node = fields.get("expect")?;
    let place = fields.place.field("expect");
    if let Some(kind) = kind.filter(|kind| !kind.holds_slot()) {
        let message = format!("`expect` is not checked on a step of the kind `{}`", kind.name());
        let hint = "put it on the steps that do the work: shell, agent, tool, synthesize";
        problems.push(Diagnostic::error(place, node.span, message).hint(hint));
        return None;
    }
    let expect = Fields::new(node, &place, EXPECT_FIELDS, problems)?;
    let mut json = node.to_json();
    let files = expected_files(&expect, problems);
    if expect.get("files").is_some() {
        json["files"] = files.into();
    }
    for name in ["headMoved", "changes", "passed"] {
        expect.flag(name, problems);
    }
    if expect.text("command", problems).is_some_and(|command| command.trim().is_empty()) {
        let span = expect.get("command").map_or(node.span, |node| node.span);
        let message = "the command is empty: it would check nothing";
        let problem = Diagnostic::error(place.field("command"), span, message);
        problems.push(problem.hint("command: \"make test\""));
    }
    Some(json)
}

/// A list of paths; a single one may stand without brackets.
fn expected_files(expect: &Fields<'_, '_>, problems: &mut Diagnostics) -> Vec<String> {
    let hint = "files: [docs/report.md]";
    let place = expect.place.field("files");
    if let Some(node) = expect.get("files").filter(|node| !matches!(node.data, Data::Str(_) | Data::Seq(_))) {
        problems.push(expected("a list of paths", node, &place).hint(hint));
        return Vec::new();
    }
    let mut files = Vec::new();
    expect.each_text("files", "path", problems, |text, span, place, problems| {
        if text.trim().is_empty() {
            problems.push(Diagnostic::error(place, span, "the path is empty").hint(hint));
        }
        files.push(text.to_owned());
    });
    if let Some(node) =
        expect.get("files").filter(|node| matches!(&node.data, Data::Seq(all) if all.is_empty()))
    {
        let message = "the list is empty: no file would be checked";
        problems.push(Diagnostic::error(place, node.span, message).hint(hint));
    }
    files
}

fn first_byte(node: &Node<'_>) -> Span {
    Span { start: node.span.start, end: node.span.start + 1 }
}

/// A text field of the operation that may also stand in `params`.
pub fn either(
    fields: &Fields<'_, '_>,
    params: Option<&Fields<'_, '_>>,
    name: &str,
    problems: &mut Diagnostics,
) -> Option<Source> {
    let inner = params.and_then(|params| params.get(name).map(|node| (params, node)));
    match (fields.get(name), inner) {
        (Some(outer), Some((params, node))) => {
            let message = format!("`{name}` is given twice");
            let problem = Diagnostic::error(params.place.field(name), node.span, message);
            problems.push(problem.also(outer.span, "first"));
            source_of(outer)
        }
        (Some(_), None) => fields.source(name, problems),
        (None, Some((params, _))) => params.source(name, problems),
        (None, None) => None,
    }
}
