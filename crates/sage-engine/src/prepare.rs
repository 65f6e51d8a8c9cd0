//! From a ready step to a call: conditions, fan-outs, rendered parameters, key parts.
//!
//! Everything here is a pure function of durable data, so it may run before anything is committed, off the
//! loop, and again after a crash. A step without expressions is prepared on the spot.

mod facts;
mod files;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sage_core::digest::Digest;
use sage_core::event::{Expansion, Payload};
use sage_core::expr::{self, Language, Order};
use sage_core::key::KeyParts;
use sage_core::plan::Plan;
use sage_core::port::script::Dialect;
use sage_core::port::{Evaluator, NoValue, PromptFile};
use sage_core::run::{Run, StepId};
use sage_core::template::{Kind, Operation, Source};
use serde_json::{Map, Value};

use crate::blobs::Blobs;
use crate::called::{STEPS, VERBATIM};
use crate::evaluate::evaluate;
use crate::output::Target;
use crate::pending::Pending;
use crate::results::{pack, unpack};
use crate::run_loop::given;
use crate::trouble::{Obstacle, Refused};
pub use facts::Facts;
pub use files::load;
use texts::verbatim_texts;

/// Items of one fan-out. Each is a step of the run, and all of them are one record.
pub const MOST_ITEMS: u32 = 100_000;
/// Workflows inside of workflows. Templates cannot call themselves; code can.
const DEEPEST: u32 = 32;

/// What a ready step turns out to be.
#[derive(Debug)]
pub enum Prepared {
    Skip,
    Expand(Expansion),
    Start(Box<Start>),
    /// An expression has no value: repeating does not help.
    Invalid(String),
    /// What it needs cannot be read or kept for now.
    Hindered(Obstacle),
}

#[derive(Debug)]
pub struct Start {
    pub params: Map<String, Value>,
    pub parts: KeyParts,
    pub output: Option<Target>,
    pub session: Option<String>,
    /// Files of its prompt.
    pub files: Vec<PromptFile>,
    pub wait: Option<Pending>,
}

/// Everything that preparing needs, taken from the run at one moment. Outputs are shared, not copied.
#[derive(Debug)]
pub struct Request {
    plan: Arc<Plan>,
    plan_step: u32,
    fan: bool,
    literal: bool,
    base: KeyParts,
    facts: Facts,
    /// What a `workflow` step may be expanded to.
    templates: Vec<(String, Arc<Plan>)>,
    /// Of a step that a script called: its operation and parameters.
    call: Option<(Arc<Operation>, Payload)>,
    /// Workflows around it.
    depth: u32,
    /// Of a script: whose words it uses; `None` if there is no code.
    dialect: Option<Dialect>,
}

impl Request {
    pub fn new(run: &Run, id: StepId) -> Request {
        let step = run.step(id);
        let plan = run.scope(step.scope).plan.clone();
        let operation = run.operation(id);
        let call = step.call.as_ref().map(|call| (call.operation.clone(), call.params.clone()));
        let literal = match &call {
            Some((operation, params)) => is_plain(operation) && !params.is_blob() && !names_files(params),
            None => is_literal(operation, run.is_fan(id)),
        };
        let wanted = if literal || call.is_some() { Wanted::default() } else { mentioned(operation) };
        let facts = Facts::of(run, id, &wanted);
        let templates = if operation.kind == Kind::Workflow { run.named_plans() } else { Vec::new() };
        Request {
            plan_step: step.plan_step,
            fan: run.is_fan(id),
            literal,
            base: run.key_base(id),
            facts,
            templates,
            depth: run.depth(id),
            dialect: run.program(id).filter(|_| operation.kind == Kind::Script).map(|p| p.dialect),
            call,
            plan,
        }
    }

    fn operation(&self) -> &Operation {
        match &self.call {
            Some((operation, _)) => operation,
            None => self.plan.operation(self.plan_step),
        }
    }

    /// Nothing to evaluate: can be prepared without leaving the loop.
    pub fn is_literal(&self) -> bool {
        self.literal
    }

    /// `project` is where files of prompts are.
    pub fn prepare(self, blobs: &Blobs, evaluator: &dyn Evaluator, project: &Path) -> Prepared {
        let prepared = self.try_prepare(blobs, evaluator).and_then(|prepared| match prepared {
            Prepared::Start(mut start) => {
                start.files = files::attach(&start.params, project, blobs)?;
                files::add_to_key(&start.files, &mut start.parts);
                Ok(Prepared::Start(start))
            }
            other => Ok(other),
        });
        prepared.unwrap_or_else(|refused| match refused {
            Refused::Invalid(why) => Prepared::Invalid(why),
            Refused::Hindered(obstacle) => Prepared::Hindered(obstacle),
        })
    }

