//! What a run did with skills, counted when it has ended: once per run, whoever ends or resumes it.

use sage_core::run::{Output, Run, Status, StepId};
use sage_core::verdict::Verdict;
use sage_engine::blobs::Blobs;
use sage_engine::clock::Clock;
use sage_engine::open::Engine;
use sage_engine::results::{Face, value_of};
use sage_engine::skills::{RunUse, Store};
use serde_json::Value;

pub const DISCOVER: &str = "skills.discover";

/// Statistics never fail a run; that they could not be kept is told.
pub fn count(engine: &Engine, run: &Run) {
    let Status::Finished(verdict @ (Verdict::Succeeded | Verdict::Degraded | Verdict::Failed)) = run.status
    else {
        return;
    };
    let found: Vec<Value> = discoveries(run, &engine.blobs(&run.id));
    if found.is_empty() {
        return;
    }
    let succeeded = verdict == Verdict::Succeeded;
    let used = RunUse { offered: names(&found, false), used: names(&found, true), succeeded };
    let store =
        Store::new(&engine.project, Vec::new(), engine.vfs.clone(), Clock::System, engine.key.as_ref());
    if let Err(error) = store.record(&run.id, used) {
        eprintln!("note: the reuse of skills was not counted: {error}");
    }
}

/// The results of the steps that looked for skills.
pub fn discoveries(run: &Run, blobs: &Blobs) -> Vec<Value> {
    let mut found = Vec::new();
    for id in run.step_ids().filter(|id| looked(run, *id)) {
        if let Some(output) = &run.step(id).output
            && let Ok(value) = value_of(output, Face::Full, blobs)
        {
            found.push(value);
        }
    }
    found
}

/// A step of that type, or one whose program gave such a result. Only what is in the journal is looked at.
fn looked(run: &Run, id: StepId) -> bool {
    let Some(output) = &run.step(id).output else { return false };
    if run.operation(id).type_name == DISCOVER && run.step(id).children.is_none() {
        return true;
    }
    let Output::Leaf { result, full, .. } = output.as_ref() else { return false };
    let json = full.as_ref().unwrap_or(result).json.as_ref();
    json.is_some_and(|json| json.get().contains("\"type\":\"skills.discover\""))
}

fn names(found: &[Value], used: bool) -> Vec<String> {
    let skills = found.iter().filter_map(|value| value["skills"].as_array()).flatten();
    let wanted = skills.filter(|skill| !used || skill["usedByItself"] == true);
    let mut names: Vec<String> =
        wanted.filter_map(|skill| skill["name"].as_str()).map(str::to_string).collect();
    names.retain(|name| sage_core::skill::is_name(name));
    names.sort_unstable();
    names.dedup();
    names
}
