//! One attempt, from its durable intent to an end that can be journaled.
//!
//! ```text
//! reconcile? -> execute -> schema -> expect -> filter -> output file -> blobs -> End
//! ```
//! Success is a checked outcome: whatever is missing makes the attempt fail, however well the program ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use sage_core::digest::Digest;
use sage_core::event::{Aside, End, Estimate, Filtered, PauseReason};
use sage_core::expr::ResultSchema;
use sage_core::policy::{Cause, FailureClass, OnUnknown};
use sage_core::port::{Evaluator, Refusal, StepCall, StepCx, StepExecutor, StepOutcome, Stop, Usage};
use sage_core::run::Output;
use sage_core::template::{Kind, Operation};
use sage_fence::{Fence, own};
use serde_json::{Value, json};

use crate::blobs::Blobs;
use crate::evaluate::off_loop;
use crate::filter::{Filter, Sieved};
use crate::output::{self, Content, Outputs, Target, Written};
use crate::prepare::{Facts, load};
use crate::results::{Face, pack, value_of};
use crate::run_loop::pause_before;
use crate::tokens;
use crate::trouble::{Obstacle, Refused, Trouble};

/// Left of the log of a program whose whole output went to a file.
const LOG_BYTES: u64 = 16 << 20;

/// Everything one attempt needs. Built by the loop, owned by the attempt's task.
pub struct Attempt {
    pub executor: Arc<dyn StepExecutor>,
    pub blobs: Arc<Blobs>,
    pub evaluator: Arc<dyn Evaluator>,
    pub cx: StepCx,
    pub call: StepCall,
    pub facts: Facts,
    pub checks: Checks,
    pub outputs: Arc<Outputs>,
    pub unkept: Unkept,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Work that is done, and cannot be kept for now.
pub struct Unkept {
    /// The loop learns of it with every try that fails.
    pub tell: Box<dyn Fn(&Trouble) + Send + Sync>,
    /// So many times it is tried again; without a number, until it is kept or the step is stopped.
    pub tries: Option<usize>,
}

/// What the operation demands of a result.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    pub schema: Option<Value>,
    pub filter: Filter,
    pub output: Option<Target>,
    pub expect: Option<Value>,
    /// It may change something.
    pub changes: bool,
    /// That it succeeds says something about the project's files.
    pub looks: bool,
    /// Only what is expected of this result is checked.
    pub kept: Option<Arc<Output>>,
    /// Ask this command first whether a lost attempt had in fact finished.
    pub reconcile: Option<String>,
}

