//! What a run shows about how its work was done: prompts, results, commands that passed, files.

use std::collections::{BTreeSet, HashMap};

use sage_core::run::{Run, ScopeId, State, StepId};
use sage_core::template::Kind;
use sage_engine::blobs::Blobs;
use sage_engine::results::{Face, artifacts_of, value_of};
use sage_engine::skills::MAX_KNOWN_BYTES;
use serde_json::{Map, Value};

use super::super::failure::Failure;
use super::count::{DISCOVER, discoveries};
use crate::command_line::sage;

/// Steps that say nothing about how the work is done.
const BESIDE: &[&str] = &[DISCOVER, "tickets.create", "tickets.update", "statistics"];
const MAX_LISTED: usize = 50;

#[derive(Debug, Default)]
pub struct Facts {
    pub steps: Vec<StepFacts>,
    pub commands: Vec<String>,
    pub files: Vec<String>,
    /// What an earlier version of the skill had handed to this run, by step.
    handed: Map<String, Value>,
}

#[derive(Debug)]
pub struct StepFacts {
    /// Without the round.
    pub path: String,
    pub type_name: String,
    pub prompt: Option<String>,
    pub result: Value,
}

impl Facts {
    /// `from` names the steps that matter; without any it is all of the workflow's own.
    pub fn gather(run: &Run, blobs: &Blobs, from: &[String], name: &str) -> Result<Facts, Failure> {
        refuse_unmade_checks(run)?;
        refuse_failed_checks(run, blobs)?;
        let ids = if from.is_empty() { all(run) } else { named(run, from)? };
        let mut facts = Facts { handed: handed(run, blobs, name), ..Facts::default() };
        for id in ids {
            facts.take(run, id, blobs)?;
        }
        for list in [&mut facts.commands, &mut facts.files] {
            let mut seen = BTreeSet::new();
            list.retain(|item| !item.trim().is_empty() && seen.insert(item.clone()));
            list.truncate(MAX_LISTED);
        }
        Ok(facts)
    }

    fn take(&mut self, run: &Run, id: StepId, blobs: &Blobs) -> Result<(), Failure> {
        let (step, operation) = (run.step(id), run.operation(id));
        let result = match &step.output {
            Some(output) => {
                value_of(output, Face::Filtered, blobs).map_err(|error| Failure::failed(error.to_string()))?
            }
            None => Value::Null,
        };
        if let Some(expect) = &operation.expect {
            self.commands.extend(expect["command"].as_str().map(str::to_string));
            self.files.extend(texts(&expect["files"]));
        }
        if operation.kind == Kind::Shell
            && let Some(script) = operation.params.get("run").and_then(Value::as_str)
        {
            self.commands.push(script.trim().to_string());
        }
        let passed = |command: &&Value| command["exitCode"] == 0;
        let commands = result["commands"].as_array().into_iter().flatten().filter(passed);
        self.commands.extend(commands.filter_map(|command| command["command"].as_str()).map(str::to_string));
        self.files.extend(step.output.as_ref().map(|output| artifacts_of(output)).unwrap_or_default());
        self.files.extend(texts(&result["filesChanged"]));
        let fill =
            |text: &str| text.replace("{{ title }}", &run.title).replace("{{ feature }}", &run.feature);
        self.steps.push(StepFacts {
            path: base(&step.path),
            type_name: operation.type_name.clone(),
            prompt: operation.prompt.as_ref().map(|prompt| fill(prompt.text.trim())),
            result,
        });
        Ok(())
    }

    /// What `result.json` will hold, and which results are too large for it.
    pub fn result(&self) -> (Option<Value>, Vec<String>) {
        let mut results = self.handed.clone();
        let mut notes = Vec::new();
        for step in self.steps.iter().filter(|step| !step.result.is_null()) {
            let before = results.insert(step.path.clone(), step.result.clone());
            let bytes = serde_json::to_vec_pretty(&results).map_or(usize::MAX, |text| text.len());
            // As the store writes it, with a line break at its end.
            if bytes >= MAX_KNOWN_BYTES {
                notes.push(format!(
                    "the result of `{}` is too large to be handed on; it is left out",
                    step.path
                ));
                match before {
                    Some(before) => results.insert(step.path.clone(), before),
                    None => results.remove(&step.path),
                };
            }
        }
        ((!results.is_empty()).then_some(Value::Object(results)), notes)
    }
}

