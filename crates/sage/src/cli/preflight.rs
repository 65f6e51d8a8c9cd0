//! Before a run: every agent and every server that its templates name is known, and its program is there.

mod abilities;
mod servers;

use std::collections::{BTreeMap, BTreeSet};

use sage_agents::agent::{Fit, ProjectPart, Tested, adapter};
use sage_agents::{AgentConfig, worktree};
use sage_core::diagnostic::printable;
use sage_core::policy::Alternative;
use sage_core::run::Run;
use sage_core::template::{Isolation, Kind, Operation, Template};
use serde_json::Value;

use super::agent_choice::OFFLINE;
use super::catalog::{Catalog, Ready};
use super::context::Context;
use super::failure::Failure;
use super::notes::Note;
use super::{install, offline};
use crate::trust::workflow::{self, Used};
use crate::trust::{Definition, agent_files};

/// An agent that a step names.
#[derive(Debug)]
struct Use<'a> {
    path: String,
    /// `fallback to `, or nothing.
    role: &'static str,
    name: &'a str,
    operation: &'a Operation,
}

/// Missing agents and servers are found before anything is spent, those of sub-workflows too.
pub fn check_agents(context: &Context, ready: &Ready, default: Option<&str>) -> Result<(), Failure> {
    check_uses(context, ready, default, &|_| true)
}

/// As `check_agents`, of a template that is only looked at: who does the steps that name nobody is not known yet.
pub fn check_template(context: &Context, ready: &Ready) -> Result<(), Failure> {
    let default = context.config.file.agent.as_deref();
    check_uses(context, ready, default.or(Some(OFFLINE)), &|it| {
        it.operation.agent.is_some() || default.is_some()
    })
}

/// `is_meant`: the agent is the one that will do the step.
fn check_uses(
    context: &Context,
    ready: &Ready,
    default: Option<&str>,
    is_meant: &dyn Fn(&Use<'_>) -> bool,
) -> Result<(), Failure> {
    let known = context.config.agents();
    for it in &uses(ready, default)? {
        check_known(it, &known)?;
        if let Some(agent) = config_of(it.name, &known).filter(|_| !has_command(it.operation)) {
            if is_meant(it) {
                abilities::check(it, &agent)?;
            }
            servers::check_named(context, it, &agent)?;
        }
    }
    servers::check_known(context, ready)
}

/// What agents will not heed of what their steps ask for.
pub fn ability_notes(context: &Context, ready: &Ready, default: Option<&str>) -> Vec<Note> {
    let known = context.config.agents();
    // Whoever asks has checked them before.
    let uses = uses(ready, default).unwrap_or_default();
    let told = |it: &Use<'_>| {
        let agent = config_of(it.name, &known).filter(|_| !has_command(it.operation));
        agent.map(|agent| abilities::notes(it, &agent)).unwrap_or_default()
    };
    uses.iter().flat_map(told).collect()
}

/// Refuses definitions that the run would use and that are not trusted, before anything is spent. `typed` is the
/// template as a person named it.
pub fn check_trust(
    context: &Context,
    ready: &Ready,
    default: Option<&str>,
    typed: Option<&str>,
) -> Result<(), Failure> {
    let used = Used::of(&Catalog::of(context), ready, typed).definitions;
    let used = workflow::untrusted(used, &context.trust);
    let known = context.config.agents();
    let agents: Vec<Use<'_>> =
        uses(ready, default)?.into_iter().filter(|it| !has_command(it.operation)).collect();
    let named =
        agents.iter().flat_map(|it| servers::untrusted_named(context, it.operation, known.get(it.name)));
    let files: Vec<Definition> =
        agents.iter().flat_map(|it| untrusted_files(context, it.operation)).collect();
    let agents = agents.iter().filter_map(|it| context.config.untrusted_agent(it.name)).chain(named);
    let checks = checks_of(context, templates(ready));
    let servers = servers::untrusted(context, templates(ready));
    refuse(agents.chain(&files).chain(servers).chain(&used).chain(checks))
}

