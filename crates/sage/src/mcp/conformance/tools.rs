//! Tools that answer within their call. Some tell how far they are, some ask an old client something meanwhile.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData,
    ProgressNotificationParam, ServerNotification, ServerRequest,
};
use serde_json::{Value, json};

use super::{Change, Context, Shared, content};

/// Between two notifications, as the suites ask for.
const PAUSE: Duration = Duration::from_millis(50);

pub async fn call(
    shared: &Shared,
    call: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let name = call.name.as_ref();
    if let Some(content) = at_once(name, call) {
        return Ok(CallToolResult::success(content).into());
    }
    let text = match name {
        "test_error_handling" => {
            let text = ContentBlock::text("This tool intentionally returns an error for testing");
            return Ok(CallToolResult::error(vec![text]).into());
        }
        "test_tool_with_progress" => progress(context).await?,
        "test_tool_with_logging" => logging(context).await?,
        "test_logging_tool" => log_if_asked(context).await?,
        "test_trigger_tool_change" => changed(shared, Change::Tools),
        "test_trigger_prompt_change" => changed(shared, Change::Prompts),
        "test_missing_capability" => needs_sampling(context)?,
        _ => asked(shared, call, context).await?,
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn argument<'a>(call: &'a CallToolRequestParams, name: &str) -> &'a str {
    call.arguments.as_ref().and_then(|arguments| arguments.get(name)?.as_str()).unwrap_or_default()
}

fn at_once(name: &str, call: &CallToolRequestParams) -> Option<Vec<ContentBlock>> {
    Some(match name {
        "test_simple_text" => vec![ContentBlock::text("This is a simple text response for testing.")],
        "test_image_content" => vec![content::image()],
        "test_audio_content" => vec![ContentBlock::audio(content::WAV, "audio/wav")],
        "test_embedded_resource" => vec![content::embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            content::image(),
            content::embedded(
                "test://mixed-content-resource",
                "application/json",
                &json!({"test": "data", "value": 123}).to_string(),
            ),
        ],
        "test_reconnection" => vec![ContentBlock::text("Reconnection test completed successfully")],
        "test_header_param" => vec![ContentBlock::text(argument(call, "region"))],
        "json_schema_2020_12_tool" => vec![ContentBlock::text("well formed")],
        "greet" => vec![ContentBlock::text(format!("Hello, {}!", argument(call, "name")))],
        _ => return None,
    })
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

async fn progress(context: &Context) -> Result<String, ErrorData> {
    let token = context.meta.get_progress_token();
    for (nth, done) in [0.0, 50.0, 100.0].into_iter().enumerate() {
        if nth > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            context.peer.notify_progress(progress).await.map_err(internal)?;
        }
    }
    Ok("all done".into())
}

async fn log(context: &Context, text: &str) -> Result<(), ErrorData> {
    let message = json!({"method": "notifications/message", "params": {"level": "info", "data": text}});
    let message: ServerNotification = serde_json::from_value(message).map_err(internal)?;
    context.peer.send_notification(message).await.map_err(internal)
}

async fn logging(context: &Context) -> Result<String, ErrorData> {
    for (nth, text) in
        ["Tool execution started", "Tool processing data", "Tool execution completed"].into_iter().enumerate()
    {
        if nth > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        log(context, text).await?;
    }
    Ok("logged".into())
}

/// Since 2026-07-28 each request says whether it wants logs.
async fn log_if_asked(context: &Context) -> Result<String, ErrorData> {
    let meta = serde_json::to_value(&context.meta).map_err(internal)?;
    if meta.get("io.modelcontextprotocol/logLevel").is_some() {
        log(context, "asked for").await?;
    }
    Ok("logged, if asked".into())
}

fn changed(shared: &Shared, change: Change) -> String {
    // Nobody may be listening.
    let _ = shared.changes.send(change);
    "changed".into()
}

fn needs_sampling(context: &Context) -> Result<String, ErrorData> {
    let can = serde_json::to_value(context.client_capabilities()).map_err(internal)?;
    if can.get("sampling").is_some() {
        return Ok("the client can sample".into());
    }
    let needed: ClientCapabilities = serde_json::from_value(json!({"sampling": {}})).map_err(internal)?;
    Err(ErrorData::missing_required_client_capability(needed))
}

/// Asks the client in the middle of a call, which only those before 2026-07-28 allow.
async fn asked(
    shared: &Shared,
    call: &CallToolRequestParams,
    context: &Context,
) -> Result<String, ErrorData> {
    let elicit = |message: &str, question: &str| {
        let schema = &shared.listed.questions[question];
        json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
    };
    let request = match call.name.as_ref() {
        "test_sampling" => {
            let content = json!({"type": "text", "text": argument(call, "prompt")});
            let messages = json!([{"role": "user", "content": content}]);
            json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}})
        }
        "test_elicitation" => elicit(argument(call, "message"), "details"),
        "test_elicitation_sep1034_defaults" => elicit("Please check these", "defaults"),
        "test_elicitation_sep1330_enums" => elicit("Please choose", "enums"),
        name => return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
    };
    let request: ServerRequest = serde_json::from_value(request).map_err(internal)?;
    let answer = context.peer.send_request(request).await.map_err(internal)?;
    let answer: Value = serde_json::to_value(answer).map_err(internal)?;
    Ok(match answer["content"]["text"].as_str() {
        Some(text) if call.name == "test_sampling" => format!("LLM response: {text}"),
        _ => format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]),
    })
}
