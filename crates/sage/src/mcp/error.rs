//! How a call fails: `{code, message, hint}` with `isError`. The codes are fixed; clients may switch on them.
//!
//! | code | what happened |
//! |---|---|
//! | WORKFLOW_VALIDATION_ERROR | an argument, a template, an input, the configuration or code is wrong |
//! | CYCLE_DETECTED | the template's dependencies form a cycle |
//! | WORKFLOW_CONFLICT | somebody else has it, it is open already, or a person has to decide first |
//! | WORKFLOW_NOT_FOUND | no such run, step, session, handoff or skill |
//! | NO_CHECKPOINT_FOUND, INVALID_PHASE | nothing to resume, or not from there |
//! | WORKFLOW_NOT_RUNNING | nothing to cancel |
//! | TIMEOUT_EXCEEDED | the run's active time, code's time or this call's 45 s are over |
//! | EXTERNAL_API_FAILURE | the run failed because of an agent, a provider or a tool outside |
//! | STATE_CORRUPTED, CHECKPOINT_SAVE_FAILED, FILESYSTEM_ERROR | what is on disk cannot be read, or written |

use rmcp::model::{CallToolResult, ContentBlock};
use sage_engine::open::OpenError;
use serde_json::{Map, Value, json};

use crate::cli::failure::{Failure, Kind};
use crate::command_line::sage;
use crate::display::template_name;
use crate::display::text::clean;
use crate::trust::open::STATE;

/// What is told back of texts that somebody gave us.
const SHOWN_CHARS: usize = 120;
/// A message is for a model's context: a template with a thousand mistakes is told by its first ones.
const MESSAGE_CHARS: usize = 4_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Validation,
    Cycle,
    Timeout,
    External,
    NoCheckpoint,
    Corrupted,
    InvalidPhase,
    NotFound,
    NotRunning,
    CheckpointSave,
    Filesystem,
    Conflict,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Code::Validation => "WORKFLOW_VALIDATION_ERROR",
            Code::Cycle => "CYCLE_DETECTED",
            Code::Timeout => "TIMEOUT_EXCEEDED",
            Code::External => "EXTERNAL_API_FAILURE",
            Code::NoCheckpoint => "NO_CHECKPOINT_FOUND",
            Code::Corrupted => "STATE_CORRUPTED",
            Code::InvalidPhase => "INVALID_PHASE",
            Code::NotFound => "WORKFLOW_NOT_FOUND",
            Code::NotRunning => "WORKFLOW_NOT_RUNNING",
            Code::CheckpointSave => "CHECKPOINT_SAVE_FAILED",
            Code::Filesystem => "FILESYSTEM_ERROR",
            Code::Conflict => "WORKFLOW_CONFLICT",
        }
    }
}

#[derive(Debug)]
pub struct ToolError {
    pub code: Code,
    message: String,
    hints: Vec<String>,
    /// What is known all the same, such as how far a run came.
    more: Option<Box<Map<String, Value>>>,
}