    fn try_prepare(self, blobs: &Blobs, evaluator: &dyn Evaluator) -> Result<Prepared, Refused> {
        let operation = self.operation();
        if let Some((_, params)) = &self.call {
            return self.called(unpack(params, blobs)?, blobs, evaluator);
        }
        if self.literal {
            let (output, session) = verbatim_texts(operation);
            return self.start(operation.params.clone(), output, session);
        }
        let context = self.facts.context(blobs)?;
        // A fan-out decides once for all of its items.
        let asks = self.fan || self.facts.item.is_none();
        if let Some(when) = operation.when.as_ref().filter(|_| asks) {
            let value = evaluate(&Order::value(&when.text, &context), evaluator);
            let value = value.map_err(|e| e.within("`when`"))?;
            if !expr::is_true(&value) {
                return Ok(Prepared::Skip);
            }
        }
        if self.fan {
            return self.fan_out(&context, blobs, evaluator);
        }
        let params = evaluate(&Order::params(operation.kind, &operation.params, &context), evaluator)?;
        let Value::Object(params) = params else { return Err("the parameters are lost".into()) };
        if operation.kind == Kind::Workflow {
            return self.sub_workflow(&params, blobs);
        }
        if operation.kind == Kind::Script {
            return self.code(params, blobs);
        }
        let rendered = |name: &str, source: &Option<Source>| {
            let text = source.as_ref().map(|source| render(&source.text, &context, evaluator));
            text.transpose().map_err(|e| e.within(&format!("`{name}`")))
        };
        let before = self.as_before(&operation.output, &context, evaluator);
        let output = rendered("output", &operation.output)?
            .map(|path| Target { of_feature: before.is_some_and(|before| before != path), path });
        let session = match self.session_before(&operation.session, &context, evaluator) {
            None => rendered("session", &operation.session)?,
            known => known,
        };
        self.start(params, output, session)
    }

    /// What a script calls is as it is; only a named operation's own text is still to be filled in.
    fn called(&self, params: Value, blobs: &Blobs, evaluator: &dyn Evaluator) -> Result<Prepared, Refused> {
        let operation = self.operation();
        let Value::Object(mut params) = params else { return Err("its parameters are lost".into()) };
        params.shift_remove(STEPS);
        let verbatim = params.shift_remove(VERBATIM).is_some();
        if operation.kind == Kind::Workflow {
            return self.sub_workflow(&params, blobs);
        }
        if !is_plain(operation)
            && !verbatim
            && let Some(Value::String(prompt)) = params.get("prompt")
        {
            let mut context = self.facts.context(blobs)?;
            context["params"] = Value::Object(params.clone());
            let prompt = render(prompt, &context, evaluator).map_err(|e| e.within("`prompt`"))?;
            params.insert("prompt".into(), prompt.into());
        }
        let (output, session) = verbatim_texts(operation);
        self.start(params, output, session)
    }

    fn code(&self, mut params: Map<String, Value>, blobs: &Blobs) -> Result<Prepared, Refused> {
        let Some(dialect) = self.dialect else {
            let file = params.get("file").and_then(Value::as_str).unwrap_or_default();
            return Err(format!("its code `{file}` is not part of this run").into());
        };
        let input = match params.shift_remove("input") {
            Some(input) => input,
            None => given(self.facts.inputs(blobs)?, dialect),
        };
        let input = pack(&input, blobs)?;
        Ok(Prepared::Expand(Expansion::Code { input, dialect }))
    }

    fn fan_out(
        &self,
        context: &Value,
        blobs: &Blobs,
        evaluator: &dyn Evaluator,
    ) -> Result<Prepared, Refused> {
        let Some(foreach) = &self.operation().foreach else { return Err("no `foreach`".into()) };
        let value = evaluate(&Order::value(&foreach.text, context), evaluator);
        let value = value.map_err(|e| e.within("`foreach`"))?;
        let Value::Array(items) = &value else {
            return Err(format!("`foreach` must yield a list, not {}", type_name(&value)).into());
        };
        let count =
            u32::try_from(items.len()).ok().filter(|count| *count <= MOST_ITEMS).ok_or_else(|| {
                format!("`foreach` yields {} items; a fan-out has at most {MOST_ITEMS}", items.len())
            })?;
        let digests: Vec<Digest> = items.iter().map(Digest::of_json).collect();
        let mut seen: BTreeMap<Digest, u32> = BTreeMap::new();
        let ordinals = digests
            .iter()
            .map(|d| {
                let n = seen.entry(*d).or_default();
                *n += 1;
                *n - 1
            })
            .collect();
        let items = pack(&value, blobs)?;
        Ok(Prepared::Expand(Expansion::Items { count, items, digests, ordinals }))
    }

