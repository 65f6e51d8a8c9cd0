//! A client for conformance suites (`sage debug mcp-client <url>`): lists the tools at an address and calls them, by
//! the same way as steps do.
//!
//! What to call is in `MCP_CONFORMANCE_CONTEXT`, as `{"toolCalls": [{"name", "arguments"}]}`; without it every tool is
//! called once, with the least that its schema wants. A tool that takes a `schema` gets that of the first one.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::hub::{Hub, HubConfig};
use super::server::McpServer;
use super::tool::Tool;

const NAME: &str = "suite";

pub fn mcp_client_main(url: &str) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.to_string()),
    };
    let server = McpServer { url: Some(url.to_owned()), ..McpServer::default() };
    let hub = Arc::new(Hub::new(HubConfig {
        servers: [(NAME.to_owned(), server)].into(),
        untrusted: Default::default(),
        project: ".".into(),
        keeper: "sage".into(),
        key: None,
        state: None,
        log_bytes: 0,
        redactor: Default::default(),
    }));
    runtime.block_on(async {
        let outcome = rehearse(&hub).await;
        hub.close().await;
        outcome.map_or_else(|why| complain(&why), |()| ExitCode::SUCCESS)
    })
}

fn complain(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

async fn rehearse(hub: &Hub) -> Result<(), String> {
    let tools = hub.tools_of(NAME).await.map_err(|failure| failure.message)?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let ordered = context["toolCalls"].as_array();
    let calls = match ordered {
        Some(given) => given.iter().map(self::ordered).collect(),
        None => tools.iter().map(|tool| (tool.name.clone(), least(tool, &tools))).collect::<Vec<_>>(),
    };
    for (name, arguments) in calls {
        match hub.call(NAME, &name, arguments, None, None).await {
            Ok(answer) => println!("{name}: {}", answer.value),
            // What was made up may not fit; what was ordered must.
            Err(failure) if ordered.is_none() => eprintln!("{failure}"),
            Err(failure) => return Err(failure.message),
        }
    }
    Ok(())
}

/// An argument that is nothing is left out: few schemas take it.
fn ordered(call: &Value) -> (String, Map<String, Value>) {
    let name = call["name"].as_str().unwrap_or_default().to_owned();
    let mut arguments = call["arguments"].as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    (name, arguments)
}

fn least(tool: &Tool, all: &[Tool]) -> Map<String, Value> {
    let names = tool.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let argument = |name: &str| {
        let schema = &tool.input_schema["properties"][name];
        let value = match (schema["type"].as_str().unwrap_or("string"), all.first()) {
            ("object", Some(first)) if name == "schema" => first.input_schema.clone(),
            ("object", _) => json!({}),
            ("array", _) => json!([]),
            ("number" | "integer", _) => json!(1),
            ("boolean", _) => json!(true),
            _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text")),
        };
        (name.to_owned(), value)
    };
    names.map(argument).collect()
}
