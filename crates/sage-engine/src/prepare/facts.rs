//! What expressions and programs of a step can see: the run, its inputs, and the steps before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sage_core::event::Payload;
use sage_core::run::{Children, Output, Run, StepId, StepSource};
use sage_core::template::Kind;
use serde_json::{Map, Value, json};

use super::Wanted;
use crate::blobs::Blobs;
use crate::called::STEPS;
use crate::pointer::pointer;
use crate::results::{Face, ResultError, artifacts_of, is_filtered, unpack, value_of};

/// What expressions can see.
#[derive(Debug, Clone)]
pub struct Facts {
    pub(super) feature: String,
    title: String,
    run: String,
    run_inputs: Option<Map<String, Value>>,
    scope_inputs: Option<Payload>,
    steps: BTreeMap<String, Seen>,
    pub(super) item: Option<(Payload, u32)>,
    /// In a fork: the feature that it comes from, and the sessions that were used there.
    pub(super) forked: Option<(String, BTreeSet<String>)>,
    /// What a synthesis puts together.
    sources: Vec<StepSource>,
    /// Of a step that code called: its parameters, with the results that it may see.
    given: Option<Payload>,
}

/// A step that expressions can see.
#[derive(Debug, Clone)]
struct Seen {
    /// In the run: inside a sub-workflow it is longer than the name that expressions use.
    path: Arc<str>,
    state: &'static str,
    output: Option<Arc<Output>>,
}

impl Facts {
    pub fn of(run: &Run, id: StepId, wanted: &Wanted) -> Facts {
        let step = run.step(id);
        let scope = run.scope(step.scope);
        let mut numbers: Vec<u32> = wanted.paths.iter().filter_map(|path| scope.plan.find(path)).collect();
        // Who is called by code is given what it needs by code.
        let called = step.call.is_some();
        if wanted.direct && !called {
            numbers.extend(run.direct(id));
        }
        let entry = |number: u32| {
            let step = run.step(run.meant(step.scope, number));
            let (path, output) = (step.path.clone(), step.output.clone());
            let seen = Seen { path, state: step.state.name(), output };
            (scope.plan.steps[number as usize].path.to_string(), seen)
        };
        let item = step.item.and_then(|(fan, index)| match run.step(fan).children.as_deref() {
            Some(Children::Items { items, .. }) => Some((items.clone(), index)),
            _ => None,
        });
        Facts {
            feature: run.feature.clone(),
            title: run.title.clone(),
            run: run.id.clone(),
            run_inputs: (scope.inputs.is_none() && !called).then(|| run.inputs.clone()),
            scope_inputs: scope.inputs.clone().filter(|_| !called),
            steps: numbers.into_iter().map(entry).collect(),
            item,
            forked: run
                .forks
                .first()
                .map(|from| (from.feature.clone(), run.sessions.keys().cloned().collect())),
            given: step.call.as_ref().map(|call| call.params.clone()),
            sources: if run.kind(id) == Kind::Synthesize { run.sources(id) } else { Vec::new() },
        }
    }

    pub fn context(&self, blobs: &Blobs) -> Result<Value, ResultError> {
        let mut context = Map::new();
        context.insert("feature".into(), self.feature.as_str().into());
        context.insert("title".into(), self.title.as_str().into());
        context.insert("run".into(), json!({"id": self.run}));
        context.insert("inputs".into(), self.inputs(blobs)?);
        let mut steps = Map::new();
        for (path, seen) in &self.steps {
            steps.insert(path.clone(), step_value(&self.feature, seen, blobs)?);
        }
        if let Some(given) = &self.given
            && let Some(Value::Object(shown)) = unpack(given, blobs)?.get_mut(STEPS).map(Value::take)
        {
            steps.extend(shown.into_iter().map(|(path, result)| (path, shown_step(result))));
        }
        context.insert("steps".into(), Value::Object(steps));
        if let Some((items, index)) = &self.item {
            context.insert(
                "item".into(),
                unpack(items, blobs)?.get(*index as usize).cloned().unwrap_or(Value::Null),
            );
            context.insert("index".into(), (*index).into());
        }
        Ok(Value::Object(context))
    }

    pub(super) fn inputs(&self, blobs: &Blobs) -> Result<Value, ResultError> {
        match (&self.scope_inputs, &self.run_inputs) {
            (Some(payload), _) => unpack(payload, blobs),
            (None, inputs) => Ok(Value::Object(inputs.clone().unwrap_or_default())),
        }
    }

    /// The content of `SAGE_INPUT`.
    pub fn input(&self, params: &Map<String, Value>, blobs: &Blobs) -> Result<Value, ResultError> {
        let Value::Object(mut context) = self.context(blobs)? else { return Ok(Value::Null) };
        let mut input = Map::new();
        input.insert("params".into(), Value::Object(params.clone()));
        for name in ["feature", "title", "inputs", "steps", "item", "index"] {
            if let Some(value) = context.shift_remove(name) {
                input.insert(name.into(), value);
            }
        }
        if !self.sources.is_empty() {
            input.insert("sources".into(), self.sources(blobs)?);
        }
        Ok(Value::Object(input))
    }
}

impl Facts {
    /// With their whole results: a filter is for prompts.
    fn sources(&self, blobs: &Blobs) -> Result<Value, ResultError> {
        let mut sources = Vec::with_capacity(self.sources.len());
        for StepSource { source, output } in &self.sources {
            let result = output.as_ref().map(|output| value_of(output, Face::Full, blobs)).transpose()?;
            sources.push(serde_json::to_value(sage_core::synthesis::Source { result, ..source.clone() })?);
        }
        Ok(Value::Array(sources))
    }
}

/// A result that code shows to a step, as if a step of a template had given it.
fn shown_step(result: Value) -> Value {
    json!({"state": "succeeded", "result": result, "full": result, "pointer": null, "artifacts": []})
}

fn step_value(feature: &str, seen: &Seen, blobs: &Blobs) -> Result<Value, ResultError> {
    let (state, Some(output)) = (seen.state, seen.output.as_deref()) else {
        let state = seen.state;
        return Ok(json!({"state": state, "result": null, "full": null, "pointer": null, "artifacts": []}));
    };
    let result = value_of(output, Face::Filtered, blobs)?;
    let (full, pointer) = if is_filtered(output) {
        let full = value_of(output, Face::Full, blobs)?;
        let pointer = pointer(feature, &seen.path, &result, &full);
        (full, pointer)
    } else {
        (result.clone(), None)
    };
    let (artifacts, changed) = (artifacts_of(output), output.changed());
    Ok(
        json!({"state": state, "result": result, "full": full, "pointer": pointer, "artifacts": artifacts, "changed": changed}),
    )
}
