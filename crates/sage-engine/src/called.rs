//! What a script says, made ready for the journal. Done on the script's own thread: reading an operation and
//! writing a large parameter to a blob are no work for the loop.

use std::sync::Arc;

use sage_core::diagnostic::did_you_mean;
use sage_core::digest::Digest;
use sage_core::event::{End, Payload};
use sage_core::policy::FailureClass;
use sage_core::port::script::{NewCall, ScriptFailure, ScriptSays};
use sage_core::read::{Library, read_call};
use sage_core::slug::slug_of;
use sage_core::template::{Kind, Operation};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::blobs::Blobs;
use crate::results::pack;

/// Among a call's parameters: the results that it is shown as those of earlier steps. No parameter has such a name.
pub const STEPS: &str = "$steps";
/// Among a call's parameters: its prompt is the code's own text and no template.
pub const VERBATIM: &str = "$verbatim";
/// A name is a part of a path.
const LONGEST_NAME: usize = 50;
const LONGEST_LINE: usize = 4_000;
/// What is not a parameter belongs to every record of the call.
const LARGEST_SHAPE: usize = 64 * 1024;

#[derive(Debug)]
pub enum Said {
    Rests { taken: u32, calls: Vec<ReadyCall>, again: Vec<u32> },
    Log(String),
    Ended(End),
}

#[derive(Debug)]
pub struct ReadyCall {
    /// The script's own number of it.
    pub number: u32,
    pub call: Result<Accepted, String>,
}

/// A call that can be journaled.
#[derive(Debug)]
pub struct Accepted {
    pub identity: Digest,
    pub ordinal: u32,
    pub shape: Arc<RawValue>,
    pub params: Payload,
    pub label: String,
    pub group: Option<String>,
    pub at: Option<Arc<str>>,
}

#[derive(Clone)]
pub struct Reader {
    pub blobs: Arc<Blobs>,
    pub library: Arc<Library>,
    /// What `workflow` may name.
    pub templates: Arc<[String]>,
}

impl Reader {
    pub fn read(&self, says: ScriptSays) -> Said {
        match says {
            ScriptSays::Rests { taken, calls, again } => {
                let ready = |call: NewCall| ReadyCall { number: call.number, call: self.accept(call) };
                Said::Rests { taken, calls: calls.into_iter().map(ready).collect(), again }
            }
            ScriptSays::Log(text) => Said::Log(cut(text)),
            ScriptSays::Ended(result) => Said::Ended(self.end(result)),
        }
    }

    fn end(&self, result: Result<Value, ScriptFailure>) -> End {
        let failed = |class, message| End::Failed { class, message, partial: None };
        match result {
            Ok(value) => match pack(&value, &self.blobs) {
                Ok(result) => End::succeeded(result),
                Err(error) => failed(FailureClass::Transient, format!("its result cannot be kept: {error}")),
            },
            Err(ScriptFailure::Threw { message }) => failed(FailureClass::Failed, message),
            Err(ScriptFailure::Broken { message }) => failed(FailureClass::Timeout, message),
            Err(ScriptFailure::Cancelled) => End::Stopped,
        }
    }

    /// What a script is told before it has made the call.
    pub fn check(&self, operation: &Value) -> Result<(), String> {
        let Value::Object(written) = operation else { return Err("a call must be an object".into()) };
        let mut written = written.clone();
        written.shift_remove("steps");
        written.insert("id".into(), "call".into());
        self.checked(&written).map(drop)
    }