/// As `check_trust`, for a run that has begun.
pub fn check_run_trust(context: &Context, run: &Run) -> Result<(), Failure> {
    let plans: Vec<_> = run.named_plans().into_iter().map(|(_, plan)| plan).collect();
    let templates = || plans.iter().map(|plan| &plan.template).chain([&run.plan().template]);
    let known = context.config.agents();
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for operation in templates().flat_map(|template| &template.phases).flat_map(|phase| &phase.operations) {
        let mut of_step = Vec::new();
        // Whether it names an agent at all was checked when the run began.
        let _ = uses_of(&operation.id, operation, run.settings.agent.as_deref(), &mut of_step);
        let named =
            of_step.iter().filter(|it| it.operation.kind == Kind::Agent && !has_command(it.operation));
        for it in named {
            found.extend(context.config.untrusted_agent(it.name));
            found.extend(servers::untrusted_named(context, it.operation, known.get(it.name)));
            files.extend(untrusted_files(context, it.operation));
        }
    }
    let checks = checks_of(context, templates());
    let servers = servers::untrusted(context, templates());
    refuse(found.into_iter().chain(&files).chain(servers).chain(checks))
}

/// Files of the project for its agent that a step switches on and nobody has trusted.
fn untrusted_files(context: &Context, operation: &Operation) -> Vec<Definition> {
    let wanted = operation.params.get("project").map(ProjectPart::of);
    // What is no part was reported before.
    let parts = wanted.and_then(Result::ok).unwrap_or_default();
    agent_files::untrusted(&context.project.root, &context.trust, &parts)
}

/// `[checks]`, if a step would run them and nobody has trusted them.
fn checks_of<'a>(
    context: &'a Context,
    templates: impl Iterator<Item = &'a Template>,
) -> Option<&'a Definition> {
    let mut operations = templates.flat_map(|template| &template.phases).flat_map(|phase| &phase.operations);
    // An empty list of its own is looked up.
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value == "";
    let own = |operation: &Operation| operation.params.get("commands").is_some_and(|it| !is_empty(it));
    let runs_them = operations.any(|it| offline::checked_by(&it.type_name).is_some() && !own(it));
    context.config.untrusted_checks().filter(|_| runs_them)
}

fn refuse<'a>(untrusted: impl Iterator<Item = &'a Definition>) -> Result<(), Failure> {
    let mut found: Vec<Definition> = Vec::new();
    for definition in untrusted {
        if !found.contains(definition) {
            found.push(definition.clone());
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::untrusted(found)) }
}

fn templates(ready: &Ready) -> impl Iterator<Item = &Template> {
    ready.inner.iter().chain([&ready.template])
}

/// Missing programs and versions that are too old. Logins are not looked at: `sage agents` knows more.
pub fn check_programs(context: &Context, ready: &Ready, default: Option<&str>) -> Result<(), Failure> {
    let known = context.config.agents();
    let uses = uses(ready, default)?;
    uses.iter().try_for_each(|it| check_program(it, &known, context))?;
    let mut seen = BTreeSet::new();
    uses.iter().filter(|it| seen.insert(it.name)).try_for_each(|it| check_version(it, &known, context))?;
    for it in uses.iter().filter(|it| !has_command(it.operation)) {
        let agent = config_of(it.name, &known).unwrap_or_default();
        servers::check_named_programs(context, it, &agent)?;
    }
    servers::check_programs(context, ready)
}

/// Agents that need a worktree are not paid for before it is known that there can be one. Where a step might make the
/// repository, it is left to the run.
pub fn check_repository(context: &Context, ready: &Ready) -> Result<(), Failure> {
    let templates = || ready.inner.iter().chain([&ready.template]);
    let operations = || templates().flat_map(|template| &template.phases).flat_map(|phase| &phase.operations);
    let could_make = |operation: &Operation| {
        let kind = matches!(operation.kind, Kind::Shell | Kind::Script | Kind::Tool);
        kind && operation.isolation == Isolation::None
    };
    let isolated = operations().find(|operation| operation.isolation == Isolation::Worktree);
    let Some(operation) = isolated.filter(|_| !operations().any(could_make)) else { return Ok(()) };
    match worktree::repository(&context.project.root) {
        Ok(_) => Ok(()),
        Err(why) => {
            let what = format!("step `{}` works in a git worktree of its own", operation.id);
            Err(Failure::usage(format!("{what}, and {why}")).hint(why.hint()))
        }
    }
}

fn uses<'a>(ready: &'a Ready, default: Option<&'a str>) -> Result<Vec<Use<'a>>, Failure> {
    let mut uses = Vec::new();
    for template in ready.inner.iter().chain([&ready.template]) {
        for phase in &template.phases {
            for operation in phase.operations.iter().filter(|operation| operation.kind == Kind::Agent) {
                uses_of(&format!("{}/{}", phase.id, operation.id), operation, default, &mut uses)?;
            }
        }
    }
    Ok(uses)
}

