//! Tools that outlast their call, for clients that say that they can wait (the extension `tasks`).

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, ErrorData, InputRequest,
};
use rmcp::task_manager::{
    TaskContext as Work, TaskExit as Exit, TaskFuture as Working, TaskOptions as Options,
};
use serde_json::json;

use super::{Context, Shared, rounds};

/// How often a client may look.
const LOOK_MS: u64 = 100;
/// What fails does so after this.
const SOON: Duration = Duration::from_millis(200);

/// None for a tool of another kind.
pub async fn call(
    shared: &Shared,
    call: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let can_wait = context.client_capabilities().is_some_and(|can| can.supports_tasks());
    let argument = |name: &str| call.arguments.as_ref().and_then(|arguments| arguments.get(name)).cloned();
    let seconds = argument("seconds").and_then(|seconds| seconds.as_f64()).unwrap_or(0.0);
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let start: Box<dyn FnOnce(Work) -> Working + Send> = match call.name.as_ref() {
        "slow_compute" if !can_wait => {
            tokio::time::sleep(time).await;
            return Some(Ok(text("computed").into()));
        }
        "slow_compute" => Box::new(move |work| Box::pin(compute(work, time))),
        "failing_job" => Box::new(|_| Box::pin(fail())),
        "protocol_error_job" => Box::new(|_| Box::pin(break_down())),
        "confirm_delete" => Box::new(|work| Box::pin(confirm(work))),
        "multi_input" => Box::new(|work| Box::pin(both(work))),
        "test_tool_with_task" => {
            let wanted = rounds::name();
            match call.input_responses.as_ref().filter(|responses| rounds::is_answer(&wanted, responses)) {
                None => return Some(Ok(rounds::ask(&[wanted], None).into())),
                Some(responses) => {
                    let name = rounds::told(&responses["user_name"]);
                    Box::new(move |_| Box::pin(async move { Ok(text(&format!("Hello, {name}!"))) }))
                }
            }
        }
        _ => return None,
    };
    if !can_wait {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(needed)));
    }
    let started = shared.lasting.spawn(Options::new().with_poll_interval_ms(LOOK_MS), start);
    Some(Ok(CreateTaskResult::new(started).into()))
}

fn text(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn compute(work: Work, time: Duration) -> Result<CallToolResult, Exit> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(text("computed")),
        () = work.cancelled() => Err(Exit::Cancelled),
    }
}

async fn fail() -> Result<CallToolResult, Exit> {
    tokio::time::sleep(SOON).await;
    Ok(CallToolResult::error(vec![ContentBlock::text("this always fails")]))
}

async fn break_down() -> Result<CallToolResult, Exit> {
    tokio::time::sleep(SOON).await;
    Err(ErrorData::internal_error("this always breaks down", None).into())
}

fn question(message: &str) -> Result<InputRequest, Exit> {
    let schema =
        json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
    let params = json!({"message": message, "requestedSchema": schema});
    serde_json::from_value(json!({"method": "elicitation/create", "params": params}))
        .map_err(|error| ErrorData::internal_error(error.to_string(), None).into())
}

async fn confirm(work: Work) -> Result<CallToolResult, Exit> {
    let answer = work.request_input("confirm", question("Delete it?")?).await?;
    Ok(text(&format!("answered: {}", answer["action"])))
}

async fn both(work: Work) -> Result<CallToolResult, Exit> {
    let (first, second) = (question("The first?")?, question("The second?")?);
    let (first, second) =
        tokio::join!(work.request_input("first", first), work.request_input("second", second));
    Ok(text(&format!("answered: {} and {}", first?["action"], second?["action"])))
}