    fn accept(&self, call: NewCall) -> Result<Accepted, String> {
        let Value::Object(mut written) = call.operation else {
            return Err("a call must be an object".into());
        };
        let label = slug(&call.label);
        let steps = written.shift_remove("steps");
        if steps.as_ref().is_some_and(|steps| !steps.is_object()) {
            return Err("`steps` must be an object: the results that it may see, by name".into());
        }
        written.insert("id".into(), label.clone().into());
        let operation = self.checked(&written)?;
        let mut params = operation.params.clone();
        params.extend(steps.map(|steps| (STEPS.to_string(), steps)));
        if operation.type_name != operation.kind.name() && gives_prompt(&written) {
            params.insert(VERBATIM.into(), true.into());
        }
        let params = pack(&Value::Object(params), &self.blobs).map_err(|e| e.to_string())?;
        Ok(Accepted {
            identity: call.identity,
            ordinal: call.ordinal,
            shape: shape(written, &operation)?,
            params,
            label,
            group: call.group.as_deref().map(slug),
            at: call.at.map(Arc::from),
        })
    }

    fn checked(&self, written: &Map<String, Value>) -> Result<Operation, String> {
        let text = Value::Object(written.clone()).to_string();
        let (operation, problems) = read_call(&text, &self.library);
        if let Some(problem) = problems.iter().find(|problem| problem.is_error()) {
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            // Of code there is no line to show, so the field is named.
            let field = match problem.field.as_str() {
                "" => String::new(),
                field => format!("`{field}`: "),
            };
            return Err(format!("{field}{}{hint}", problem.message));
        }
        let operation = operation.ok_or("a call must be an operation")?;
        for (name, given) in [("foreach", operation.foreach.is_some()), ("when", operation.when.is_some())] {
            if given {
                return Err(format!("`{name}` is for templates; code has loops and conditions"));
            }
        }
        match operation.kind {
            Kind::Script => Err("code in code: import it, or call it with `workflow`".into()),
            Kind::Synthesize => Err("`synthesize` reads steps of a template".into()),
            Kind::Workflow => self.known_template(&operation).map(|()| operation),
            _ => Ok(operation),
        }
    }

    fn known_template(&self, operation: &Operation) -> Result<(), String> {
        let name = operation.params.get("template").and_then(Value::as_str).unwrap_or_default();
        if self.templates.iter().any(|known| known == name) {
            return Ok(());
        }
        let hint = did_you_mean(name, self.templates.iter().map(String::as_str));
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        let known = match self.templates.join(", ") {
            known if known.is_empty() => "it has none".to_string(),
            known => format!("it has: {known}"),
        };
        Err(format!("no workflow `{name}` in this run ({known}){hint}"))
    }
}

/// Whether the code has written the prompt, and not the operation that it calls.
fn gives_prompt(written: &Map<String, Value>) -> bool {
    written.contains_key("prompt")
        || written.get("params").is_some_and(|params| params.get("prompt").is_some())
}

/// The operation without its parameters, but with what follows from them.
fn shape(mut written: Map<String, Value>, operation: &Operation) -> Result<Arc<RawValue>, String> {
    for name in ["params", "prompt"] {
        written.shift_remove(name);
    }
    // Which tool it is tells what a kept result is worth.
    if operation.kind == Kind::Tool {
        let names = ["server", "tool"].into_iter();
        let named = names.filter_map(|name| Some((name.to_string(), operation.params.get(name)?.clone())));
        written.insert("params".into(), Value::Object(named.collect()));
    }
    if let Some(agent) = &operation.agent {
        written.insert("agent".into(), agent.as_str().into());
    }
    if let Some(model) = &operation.model {
        written.insert("model".into(), model.as_str().into());
    }
    if !operation.targets.is_empty() {
        written.insert("target".into(), operation.targets.clone().into());
    }
    let raw = to_raw_value(&written).map_err(|error| error.to_string())?;
    if raw.get().len() > LARGEST_SHAPE {
        return Err(
            "its options have more than 64 KiB; large data belongs into the prompt or `params`".into()
        );
    }
    Ok(Arc::from(raw))
}

/// A line for people, not a document.
fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{} [cut off: {} bytes]", &text[..end], text.len()),
        None => text,
    }
}

/// What is left of a name that people or models gave.
fn slug(name: &str) -> String {
    let slug = slug_of(name, LONGEST_NAME);
    if slug.is_empty() { "call".into() } else { slug }
}