impl ToolError {
    pub fn new(code: Code, message: impl Into<String>) -> ToolError {
        ToolError { code, message: message.into(), hints: Vec::new(), more: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ToolError {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn code(self, code: Code) -> ToolError {
        ToolError { code, ..self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The answer that there would have been without the error.
    #[must_use]
    pub fn with(mut self, value: Value) -> ToolError {
        if let Value::Object(fields) = value {
            self.more = Some(Box::new(fields));
        }
        self
    }

    pub fn into_result(self) -> CallToolResult {
        let message = cut(&self.message, MESSAGE_CHARS);
        let hint = self.hints.join("; ");
        let mut text = format!("{}: {message}", self.code.name());
        if !hint.is_empty() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        let mut body = json!({"code": self.code.name(), "message": message, "hint": hint});
        for (name, value) in self.more.map(|fields| *fields).into_iter().flatten() {
            if body.get(&name).is_none() {
                body[name] = value;
            }
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(body);
        result
    }
}

/// The beginning of a text, with a word about the rest.
pub fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_string(),
        Some((at, _)) => format!("{}... ({} more bytes)", &text[..at], text.len() - at),
    }
}

/// A call of a tool as a model would write it: what to do next.
pub fn call_text(tool: &str, feature: &str) -> String {
    format!("{tool} {}", json!({"feature": feature}))
}

/// What somebody gave, short enough to be told back.
pub fn given(value: &Value) -> String {
    let text = match value {
        Value::Object(_) => "an object".to_string(),
        Value::Array(_) => "a list".to_string(),
        Value::String(text) => Value::String(cut(text, SHOWN_CHARS)).to_string(),
        other => other.to_string(),
    };
    clean(&text)
}

impl From<OpenError> for ToolError {
    fn from(error: OpenError) -> ToolError {
        let message = error.to_string();
        let status = |feature: &str| call_text("sage_workflow_status", feature);
        let of = |code| ToolError::new(code, message.clone());
        if let Some(pid) = error.suspended() {
            return of(Code::Conflict).hint(format!("ask the user to type: kill -CONT {pid}"));
        }
        match &error {
            OpenError::Owned { feature, .. } => of(Code::Conflict).hint(status(feature)),
            OpenError::Open { feature, .. } => of(Code::Conflict)
                .hint(format!("{} to go on with it", call_text("sage_workflow_resume", feature)))
                .hint(format!("or {} to give it up", call_text("sage_workflow_cancel", feature))),
            OpenError::Taken(feature) => of(Code::Conflict).hint(status(feature)),
            OpenError::Unknown(_) => of(Code::NotFound).hint("sage_workflow_list"),
            OpenError::Foreign(feature) => {
                let trust = sage("trust").arg(format!("{STATE}{feature}"));
                of(Code::Conflict).hint(format!("ask the user to type: {trust}"))
            }
            OpenError::NotResumable { feature, template } => {
                let call = json!({"feature": feature, "template": template_name(template)});
                of(Code::NoCheckpoint).hint(format!("sage_workflow_execute {call}"))
            }
            OpenError::NoStep { feature, .. } => of(Code::NotFound).hint(status(feature)),
            OpenError::Answered { feature, .. } => of(Code::Conflict).hint(status(feature)),
            OpenError::NoQuestion { .. } | OpenError::NoChoice { .. } => {
                of(Code::Validation).hint("sage_inbox {\"action\":\"list\"}")
            }
            OpenError::NoBudget { .. } => of(Code::Validation),
            OpenError::NotListening { feature, .. } => of(Code::NotRunning).hint(status(feature)),
            OpenError::NotOpen { feature, .. } => of(Code::NotRunning).hint(status(feature)),
            OpenError::Unanswered(_) | OpenError::NotAlone(_) | OpenError::Children { .. } => {
                of(Code::Conflict).hint("sage_inbox {\"action\":\"list\"}")
            }
            OpenError::Deaf(_) => of(Code::Timeout).hint("call again"),
            OpenError::Journal(_) | OpenError::Fold(_) | OpenError::Event(_) | OpenError::Checkpoint(_) => {
                of(Code::Corrupted).hint(format!("type: {}", sage("verify")))
            }
            OpenError::Obscured { feature, .. } => {
                let resume = call_text("sage_workflow_resume", feature);
                let new = sage("run").arg(feature).arg("--new");
                of(Code::Corrupted)
                    .hint(format!("type: {}", sage("verify").arg(feature)))
                    .hint(format!("{resume} to repair and continue it"))
                    .hint(format!("or type: {new} to give it up"))
            }
            OpenError::Damaged { feature, .. }
            | OpenError::NeedsRepair { feature, .. }
            | OpenError::Lost { feature, .. }
            | OpenError::Garbled { feature, .. } => {
                of(Code::Corrupted).hint(format!("type: {}", sage("repair").arg(feature).arg("--dry-run")))
            }
            OpenError::NoKey | OpenError::Unreadable { .. } => {
                of(Code::Filesystem).hint(format!("type: {}", sage("doctor")))
            }
            OpenError::Result { .. }
            | OpenError::Project(_)
            | OpenError::Lock(_)
            | OpenError::Fork(_)
            | OpenError::Io { .. } => of(Code::Filesystem).hint(format!("type: {}", sage("doctor"))),
        }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> ToolError {
        let code = match failure.kind {
            Kind::Usage => Code::Validation,
            Kind::Conflict | Kind::Paused | Kind::Interrupted => Code::Conflict,
            Kind::Failed => Code::Filesystem,
        };
        let error = ToolError::new(code, failure.message);
        failure.hints.into_iter().fold(error, ToolError::hint)
    }
}

impl From<sage_core::slug::NameError> for ToolError {
    fn from(error: sage_core::slug::NameError) -> ToolError {
        ToolError::from(Failure::from(error))
    }
}
