//! What a new run is made of, and whether it can end well: the same for every door.
//!
//! ```text
//! template + settings + inputs -> plan -> Prepared -> check (programs, repository, disk) -> start
//! ```

use sage_core::check::Loaded;
use sage_core::slug::Feature;
use sage_engine::open::StartRequest;
use serde_json::{Map, Value};

use super::agent_choice;
use super::catalog::{Catalog, Ready};
use super::context::Context;
use super::failure::Failure;
use super::flags::Limits;
use super::inputs;
use super::notes::Note;
use super::preflight::{ability_notes, check_agents, check_programs, check_repository, check_trust};
use super::{health, warnings};

/// What somebody wants to be run.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub feature: &'a Feature,
    /// The one of sage.toml without it, else `feature`.
    pub template: Option<&'a str>,
    pub limits: &'a Limits,
    /// Inputs that are values already, beside those of `limits` that are text.
    pub inputs: Map<String, Value>,
    pub replace: bool,
    /// Who else wants it cannot spend more than the project's budget.
    pub by_person: bool,
    /// Somebody is there who could be asked.
    pub asks: bool,
}

#[derive(Debug)]
pub struct Prepared {
    pub ready: Ready,
    /// The template as it was asked for.
    pub typed: Option<String>,
    pub request: StartRequest,
    /// What is odd about it.
    pub notes: Vec<Note>,
}

/// Loads and checks the template and completes the settings. Spends and writes nothing.
pub fn plan(
    context: &Context,
    wanted: Wanted<'_>,
    report: &mut dyn FnMut(&str, &Loaded, &str),
) -> Result<Prepared, Failure> {
    let own = || context.config.file.template.clone().unwrap_or_else(|| "feature".into());
    let name = wanted.template.map_or_else(own, str::to_string);
    let ready = Catalog::of(context).load(&name, report)?;
    let mut settings =
        wanted.limits.settings(&context.config, &ready.template, ready.frozen.file.is_none())?;
    if let (false, Some(most)) = (wanted.by_person, context.config.budget) {
        wanted.limits.keep_within(most, ready.template.budget, &mut settings)?;
    }
    agent_choice::choose(context, &ready, &mut settings, wanted.asks)?;
    check_agents(context, &ready, settings.agent.as_deref())?;
    let mut notes = warnings::before_run(context, &ready, wanted.template);
    notes.extend(ability_notes(context, &ready, settings.agent.as_deref()));
    let given = inputs::given(&ready.template, &wanted.limits.inputs, wanted.inputs)?;
    let inputs = inputs::complete(&ready.template, given)?;
    let request = StartRequest {
        feature: wanted.feature.slug().into(),
        title: wanted.feature.title().into(),
        template: ready.frozen.clone(),
        templates: ready.others.clone(),
        inputs,
        settings,
        replace: wanted.replace,
        no_wait: wanted.limits.no_wait,
    };
    Ok(Prepared { ready, typed: wanted.template.map(str::to_string), request, notes })
}

/// What can be known to go wrong is refused before anything is spent; what may go wrong is a note.
pub fn check(context: &Context, prepared: &Prepared) -> Result<Vec<Note>, Failure> {
    let Prepared { ready, request, typed, .. } = prepared;
    check_trust(context, ready, request.settings.agent.as_deref(), typed.as_deref())?;
    check_programs(context, ready, request.settings.agent.as_deref())?;
    check_repository(context, ready)?;
    health::before_run(context, ready)
}
