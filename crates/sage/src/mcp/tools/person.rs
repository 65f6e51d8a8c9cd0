//! Asking the person in front of the client (elicitation): a model cannot give an answer in their stead.
//!
//! ```text
//! before 2026-07-28: elicitation/create in the middle of the call, whose answer comes back
//! since then:        the call answers with what it needs; the client asks, and calls again with the answer
//! ```
//! What must stay true: an answer counts for the very question that was shown, and only if the person accepted. Over
//! HTTP none counts: a step can read the token of `sage serve`.

use std::time::Duration;

use rmcp::model::{InputRequest, InputRequests, InputRequiredResult, ServerRequest};
use sage_core::digest::Digest;
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::questions::Question;
use crate::display::text::clean;

/// The one thing that is asked for.
const KEY: &str = "answer";
/// A person needs longer than a machine; a client that waits longer gives up.
const PATIENCE: Duration = Duration::from_secs(40);

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    Said {
        choice: String,
        message: Option<String>,
    },
    /// The client has to ask, and to call again.
    Needs(Box<InputRequiredResult>),
}

/// Asks what the person decides; `proposed` is what the model suggests.
pub async fn ask(call: &Call, question: &Question, proposed: Option<&str>) -> Result<Asked, ToolError> {
    let request = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": text(question, proposed), "requestedSchema": form(question),
    }});
    if !call.person {
        let why = "over HTTP any program that knows the token could answer";
        return Err(unable(question, why));
    }
    if !call.can_elicit() {
        return Err(unable(question, "this client cannot ask its user (it does not support elicitation)"));
    }
    if call.is_stateless() {
        return again(call, question, request);
    }
    let broken =
        |why: String| ToolError::new(Code::External, format!("the client could not ask the user: {why}"));
    let request: ServerRequest =
        serde_json::from_value(request).map_err(|error| broken(error.to_string()))?;
    let answer = tokio::time::timeout(PATIENCE, call.peer().send_request(request)).await;
    let answer = answer.map_err(|_| late(question))?.map_err(|error| broken(error.to_string()))?;
    read(question, &serde_json::to_value(answer).unwrap_or_default())
}

/// Reads the answer that the client brought, or requests one.
fn again(call: &Call, question: &Question, request: Value) -> Result<Asked, ToolError> {
    let state = identity(question);
    let given = call.responses.as_ref().and_then(|responses| responses.get(KEY));
    if let Some(answer) = given.filter(|_| call.state.as_ref() == Some(&state)) {
        return read(question, answer);
    }
    let request: InputRequest = serde_json::from_value(request)
        .map_err(|error| ToolError::new(Code::External, format!("the question cannot be asked: {error}")))?;
    let requests = InputRequests::from_iter([(KEY.to_string(), request)]);
    Ok(Asked::Needs(Box::new(InputRequiredResult::new(Some(requests), Some(state)))))
}

/// Another question, or the same one with other choices, is another one.
fn identity(question: &Question) -> String {
    Digest::of_json(&json!([
        question.feature,
        question.step,
        question.ask,
        question.kind,
        question.message,
        question.choices
    ]))
    .to_string()
}

fn text(question: &Question, proposed: Option<&str>) -> String {
    let proposed =
        proposed.map(|choice| format!("\nThe agent proposes: {}", clean(choice))).unwrap_or_default();
    let Question { feature, step, message, .. } = question;
    format!("Sage asks about {}, step {}:\n{}{}", clean(feature), clean(step), clean(message), proposed)
}

fn choices(question: &Question) -> Vec<String> {
    let mut choices = question.choices.clone();
    if choices.is_empty() {
        choices.push("approve".into());
    }
    if !choices.iter().any(|choice| choice == "reject") {
        choices.push("reject".into());
    }
    choices
}

fn form(question: &Question) -> Value {
    json!({
        "type": "object",
        "properties": {
            "choice": {"type": "string", "title": "Decision", "enum": choices(question)},
            "message": {"type": "string", "title": "Comment to record with the decision"},
        },
        "required": ["choice"],
    })
}

fn read(question: &Question, answer: &Value) -> Result<Asked, ToolError> {
    if answer["action"] != "accept" {
        return Err(ToolError::new(Code::Conflict, "the user did not answer; the question stays open"));
    }
    let choice = answer["content"]["choice"].as_str().unwrap_or_default();
    if !choices(question).iter().any(|it| it == choice) {
        return Err(
            ToolError::new(Code::Validation, "the user's answer is none of the choices").hint("call again")
        );
    }
    let message = answer["content"]["message"].as_str().map(str::to_string).filter(|text| !text.is_empty());
    Ok(Asked::Said { choice: choice.into(), message })
}

/// Only a person answers, and here none can be asked.
fn unable(question: &Question, why: &str) -> ToolError {
    let error = ToolError::new(Code::Conflict, format!("only a person can answer, and {why}"));
    question
        .commands
        .iter()
        .fold(error, |error, command| error.hint(format!("ask the user to type: {command}")))
}

fn late(question: &Question) -> ToolError {
    let error = ToolError::new(Code::Timeout, "the user has not answered yet; the question stays open");
    let commands = question.commands.iter().map(|command| format!("or the user types: {command}"));
    commands.fold(error.hint("call again to ask again"), ToolError::hint)
}