impl Checks {
    pub fn of(operation: &Operation, output: Option<Target>, unknown: bool) -> Checks {
        let reconcile = match &operation.on_unknown {
            OnUnknown::Reconcile(command) if unknown => Some(command.clone()),
            _ => None,
        };
        Checks {
            schema: operation.schema.clone(),
            filter: Filter::of(operation),
            output,
            expect: operation.expect.clone(),
            changes: operation.may_change(),
            looks: operation.checks_project(),
            kept: None,
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
    /// What kept it from its work, or its work from being kept: nothing is wrong with the step.
    pub obstacle: Option<Obstacle>,
    /// Its output is not where the template says.
    pub aside: Option<Aside>,
    /// Of a failure: what it is about, where its class alone does not say it.
    pub cause: Option<Cause>,
    /// How the project looked to a check that passed.
    pub looked: Option<Digest>,
}

impl Ended {
    fn of(end: End, usage: Usage) -> Ended {
        Ended {
            end,
            usage,
            refusal: None,
            filtered: None,
            estimate: None,
            obstacle: None,
            aside: None,
            cause: None,
            looked: None,
        }
    }

    pub fn hindered(obstacle: Obstacle, usage: Usage) -> Ended {
        let end = failed(FailureClass::System, obstacle.to_string());
        Ended { obstacle: Some(obstacle), ..Ended::of(end, usage) }
    }

    fn refused(refused: Refused, usage: Usage) -> Ended {
        match refused {
            Refused::Hindered(obstacle) => Ended::hindered(obstacle, usage),
            Refused::Invalid(why) => Ended::of(failed(FailureClass::Invalid, why), usage),
        }
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
    pub async fn perform(self) -> Ended {
        let (executor, cx) = (self.executor.clone(), self.cx.clone());
        let call = (self.call.kind == Kind::Agent).then(|| self.call.clone());
        let ended = self.work().await;
        if let Some(call) = call {
            executor.ended(cx, call).await;
        }
        ended
    }

    async fn work(mut self) -> Ended {
        let setup = Some(Cause::Setup);
        match self.facts.input(&self.call.params, &self.blobs) {
            Ok(input) => self.call.input = input,
            Err(error) => return Ended { cause: setup, ..Ended::refused(error.into(), Usage::default()) },
        }
        if let Err(refused) = load(&mut self.call.files, &self.blobs) {
            return Ended { cause: setup, ..Ended::refused(refused, Usage::default()) };
        }
        // A step whose output would be refused has no effects.
        if let Some(Err(why)) = self.checks.output.as_ref().map(|target| self.outputs.check(&target.path)) {
            return Ended { cause: setup, ..Ended::failed(FailureClass::Invalid, why) };
        }
        if let Some(kept) = self.checks.kept.clone() {
            return self.recheck(&kept).await;
        }
        if let Some(result) = self.reconcile().await {
            return self.keep(result, Usage::default()).await;
        }
        if self.checks.filter.counts() || self.estimates() {
            // Ready when the answer comes. A thread that cannot be had costs nothing but time then.
            drop(tokio::task::spawn_blocking(tokens::warm));
        }
        match self.executor.execute(self.cx.clone(), self.call.clone()).await {
            StepOutcome::Succeeded { result, usage } => {
                let estimate = if usage.is_empty() { self.estimate(&result).await } else { None };
                Ended { estimate, ..self.keep(result, usage).await }
            }
            StepOutcome::Stopped { usage } => Ended::of(End::Stopped, usage),
            StepOutcome::Failed { class: FailureClass::System, message, usage, .. } => {
                let trouble = Trouble { reason: PauseReason::System, cause: message };
                Ended::hindered(Obstacle::Trouble(trouble), usage)
            }
            StepOutcome::Failed { class, cause, message, partial, usage, refusal } => {
                // A partial result that cannot be kept must not hide why the attempt failed.
                let partial = partial.and_then(|value| pack(&value, &self.blobs).ok());
                Ended { refusal, cause, ..Ended::of(End::Failed { class, message, partial }, usage) }
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

    /// A result that the machine cannot store for now is held until it can: the work is done and paid for.
    async fn keep(&self, result: Value, usage: Usage) -> Ended {
        let result = Arc::new(result);
        let mut tried = 0;
        loop {
            let ended = self.check(&result, usage.clone()).await;
            let Some(Obstacle::Trouble(trouble)) = &ended.obstacle else {
                if matches!(ended.end, End::Succeeded { .. }) {
                    self.trim_log(&result);
                }
                return ended;
            };
            if self.unkept.tries.is_some_and(|tries| tried >= tries) || self.cx.stop.get() != Stop::No {
                return ended;
            }
            (self.unkept.tell)(trouble);
            tokio::select! {
                () = self.cx.stop.reached(Stop::Graceful) => {}
                () = tokio::time::sleep(pause_before(tried)) => {}
            }
            tried += 1;
        }
    }

    async fn check(&self, result: &Arc<Value>, usage: Usage) -> Ended {
        let cause = self.blames_answer();
        if let Some(end) = self.check_schema(result) {
            return Ended { cause, ..Ended::of(end, usage) };
        }
        let written = match self.write_output(result).await {
            Ok(written) => written,
            Err(refused) => return Ended { cause, ..Ended::refused(refused, usage) },
        };
        if let Some(end) = self.not_passed(result) {
            let looked = if matches!(end, End::Skipped { .. }) { self.look().await } else { None };
            return Ended { cause: Some(Cause::Answer), looked, ..Ended::of(end, usage) };
        }
        if let Some(end) = self.unmet(result).await {
            return Ended { cause, ..Ended::of(end, usage) };
        }
        let (artifacts, aside) = match written {
            Some(written) => (vec![written.path], written.aside),
            None => (Vec::new(), None),
        };
        let looked = self.look().await;
        Ended { aside, looked, ..self.finish(result.clone(), artifacts, usage).await }
    }

    /// The files that the check holds for; before anybody can change them.
    async fn look(&self) -> Option<Digest> {
        let (executor, project) = (self.executor.clone(), self.cx.project.clone());
        let look = move || executor.look(&project);
        if self.checks.looks { tokio::task::spawn_blocking(look).await.ok()? } else { None }
    }

    /// What is there already is still what it was; whether it still keeps what is expected of it is asked.
    async fn recheck(&self, kept: &Output) -> Ended {
        let value = match value_of(kept, Face::Full, &self.blobs) {
            Ok(value) => value,
            Err(error) => return Ended::refused(error.into(), Usage::default()),
        };
        let Output::Leaf { result, full, artifacts, changed, .. } = kept else {
            return Ended::failed(FailureClass::Lost, "internal: a result without a value is checked again");
        };
        if let Some(end) = self.unheld(&value).await {
            return Ended { cause: Some(Cause::Answer), ..Ended::of(end, Usage::default()) };
        }
        let (result, full, artifacts) = (result.clone(), full.clone(), artifacts.clone());
        let end = End::Succeeded { result, full, artifacts, changed: *changed };
        Ended { looked: self.look().await, ..Ended::of(end, Usage::default()) }
    }

    /// An agent whose answer is not accepted has done its work, and so has its provider.
    fn blames_answer(&self) -> Option<Cause> {
        (self.call.kind == Kind::Agent).then_some(Cause::Answer)
    }

    /// Durable when this returns: the event that names the file comes after it.
    async fn write_output(&self, result: &Value) -> Result<Option<Written>, Refused> {
        let Some(target) = self.checks.output.clone() else { return Ok(None) };
        let content = Content::of(result, Some(&self.log()))?;
        let outputs = self.outputs.clone();
        let write = move || Ok(Some(outputs.write(&target, &content)?));
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(format!("internal: {error}").into()))
    }

    /// All that the program printed.
    fn log(&self) -> PathBuf {
        self.cx.scratch.join("stdout.log")
    }

    /// The output file has all of it now; a log is for people to look at.
    fn trim_log(&self, result: &Value) {
        let printed = self.checks.output.as_ref().and_then(|_| Content::of(result, Some(&self.log())).ok());
        if let Some(Content::File { path, bytes }) = printed {
            let left = LOG_BYTES.min(bytes);
            let _ = own::open(&path, OFlags::WRONLY).and_then(|log| log.set_len(left));
        }
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

    async fn finish(&self, result: Arc<Value>, artifacts: Vec<String>, usage: Usage) -> Ended {
        let (changed, cause) = (self.changes().files, self.blames_answer());
        if self.checks.filter.is_none() {
            return match pack(&result, &self.blobs) {
                Ok(result) => Ended::of(End::Succeeded { result, full: None, artifacts, changed }, usage),
                Err(error) => Ended { cause, ..Ended::refused(error.into(), usage) },
            };
        }
        let (filter, facts, blobs) = (self.checks.filter.clone(), self.facts.clone(), self.blobs.clone());
        let evaluator = self.evaluator.clone();
        let sieve = move || filter.sieve(&result, || facts.context(&blobs), &blobs, evaluator.as_ref());
        let sieved = off_loop("`filter`", move || match sieve() {
            Err(Refused::Invalid(why)) => Err(why),
            sieved => Ok(sieved),
        });
        match sieved.await {
            Ok(Ok(Sieved { result, full, filtered })) => {
                let end = End::Succeeded { result, full, artifacts, changed };
                Ended { filtered, ..Ended::of(end, usage) }
            }
            Ok(Err(refused)) => Ended { cause, ..Ended::refused(refused, usage) },
            Err(why) => Ended { cause, ..Ended::of(failed(FailureClass::Invalid, why), usage) },
        }
    }
}

/// A project file that an operation names: relative, never above the project, not through a link out of it.
pub(crate) fn inside(project: &Path, path: &str) -> Result<PathBuf, String> {
    output::plain(path)?;
    let fence = Fence::new(project);
    let inside = fence.locate(Path::new(path)).map_err(|refused| refused.to_string())?;
    Ok(fence.root().join(inside))
}
