//! One `tool` step: find the server, call the tool, wait for the first of answer, stop and deadline.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::CallToolRequestParams;
use sage_core::policy::FailureClass;
use sage_core::port::{Progress, StepOutcome, Stop, Usage};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::connection::Connection;
use super::server::McpServer;
use super::servers::Servers;
use super::verdict::{self, Judged};
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// Of a call where neither the step nor its server says how long it may take.
const CALL_PATIENCE: Duration = Duration::from_secs(60);

pub async fn run(attempt: &Attempt<'_>, servers: &Servers) -> StepOutcome {
    match work(attempt, servers).await {
        Ok(result) => StepOutcome::Succeeded { result, usage: Usage::default() },
        Err(miss) => miss.into(),
    }
}

/// What the step asks for.
struct Order<'a> {
    name: &'a str,
    server: &'a McpServer,
    tool: &'a str,
    arguments: Map<String, Value>,
}

impl<'a> Order<'a> {
    fn read(attempt: &Attempt<'a>) -> Result<Order<'a>, Miss> {
        let params = attempt.params();
        let needed = |name: &str| {
            let text = params.text(name)?.filter(|text| !text.is_empty());
            text.ok_or_else(|| Miss::invalid(format!("a tool step needs a `{name}`")))
        };
        let (name, tool) = (needed("server")?, needed("tool")?);
        let known = &attempt.config.servers;
        let server = known.get(name).ok_or_else(|| {
            let names: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Miss::invalid(format!("unknown server `{name}`; known: {names}"))
        })?;
        let arguments = match params.get("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return Err(Miss::invalid("`arguments` must be an object")),
        };
        Ok(Order { name, server, tool, arguments })
    }
}

async fn work(attempt: &Attempt<'_>, servers: &Servers) -> Result<Value, Miss> {
    let order = Order::read(attempt)?;
    // Also while a server starts. Dropping a call cancels it, dropping a start ends the server.
    tokio::select! {
        outcome = ask(attempt, servers, &order) => outcome,
        () = attempt.cx.stop.reached(Stop::Graceful) => Err(Miss::Stopped),
    }
}

async fn ask(attempt: &Attempt<'_>, servers: &Servers, order: &Order<'_>) -> Result<Value, Miss> {
    let connection = servers.get(order.name, order.server, attempt).await?;
    let call = CallToolRequestParams::new(order.tool.to_owned()).with_arguments(order.arguments.clone());
    let answer = tokio::select! {
        answer = connection.call(call) => answer,
        late = deadline(attempt, order, &connection) => return Err(late),
    };
    match verdict::judge(answer) {
        Judged::Done(result) => Ok(result),
        Judged::Failed(class, message) => {
            Err(Miss::failed(class, format!("`{}` of server `{}`: {message}", order.tool, order.name)))
        }
        Judged::Gone => Err(Miss::failed(FailureClass::Lost, connection.obituary().await)),
    }
}

/// Returns when the call has taken too long, or has shown no progress for too long.
async fn deadline(attempt: &Attempt<'_>, order: &Order<'_>, connection: &Arc<Connection>) -> Miss {
    let own = attempt.call.timeout_ms.or(order.server.timeout_ms);
    let limit = own.map_or(CALL_PATIENCE, Duration::from_millis);
    let idle = attempt.call.idle_timeout_ms.map(Duration::from_millis);
    let mut progress = connection.progress();
    progress.mark_unchanged();
    let end = tokio::time::sleep(limit);
    tokio::pin!(end);
    let mut heard = Instant::now();
    loop {
        let silent = async {
            match idle {
                Some(idle) => tokio::time::sleep_until(heard + idle).await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            () = &mut end => format!("timed out after {}", humantime::format_duration(limit)),
            () = silent => {
                let idle = humantime::format_duration(idle.unwrap_or_default());
                format!("idle: no progress for {idle}")
            }
            Ok(()) = progress.changed() => {
                heard = Instant::now();
                (attempt.cx.progress)(Progress::Alive);
                continue;
            }
        };
        return Miss::failed(
            FailureClass::Timeout,
            format!("`{}` of server `{}` {message}", order.tool, order.name),
        );
    }
}
