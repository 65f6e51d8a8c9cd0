//! Tools that answer with what they need. The client calls again with it, and with the state that it was given.
//!
//! The state is a handle to what is kept here, so one that was changed on the way is one that nobody knows.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequest, InputRequests, InputRequiredResult, PromptMessage,
    Role,
};
use serde_json::{Value, json};

use super::{Context, Shared};

pub const PROMPT: &str = "test_input_required_result_prompt";

type Responses = BTreeMap<String, Value>;

/// None for a tool that needs nothing.
pub fn call(
    shared: &Shared,
    call: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let kind = call.name.strip_prefix("test_input_required_result_");
    let kind = kind.or((call.name == "test_streaming_elicitation").then_some("elicitation"))?;
    let none = Responses::new();
    let responses = call.input_responses.as_ref().unwrap_or(&none);
    Some(match kind {
        "elicitation" => once(&[name()], responses),
        "sampling" => once(&[sample("capital_question", "What is the capital of France?", 100)], responses),
        "list_roots" => once(&[roots()], responses),
        "capabilities" => Ok(for_client(context)),
        "multiple_inputs" => {
            let wanted = [name(), sample("greeting", "Generate a greeting", 50), roots()];
            with_state(shared, call, responses, &[&wanted])
        }
        "multi_round" => {
            let first = [elicit("step1", "Step 1: What is your name?", "name", "string")];
            let second = [elicit("step2", "Step 2: What is your favorite color?", "color", "string")];
            with_state(shared, call, responses, &[&first, &second])
        }
        "request_state" | "tampered_state" => {
            let wanted = [elicit("confirm", "Please confirm", "ok", "boolean")];
            with_state(shared, call, responses, &[&wanted])
        }
        _ => return None,
    })
}

/// What is needed, under its key.
pub type Wanted = (&'static str, Value);

fn elicit(key: &'static str, message: &str, field: &str, kind: &str) -> Wanted {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    (key, json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}))
}

pub fn name() -> Wanted {
    elicit("user_name", "What is your name?", "name", "string")
}

fn sample(key: &'static str, text: &str, most: u32) -> Wanted {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    (key, json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": most}}))
}

fn roots() -> Wanted {
    ("client_roots", json!({"method": "roots/list", "params": {}}))
}

/// An answer that has the form of one.
pub fn is_answer((key, request): &Wanted, responses: &Responses) -> bool {
    let Some(answer) = responses.get(*key) else { return false };
    match request["method"].as_str() {
        Some("elicitation/create") => {
            let required = &request["params"]["requestedSchema"]["required"];
            let mut fields = required.as_array().into_iter().flatten().filter_map(Value::as_str);
            answer["action"] == "accept" && fields.all(|field| answer["content"].get(field).is_some())
        }
        Some("roots/list") => answer["roots"].is_array(),
        _ => answer.get("content").is_some(),
    }
}

pub fn ask(wanted: &[Wanted], state: Option<String>) -> InputRequiredResult {
    let request = |(key, request): &Wanted| {
        let request: Result<InputRequest, _> = serde_json::from_value(request.clone());
        Some((key.to_string(), request.ok()?))
    };
    let requests: InputRequests = wanted.iter().filter_map(request).collect();
    InputRequiredResult::new(Some(requests), state)
}

fn complete(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Asks until it has everything; what it did not ask for is not looked at.
fn once(wanted: &[Wanted], responses: &Responses) -> Result<CallToolResponse, ErrorData> {
    if !wanted.iter().all(|it| is_answer(it, responses)) {
        return Ok(ask(wanted, None).into());
    }
    let given: Vec<String> = wanted.iter().map(|(key, _)| told(&responses[*key])).collect();
    Ok(complete(format!("Hello, {}!", given.join(", "))))
}

/// The one thing that an answer says.
pub fn told(answer: &Value) -> String {
    let name = answer["content"]["name"].as_str().or(answer["content"]["text"].as_str());
    name.map_or_else(|| answer.to_string(), str::to_string)
}

fn with_state(
    shared: &Shared,
    call: &CallToolRequestParams,
    responses: &Responses,
    rounds: &[&[Wanted]],
) -> Result<CallToolResponse, ErrorData> {
    let mut states = shared.states.lock().unwrap_or_else(PoisonError::into_inner);
    let round = match &call.request_state {
        None => None,
        Some(state) => match states.get(state) {
            Some(round) => Some(usize::from(*round)),
            None => {
                return Err(ErrorData::invalid_params(
                    "this requestState was not given by this server",
                    None,
                ));
            }
        },
    };
    let next = match round.and_then(|round| Some((round, rounds.get(round)?))) {
        Some((round, wanted)) if wanted.iter().all(|it| is_answer(it, responses)) => round + 1,
        Some((round, _)) => round,
        None => 0,
    };
    match rounds.get(next) {
        Some(wanted) => {
            let state = format!("state-{}", ulid::Ulid::generate());
            states.insert(state.clone(), next as u8);
            Ok(ask(wanted, Some(state)).into())
        }
        None => Ok(complete("state-ok".into())),
    }
}

/// Only what the client says it can do is asked of it.
fn for_client(context: &Context) -> CallToolResponse {
    let can = serde_json::to_value(context.client_capabilities()).unwrap_or_default();
    let all = [
        ("elicitation", name()),
        ("sampling", sample("capital_question", "What is the capital of France?", 100)),
        ("roots", roots()),
    ];
    let wanted: Vec<Wanted> =
        all.into_iter().filter(|(needs, _)| can.get(needs).is_some()).map(|(_, wanted)| wanted).collect();
    if wanted.is_empty() { complete("the client can give nothing".into()) } else { ask(&wanted, None).into() }
}

pub fn prompt(asked: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let wanted = elicit("user_context", "What context should the prompt use?", "context", "string");
    let answered = asked.input_responses.as_ref().filter(|responses| is_answer(&wanted, responses));
    Ok(match answered {
        None => ask(&[wanted], None).into(),
        Some(responses) => {
            let text = format!("With the context {}", responses["user_context"]["content"]["context"]);
            GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into()
        }
    })
}