fn uses_of<'a>(
    path: &str,
    operation: &'a Operation,
    default: Option<&'a str>,
    uses: &mut Vec<Use<'a>>,
) -> Result<(), Failure> {
    let of = |role, name| Use { path: path.to_string(), role, name, operation };
    match operation.agent.as_deref().or(default) {
        None if operation.params.contains_key("script") || has_command(operation) => {}
        None => {
            return Err(Failure::usage(format!("step `{path}` names no agent and there is no default"))
                .hint("--agent fake, or `agent = \"...\"` in sage.toml"));
        }
        Some(name) => uses.push(of("", name)),
    }
    let alternatives = operation.fallback.iter().flat_map(|fallback| &fallback.to);
    uses.extend(alternatives.filter_map(|alternative| match alternative {
        Alternative::Agent { agent: Some(name), .. } => Some(of("fallback to ", name.as_str())),
        _ => None,
    }));
    Ok(())
}

fn has_command(operation: &Operation) -> bool {
    operation.params.contains_key("command")
}

fn config_of(name: &str, known: &BTreeMap<String, AgentConfig>) -> Option<AgentConfig> {
    known.get(name).cloned().or_else(|| AgentConfig::built_in(name))
}

fn check_known(it: &Use<'_>, known: &BTreeMap<String, AgentConfig>) -> Result<(), Failure> {
    let Use { path, role, name, operation } = it;
    if has_command(operation) || matches!(*name, "fake" | "command") {
        return Ok(());
    }
    let Some(agent) = config_of(name, known) else {
        let mut names: Vec<&str> =
            known.keys().map(String::as_str).chain(AgentConfig::BUILT_IN.to_vec()).collect();
        names.sort_unstable();
        names.dedup();
        let message = format!("step `{path}`: {role}agent `{name}` is not configured");
        return Err(Failure::usage(message).hint(format!(
            "known agents: {}; add [agents.{name}] command = [...] to sage.toml",
            names.join(", ")
        )));
    };
    match agent.adapter.as_str() {
        "fake" | "offline" => Ok(()),
        "command" if !agent.command.is_empty() => Ok(()),
        "command" => Err(Failure::usage(format!("step `{path}`: {role}agent `{name}` has no command"))
            .hint(format!("[agents.{name}] command = [...] in sage.toml"))),
        other if adapter(other).is_some() => Ok(()),
        other => {
            let message = format!("step `{path}`: {role}agent `{name}` has the unknown adapter `{other}`");
            Err(Failure::usage(message).hint("sage agents"))
        }
    }
}

fn check_program(
    it: &Use<'_>,
    known: &BTreeMap<String, AgentConfig>,
    context: &Context,
) -> Result<(), Failure> {
    let Use { path, role, name, .. } = it;
    let Some(agent) = of_config(it, known) else { return Ok(()) };
    match install::missing(&agent, &context.project.root) {
        Some(program) => {
            let message =
                format!("step `{path}`: {role}agent `{name}` cannot start: there is no program `{program}`");
            Err(Failure::usage(message).hint(install::hint(&program)).hint("sage agents"))
        }
        None => Ok(()),
    }
}

/// An agent of an old version fails in ways that nobody understands.
fn check_version(
    it: &Use<'_>,
    known: &BTreeMap<String, AgentConfig>,
    context: &Context,
) -> Result<(), Failure> {
    let Use { path, role, name, .. } = it;
    let Some(agent) = of_config(it, known) else { return Ok(()) };
    let Some(tested) = Tested::of(&agent) else { return Ok(()) };
    match tested.installed(&agent, &context.project.root) {
        Some(version) if tested.fit(&version) == Some(Fit::TooOld) => {
            let range = tested.range();
            let message = format!(
                "step `{path}`: {role}agent `{name}` is too old: it is version {}; versions {range} were tested",
                printable(&version)
            );
            Err(Failure::usage(message).hint(tested.update()).hint("sage agents"))
        }
        _ => Ok(()),
    }
}

/// `None` for a step that brings its own program or place to look: it knows better.
fn of_config(it: &Use<'_>, known: &BTreeMap<String, AgentConfig>) -> Option<AgentConfig> {
    let own = ["command", "env", "cwd"].iter().any(|param| it.operation.params.contains_key(*param));
    config_of(it.name, known).filter(|_| !own)
}