/// `research@2/market` is `research/market` to whoever reads it later.
fn base(path: &str) -> String {
    let part = |part: &str| part.split_once('@').map_or(part, |(before, _)| before).to_string();
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The newest round of each of the workflow's own steps that did something.
fn newest(run: &Run) -> Vec<StepId> {
    let own = |id: &StepId| run.step(*id).scope == ScopeId(0) && run.step(*id).item.is_none();
    let mut newest: Vec<StepId> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for id in run.step_ids().filter(own) {
        let place = *places.entry(base(&run.step(id).path)).or_insert(newest.len());
        match newest.get_mut(place) {
            Some(last) => *last = id,
            None => newest.push(id),
        }
    }
    newest
}

fn all(run: &Run) -> Vec<StepId> {
    let works = |id: &StepId| {
        let operation = run.operation(*id);
        matches!(run.step(*id).state, State::Succeeded)
            && !matches!(operation.kind, Kind::Sleep | Kind::Approval)
            && !BESIDE.contains(&operation.type_name.as_str())
    };
    newest(run).into_iter().filter(works).collect()
}

fn named(run: &Run, from: &[String]) -> Result<Vec<StepId>, Failure> {
    let mut ids = Vec::new();
    for path in from {
        let id = super::super::step(run, path)?;
        let state = &run.step(id).state;
        if !matches!(state, State::Succeeded) {
            let failure = Failure::usage(format!(
                "step `{path}` is {}; only steps that succeeded are saved",
                state.name()
            ));
            return Err(failure.hint(sage("status").arg(&run.feature)));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// One check must have been made: a run without any has shown nothing. That the project builds is not enough where the
/// workflow has tests.
fn refuse_unmade_checks(run: &Run) -> Result<(), Failure> {
    let is_check = |&id: &StepId| {
        let expect = run.operation(id).expect.as_ref();
        run.operation(id).is_check() || expect.is_some_and(|expect| expect["command"].is_string())
    };
    let is_build = |id: StepId| run.operation(id).type_name == "build.verify";
    let checks: Vec<StepId> = run.step_ids().filter(is_check).collect();
    let has_tests = checks.iter().any(|&id| !is_build(id));
    let made = |id: StepId| {
        let step = run.step(id);
        step.children.is_none() && matches!(step.state, State::Succeeded) && !step.degraded
    };
    if checks.iter().any(|&id| made(id) && (!has_tests || !is_build(id))) {
        return Ok(());
    }
    let rule = "skills are saved only from runs whose checks ran and passed";
    let unmade = checks.iter().find(|&&id| !made(id) && (!has_tests || !is_build(id)));
    Err(match unmade {
        Some(&id) => Failure::usage(format!("step `{}` did not run; {rule}", run.step(id).path))
            .hint(sage("result").arg(&run.feature).arg(run.step(id).path.as_ref())),
        None => Failure::usage(format!("`{}` has no check such as `test.run`; {rule}", run.feature))
            .hint(sage("status").arg(&run.feature)),
    })
}

/// A run can succeed and its tests can have failed: what a step reports counts, too.
fn refuse_failed_checks(run: &Run, blobs: &Blobs) -> Result<(), Failure> {
    for id in newest(run) {
        let step = run.step(id);
        let value = step.output.as_ref().map(|output| value_of(output, Face::Full, blobs));
        let value =
            value.transpose().map_err(|error| Failure::failed(error.to_string()))?.unwrap_or(Value::Null);
        let why = if step.degraded { Some("succeeded only in part".into()) } else { failed_check(&value) };
        if let Some(why) = why {
            let failure = Failure::usage(format!(
                "step `{}` {why}; skills are saved only from runs whose checks passed",
                step.path
            ));
            return Err(failure.hint(sage("result").arg(&run.feature).arg(step.path.as_ref())));
        }
    }
    Ok(())
}

/// The shapes of tests and reviews; a fan-out has a list of them.
fn failed_check(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().find_map(failed_check),
        Value::Object(_) if value["passed"] == false || value["tests"]["passed"] == false => {
            Some("reports a check that did not pass".into())
        }
        Value::Object(_) if value["passed"] == true && value["ran"] == false => {
            Some("reports a check that did not run".into())
        }
        Value::Object(_) => {
            let verdict = value["verdict"].as_str()?;
            ["REQUEST_CHANGES", "ESCALATE"]
                .contains(&verdict)
                .then(|| format!("came to the verdict {verdict}"))
        }
        _ => None,
    }
}

/// A run that skipped what was known hands the knowledge on, if the same skill is saved again.
fn handed(run: &Run, blobs: &Blobs, name: &str) -> Map<String, Value> {
    let known = discoveries(run, blobs).into_iter().map(|mut value| value["known"].take());
    let same = known.filter(|known| known["skill"] == name);
    let mut results = same.filter_map(|mut known| match known["results"].take() {
        Value::Object(results) => Some(results),
        _ => None,
    });
    results.next_back().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect()
}
