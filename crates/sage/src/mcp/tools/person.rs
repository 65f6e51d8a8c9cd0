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
use sage_core::inquiry::AgentQuestion;
use serde_json::{Map, Value, json};

use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::answer::Said;
use crate::cli::inquire;
use crate::cli::questions::Question;
use crate::display::text::clean;

/// The one thing that is asked for.
const KEY: &str = "answer";
/// A person needs longer than a machine; a client that waits longer gives up.
const PATIENCE: Duration = Duration::from_secs(40);

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    Said(Said),
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
        question.choices,
        question.questions,
        question.plan
    ]))
    .to_string()
}

fn text(question: &Question, proposed: Option<&str>) -> String {
    let proposed =
        proposed.map(|choice| format!("\nThe agent proposes: {}", clean(choice))).unwrap_or_default();
    let Question { feature, step, .. } = question;
    let asked = question.inquiry().map(|inquiry| inquire::lines(&inquiry)).unwrap_or_default();
    let asked: String = asked.iter().map(|line| format!("\n{line}")).collect();
    let (feature, step, message) = (clean(feature), clean(step), clean(&question.headline()));
    format!("Sage asks about {feature}, step {step}:\n{message}{asked}{proposed}")
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

/// A field for each question, or for each of its options where several may be chosen, and one for own words.
fn question_fields(questions: &[AgentQuestion]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (index, question) in questions.iter().enumerate() {
        let (number, title) = (index + 1, clean(question.name()));
        let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        if question.multi_select {
            for (at, option) in question.options.iter().enumerate() {
                let title = format!("{title}: {}", clean(&option.label));
                fields.insert(format!("q{number}_{}", at + 1), json!({"type": "boolean", "title": title}));
            }
        } else if !labels.is_empty() {
            fields.insert(format!("q{number}"), json!({"type": "string", "title": title, "enum": labels}));
        }
        if question.free_text {
            let title = format!("{title}, in your own words");
            fields.insert(format!("q{number}_own"), json!({"type": "string", "title": title}));
        }
    }
    fields
}

/// The same the other way round: choices that name the number of their question.
fn question_choices(questions: &[AgentQuestion], content: &Value) -> Vec<String> {
    let mut choices = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let number = index + 1;
        let ticked = (1..=question.options.len()).filter(|at| content[format!("q{number}_{at}")] == true);
        choices.extend(ticked.map(|at| format!("{number}={at}")));
        for field in [format!("q{number}"), format!("q{number}_own")] {
            let text = content[field].as_str().map(str::trim).filter(|text| !text.is_empty());
            choices.extend(text.map(|text| format!("{number}={text}")));
        }
    }
    choices
}

fn form(question: &Question) -> Value {
    if !question.questions.is_empty() {
        return json!({"type": "object", "properties": question_fields(&question.questions)});
    }
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
    if !question.questions.is_empty() {
        let choices = question_choices(&question.questions, &answer["content"]);
        return Ok(Asked::Said(Said { choices, ..Said::default() }));
    }
    let choice = answer["content"]["choice"].as_str().unwrap_or_default();
    if !choices(question).iter().any(|it| it == choice) {
        return Err(
            ToolError::new(Code::Validation, "the user's answer is none of the choices").hint("call again")
        );
    }
    let message = answer["content"]["message"].as_str().map(str::to_string).filter(|text| !text.is_empty());
    let refuses = choice == "reject";
    Ok(Asked::Said(Said { choices: vec![choice.into()], message, refuses, ..Said::default() }))
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
