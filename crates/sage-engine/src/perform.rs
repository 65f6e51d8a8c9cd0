//! One attempt, from its durable intent to an end that can be journaled.
//!
//! ```text
//! reconcile? -> execute -> schema -> expect -> filter -> output file -> blobs -> End
//! ```
//! Success is a checked outcome: whatever is missing makes the attempt fail, however well the program ended.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sage_core::event::{End, Estimate, Filtered};
use sage_core::expr::ResultSchema;
use sage_core::policy::{FailureClass, OnUnknown};
use sage_core::port::{Evaluator, Refusal, StepCall, StepCx, StepExecutor, StepOutcome, Usage};
use sage_core::template::{Kind, Operation};
use serde_json::{Map, Value, json};

use crate::blobs::Blobs;
use crate::evaluate::off_loop;
use crate::filter::{Filter, Sieved};
use crate::prepare::Facts;
use crate::results::pack;
use crate::tokens;

/// Everything one attempt needs. Built by the loop, owned by the attempt's task.
pub struct Attempt {
    pub executor: Arc<dyn StepExecutor>,
    pub blobs: Arc<Blobs>,
    pub evaluator: Arc<dyn Evaluator>,
    pub cx: StepCx,
    pub call: StepCall,
    pub facts: Facts,
    pub checks: Checks,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("call", &self.call).finish_non_exhaustive()
    }
}

/// What the operation demands of a result.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    pub schema: Option<Value>,
    pub filter: Filter,
    pub output: Option<String>,
    pub expect: Option<Value>,
    /// It is to change something.
    pub implements: bool,
    /// Ask this command first whether a lost attempt had in fact finished.
    pub reconcile: Option<String>,
}

impl Checks {
    pub fn of(operation: &Operation, output: Option<String>, unknown: bool) -> Checks {
        let reconcile = match &operation.on_unknown {
            OnUnknown::Reconcile(command) if unknown => Some(command.clone()),
            _ => None,
        };
        Checks {
            schema: operation.schema.clone(),
            filter: Filter::of(operation),
            output,
            expect: operation.expect.clone(),
            implements: operation.implements(),
            reconcile,
        }
    }
}

/// How an attempt ended, with what it cost and what its target said.
#[derive(Debug)]
pub struct Ended {
    pub end: End,
    pub usage: Usage,
    pub refusal: Option<Refusal>,
    pub filtered: Option<Filtered>,
    /// Of an agent that tells no usage.
    pub estimate: Option<Estimate>,
}

impl Ended {
    fn of(end: End, usage: Usage) -> Ended {
        Ended { end, usage, refusal: None, filtered: None, estimate: None }
    }

    pub fn failed(class: FailureClass, message: impl Into<String>) -> Ended {
        Ended::of(failed(class, message), Usage::default())
    }

    pub fn stopped() -> Ended {
        Ended::of(End::Stopped, Usage::default())
    }
}

pub(crate) fn failed(class: FailureClass, message: impl Into<String>) -> End {
    End::Failed { class, message: message.into(), partial: None }
}

impl Attempt {
    pub async fn perform(mut self) -> Ended {
        match self.facts.input(&self.call.params, &self.blobs) {
            Ok(input) => self.call.input = input,
            Err(error) => return Ended::failed(FailureClass::Invalid, error.to_string()),
        }
        if let Some(result) = self.reconcile().await {
            return self.check(result, Usage::default()).await;
        }
        if self.checks.filter.counts() || self.estimates() {
            // Ready when the answer comes. A thread that cannot be had costs nothing but time then.
            drop(tokio::task::spawn_blocking(tokens::warm));
        }
        match self.executor.execute(self.cx.clone(), self.call.clone()).await {
            StepOutcome::Succeeded { result, usage } => {
                let estimate = if usage.is_empty() { self.estimate(&result).await } else { None };
                Ended { estimate, ..self.check(result, usage).await }
            }
            StepOutcome::Stopped { usage } => Ended::of(End::Stopped, usage),
            StepOutcome::Failed { class, message, partial, usage, refusal } => {
                // A partial result that cannot be kept must not hide why the attempt failed.
                let partial = partial.and_then(|value| pack(&value, &self.blobs).ok());
                Ended { refusal, ..Ended::of(End::Failed { class, message, partial }, usage) }
            }
        }
    }

    /// Whether its agent is one that never tells what it used.
    fn estimates(&self) -> bool {
        let agent = self.call.agent.as_deref().filter(|_| self.call.kind == Kind::Agent);
        agent.is_some_and(|agent| !self.executor.tells_usage(agent))
    }

    /// What such an agent has read and written at least, as far as we saw it.
    async fn estimate(&self, result: &Value) -> Option<Estimate> {
        if !self.estimates() {
            return None;
        }
        let text = |name: &str| self.call.params.get(name).and_then(Value::as_str).unwrap_or_default();
        let (prompt, answer) = (format!("{}{}", text("system"), text("prompt")), result.clone());
        let count = move || Ok(Estimate { input: tokens::count(&prompt), output: tokens::of_json(&answer) });
        off_loop("tokens", count).await.ok()
    }

