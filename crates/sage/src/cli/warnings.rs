//! What a run and its configuration name that is not there, and therefore limits nothing. No error: a project may
//! say later how large a pool is.

use std::collections::{BTreeMap, BTreeSet};

use sage_core::diagnostic::did_you_mean;
use sage_core::template::{Kind, Template};

use super::catalog::{Catalog, Ready};
use super::config::{Config, known_agents};
use super::context::Context;
use super::notes::Note;
use crate::trust::workflow::Used;

/// Agents that need no entry of their own, besides those that everybody knows.
const BUILT_IN: [&str; 4] = ["fake", "command", "foreign", "offline"];

/// What is odd, and a way out of it.
#[derive(Debug)]
pub struct Warning {
    pub message: String,
    pub hint: String,
}

impl Warning {
    fn note(&self) -> Note {
        Note::warning(self.message.clone()).hint(self.hint.clone())
    }
}

/// For people: on stderr, as warnings of templates.
pub fn tell<'a>(warnings: impl IntoIterator<Item = &'a Warning>) {
    warnings.into_iter().for_each(|warning| eprintln!("{}", warning.note()));
}

/// Everything about a run that is about to start. `typed` is the template as a person named it.
pub fn before_run(context: &Context, ready: &Ready, typed: Option<&str>) -> Vec<Note> {
    let all = of_pools(context, ready).into_iter().chain(of_config(&context.config));
    let warnings =
        all.chain(of_trust(context, ready)).chain(of_ignored(&context.config)).map(|warning| warning.note());
    of_project(context, ready, typed).into_iter().chain(warnings).collect()
}

/// Files of the project that take part in a run whose template is not the project's, or was not named.
fn of_project(context: &Context, ready: &Ready, typed: Option<&str>) -> Option<Note> {
    let mut files = Used::of(&Catalog::of(context), ready, typed).files;
    files.dedup();
    (!files.is_empty()).then(|| Note::new(format!("this run uses the project's own {}", files.join(", "))))
}

/// What agents of this run would have beside their own, were it trusted: servers and rules.
fn of_trust(context: &Context, ready: &Ready) -> Option<Warning> {
    let operations = ready.inner.iter().chain([&ready.template]).flat_map(|template| &template.phases);
    let mut kinds = operations.flat_map(|phase| &phase.operations).map(|operation| operation.kind);
    if !kinds.any(|kind| matches!(kind, Kind::Agent | Kind::Script)) {
        return None;
    }
    let is_setting = |name: &str| context.config.ignored.iter().any(|it| it.name == name);
    let left = context.config.untrusted.iter();
    let left = left.filter(|it| !it.name.starts_with("agents.") && !is_setting(&it.name));
    let left: Vec<&str> = left.map(|it| it.name.as_str()).collect();
    let message = format!("not trusted, so agents work without: {}", left.join(", "));
    (!left.is_empty()).then(|| Warning { message, hint: "sage trust".into() })
}

/// Settings that would widen what may be done, or weaken what protects the user.
pub fn of_ignored(config: &Config) -> Option<Warning> {
    let names: Vec<&str> = config.ignored.iter().map(|it| it.name.as_str()).collect();
    let message = format!("not trusted, so these settings of sage.toml do not count: {}", names.join(", "));
    (!names.is_empty()).then(|| Warning { message, hint: "sage trust".into() })
}

/// Pools that the templates name: unknown ones, and those that are too small for a step.
pub fn of_pools(context: &Context, ready: &Ready) -> Vec<Warning> {
    let mut sizes: BTreeMap<String, u32> = context.config.pools.clone();
    sizes.extend(context.limits().overrides());
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut warnings = Vec::new();
    for template in ready.inner.iter().chain([&ready.template]) {
        for (path, pool, units) in wants(template) {
            let warning = match sizes.get(pool) {
                None => unknown_pool(pool, sizes.keys()),
                Some(size) if *size < units => Warning {
                    message: format!(
                        "step `{path}` takes {units} of pool `{pool}`, which has {size}: it runs alone there"
                    ),
                    hint: format!("[pools] {pool} = {units} in sage.toml"),
                },
                Some(_) => continue,
            };
            if told.insert(pool) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

fn wants(template: &Template) -> impl Iterator<Item = (String, &str, u32)> {
    template.phases.iter().flat_map(|phase| {
        phase.operations.iter().flat_map(move |operation| {
            let path = format!("{}/{}", phase.id, operation.id);
            operation.pools.iter().map(move |(pool, units)| (path.clone(), pool.as_str(), *units))
        })
    })
}

fn unknown_pool<'a>(pool: &str, known: impl Iterator<Item = &'a String>) -> Warning {
    let near = did_you_mean(pool, known.filter(|name| !name.contains(':')).map(String::as_str));
    Warning {
        message: format!("pool `{pool}` is not configured, so it limits nothing"),
        hint: near.unwrap_or_else(|| format!("[pools] {pool} = 2 in sage.toml")),
    }
}

/// Agents that `sage.toml` names and nothing can run.
pub fn of_config(config: &Config) -> Vec<Warning> {
    let mut known: Vec<&str> = known_agents().chain(BUILT_IN).collect();
    known.extend(config.file.agents.keys().map(String::as_str));
    let mut warnings = Vec::new();
    for (number, rule) in config.affinity.iter().enumerate() {
        let strange = rule.agents.iter().filter(|agent| !known.contains(&agent.as_str()));
        warnings.extend(strange.map(|agent| Warning {
            message: format!(
                "`affinity[{number}]`: agent `{agent}` is not configured, so the rule limits nothing of it"
            ),
            hint: did_you_mean(agent, known.iter().copied())
                .unwrap_or_else(|| format!("[agents.{agent}] command = [...] in sage.toml")),
        }));
    }
    let bare = config.file.agents.iter().filter(|(name, agent)| {
        let built_in = known_agents().chain(BUILT_IN).any(|known| known == name.as_str());
        // Only these are programs that nobody else names.
        let program = matches!(agent.adapter.as_deref(), None | Some("command" | "acp"));
        agent.command.is_none() && program && !built_in
    });
    warnings.extend(bare.map(|(name, _)| Warning {
        message: format!("agent `{name}` has no command: only steps with a command of their own can use it"),
        hint: format!("[agents.{name}] command = [...] in sage.toml"),
    }));
    warnings
}