    /// The template's own defaults, under what is given.
    fn sub_workflow(&self, params: &Map<String, Value>, blobs: &Blobs) -> Result<Prepared, Refused> {
        let Some(template) = params.get("template").and_then(Value::as_str) else {
            return Err("no `template`".into());
        };
        if self.depth >= DEEPEST {
            let why =
                format!("workflow `{template}` is called inside of {DEEPEST} others: does it call itself?");
            return Err(why.into());
        }
        let Some((_, plan)) = self.templates.iter().find(|(name, _)| name == template) else {
            return Err(format!("template `{template}` is not part of this run").into());
        };
        let given = match params.get("inputs") {
            Some(Value::Object(given)) => given.clone(),
            _ => Map::new(),
        };
        let inputs = plan.template.inputs.complete(given).map_err(|errors| {
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            format!("workflow `{template}`: {}", told.join("; "))
        })?;
        let inputs = pack(&Value::Object(inputs), blobs)?;
        Ok(Prepared::Expand(Expansion::Scope { template: template.to_string(), inputs }))
    }

    fn start(
        &self,
        params: Map<String, Value>,
        output: Option<Target>,
        session: Option<String>,
    ) -> Result<Prepared, Refused> {
        if session.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err("`session` is empty".into());
        }
        let mut parts = self.base.clone();
        parts.rendered(&params);
        parts.text("output", output.as_ref().map(|target| target.path.as_str()));
        let wait = Pending::of(self.operation().kind, &params)?;
        let files = Vec::new();
        Ok(Prepared::Start(Box::new(Start { params, parts, output, session, files, wait })))
    }
}

fn is_literal(operation: &Operation, fan: bool) -> bool {
    let mut texts = [&operation.output, &operation.session].into_iter().flatten();
    let rendered = texts.any(|source| expr::is_dynamic(&source.text));
    let holds = matches!(operation.kind, Kind::Workflow | Kind::Script);
    let reads = operation.params.contains_key(files::FILES);
    !operation.dynamic && !rendered && operation.when.is_none() && !fan && !holds && !reads
}

/// A call whose prompt has files: they are read off the loop.
fn names_files(params: &Payload) -> bool {
    params.json.as_ref().is_some_and(|json| json.get().contains("\"files\""))
}

/// A kind as it is, in which code has filled in everything.
fn is_plain(operation: &Operation) -> bool {
    operation.type_name == operation.kind.name() && operation.kind != Kind::Workflow
}

fn render(text: &str, context: &Value, evaluator: &dyn Evaluator) -> Result<String, NoValue> {
    match evaluate(&Order::text(text, context), evaluator)? {
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// A condition over the context: `while` of a repeat.
pub fn condition(
    program: &str,
    facts: &Facts,
    blobs: &Blobs,
    evaluator: &dyn Evaluator,
) -> Result<bool, Refused> {
    let context = facts.context(blobs)?;
    Ok(evaluate(&Order::value(program, &context), evaluator).map(|value| expr::is_true(&value))?)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The steps that expressions can see.
#[derive(Debug, Default)]
pub struct Wanted {
    pub paths: BTreeSet<String>,
    /// All that the step depends on directly, too.
    pub direct: bool,
}

/// The steps that an operation's expressions name. A use of `steps` that names none may mean any.
fn mentioned(operation: &Operation) -> Wanted {
    let mut wanted = Wanted::default();
    let jq = [&operation.when, &operation.foreach];
    let jinja = [&operation.output, &operation.session];
    let mut params = Vec::new();
    strings(&Value::Object(operation.params.clone()), &mut params);
    let texts = jq.into_iter().flatten().map(|s| (s.text.as_str(), Language::Jq));
    let texts = texts.chain(jinja.into_iter().flatten().map(|s| (s.text.as_str(), Language::Jinja)));
    for (text, language) in texts.chain(params.iter().map(|s| (s.as_str(), Language::Jinja))) {
        let found = expr::mentions(text, language);
        wanted.direct |= text.matches("steps").count() > found.len();
        wanted.paths.extend(found.into_iter().map(|mention| mention.path.to_string()));
    }
    wanted
}

fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(map) => map.values().for_each(|item| strings(item, out)),
        _ => {}
    }
}