    /// The result of a lost attempt, if the operation's own command says that it finished.
    async fn reconcile(&self) -> Option<Value> {
        let command = self.checks.reconcile.as_ref()?;
        match self.shell(&self.cx, command).await {
            StepOutcome::Succeeded { result, .. } => {
                let stdout = result.get("stdout").and_then(Value::as_str).unwrap_or_default();
                Some(serde_json::from_str(stdout).unwrap_or_else(|_| json!(stdout)))
            }
            _ => None,
        }
    }

    async fn check(&self, result: Value, usage: Usage) -> Ended {
        if let Some(end) = self.check_schema(&result) {
            return Ended::of(end, usage);
        }
        let written = match &self.checks.output {
            Some(path) => match write_output(&self.cx.project, path, &result) {
                Ok(path) => vec![path],
                Err(why) => return Ended::of(failed(FailureClass::Invalid, why), usage),
            },
            None => Vec::new(),
        };
        if let Some(end) = self.unmet(&result).await {
            return Ended::of(end, usage);
        }
        self.finish(result, written, usage).await
    }

    fn check_schema(&self, result: &Value) -> Option<End> {
        let schema = match ResultSchema::compile(self.checks.schema.as_ref()?) {
            Ok(schema) => schema,
            Err(error) => return Some(failed(FailureClass::Invalid, format!("`schema`: {error}"))),
        };
        let problems = schema.check(result).err()?;
        let message = format!("the result does not fit its schema: {}", problems.join("; "));
        Some(End::Failed { class: FailureClass::Invalid, message, partial: pack(result, &self.blobs).ok() })
    }

    async fn finish(&self, result: Value, artifacts: Vec<String>, usage: Usage) -> Ended {
        let changed = self.changes().files;
        if self.checks.filter.is_none() {
            let end = match pack(&result, &self.blobs) {
                Ok(result) => End::Succeeded { result, full: None, artifacts, changed },
                Err(error) => failed(FailureClass::Transient, error.to_string()),
            };
            return Ended::of(end, usage);
        }
        let (filter, facts, blobs) = (self.checks.filter.clone(), self.facts.clone(), self.blobs.clone());
        let evaluator = self.evaluator.clone();
        let sieved = off_loop("`filter`", move || {
            let context = || facts.context(&blobs).map_err(|error| error.to_string());
            filter.sieve(&result, context, &blobs, evaluator.as_ref())
        });
        match sieved.await {
            Ok(Sieved { result, full, filtered }) => {
                let end = End::Succeeded { result, full, artifacts, changed };
                Ended { filtered, ..Ended::of(end, usage) }
            }
            Err(why) => Ended::of(failed(FailureClass::Invalid, why), usage),
        }
    }
}

/// Text as it is, a result's own text if it has one, anything else as indented JSON; whole or not at all.
pub(crate) fn write_output(project: &Path, path: &str, result: &Value) -> Result<String, String> {
    let target = inside(project, path)?;
    let text = match result {
        Value::String(text) => text.clone(),
        Value::Object(map) if text_of(map).is_some() => text_of(map).unwrap_or_default().to_string(),
        other => serde_json::to_string_pretty(other).map_err(|e| e.to_string())? + "\n",
    };
    let refuse = |error: std::io::Error| format!("cannot write `{path}`: {error}");
    let parent = target.parent().unwrap_or(project);
    std::fs::create_dir_all(parent).map_err(refuse)?;
    // Steps that run at once write beside each other: every temporary file has a name of its own.
    let temporary = parent.join(format!(".sage-{}.tmp", ulid::Ulid::generate()));
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &target));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(refuse(error));
    }
    Ok(path.to_string())
}

/// What a program printed, or the document that an answer carries.
fn text_of(result: &Map<String, Value>) -> Option<&str> {
    ["document", "stdout"].into_iter().find_map(|name| result.get(name)?.as_str())
}

/// A project file that an operation names: relative, never above the project, not through a link out of it,
/// and not sage's own state.
pub(crate) fn inside(project: &Path, path: &str) -> Result<PathBuf, String> {
    let outside = || format!("`{path}` is not a path inside the project");
    let plain =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if path.is_empty() || !plain {
        return Err(outside());
    }
    let target: PathBuf = project.join(path).components().collect();
    if target.starts_with(project.join(".sage/state")) {
        return Err(format!("`{path}` is sage's own state"));
    }
    let existing = target.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(project);
    let (real, root) = (existing.canonicalize(), project.canonicalize());
    match (real, root) {
        (Ok(real), Ok(root)) if real.starts_with(&root) => Ok(target),
        _ => Err(outside()),
    }
}
