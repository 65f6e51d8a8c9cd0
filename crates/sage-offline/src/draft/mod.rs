//! Documents and verdicts drafted without a model, from the project and from what earlier steps found.
//!
//! ```text
//!   project -> near (files, functions, callers, tests) --+-> specify -> plan -> tickets
//!   steps   -> earlier (findings, claims, questions) ----+-> critique, devops, document, audit
//! ```
//! Every sentence is a fact with its place, or is marked as something to be decided. Nothing is invented.

mod audit;
mod behaviour;
mod brief;
mod callers;
mod conventions;
mod critique;
mod devops;
mod docs;
mod earlier;
mod found;
mod fuzzy;
mod markdown;
mod mentions;
mod near;
mod passages;
mod place;
mod plan;
mod profile;
mod project;
mod questions;
mod requirements;
mod risks;
mod settings;
mod spec;
mod swarm;
mod task;
mod tasks;
mod undone;
mod uses;

use serde_json::Value;

use crate::request::{Request, Trouble};
use brief::Brief;
use earlier::Earlier;
use project::Project;

pub const OPERATIONS: &[&str] = &[
    "specify",
    "plan",
    "critique",
    "devops.prepare",
    "document",
    "implement",
    "implement.backend",
    "implement.frontend",
    "implement.fix",
    "clean",
    "swarm.plan",
    "swarm.implement",
    "swarm.audit",
];

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    match request.operation.as_str() {
        "specify" => spec::perform(request),
        "plan" => plan::perform(request),
        "devops.prepare" => devops::perform(request),
        "document" => docs::perform(request),
        "swarm.audit" => audit::perform(request),
        "swarm.plan" => swarm::perform(request),
        "implement" | "implement.backend" | "implement.frontend" | "implement.fix" | "swarm.implement"
        | "clean" => undone::perform(request),
        "critique" => critique::perform(request),
        other => Err(Trouble::UnknownOperation(other.to_string())),
    }
}

/// What steps before say they changed.
pub fn changed_files(request: &Request) -> Vec<String> {
    let earlier = Earlier::read(&request.steps);
    let mut files: Vec<String> =
        earlier.said.iter().flat_map(|said| fuzzy::texts(said.value.get("filesChanged"))).collect();
    files.sort();
    files.dedup();
    files
}

/// Names of the tests that failed in a step before; nothing if none ran tests.
pub fn failures_before(request: &Request) -> Option<Vec<String>> {
    let earlier = Earlier::read(&request.steps);
    let tested =
        earlier.said.iter().find(|said| said.value["ran"] == true && said.value["failures"].is_array())?;
    let failures = tested.value["failures"].as_array()?;
    Some(failures.iter().filter_map(|failure| failure["name"].as_str().map(str::to_string)).collect())
}

/// The files nearest the title, with those that call them.
pub fn near_paths(request: &Request) -> Vec<String> {
    let Ok(project) = Project::read(request) else { return Vec::new() };
    let brief = Brief::of(request, &project);
    let mut paths = brief.core_paths();
    paths.extend(brief.caller_paths());
    paths
}

#[cfg(test)]
mod tests;
