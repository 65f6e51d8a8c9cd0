//! One `tool` step: calls the tool, and waits for the first of answer, stop, silence and deadline.

use std::sync::Arc;
use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::{Progress, StepOutcome, Stop, Usage};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::hub::Hub;
use super::listener::OnProgress;
use crate::attempt::Attempt;
use crate::outcome::Miss;

pub async fn run(attempt: &Attempt<'_>, hub: &Hub) -> StepOutcome {
    match work(attempt, hub).await {
        Ok(result) => StepOutcome::Succeeded { result, usage: Usage::default() },
        Err(miss) => miss.into(),
    }
}

/// What the step asks for.
struct Order<'a> {
    server: &'a str,
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
        let arguments = match params.get("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return Err(Miss::invalid("`arguments` must be an object")),
        };
        Ok(Order { server: needed("server")?, tool: needed("tool")?, arguments })
    }
}

async fn work(attempt: &Attempt<'_>, hub: &Hub) -> Result<Value, Miss> {
    let order = Order::read(attempt)?;
    // It works for many at once: nobody can say what of its time was for whom.
    if hub.is_program(order.server) {
        attempt.cx.crowd.lost(None);
    }
    let (moved, moves) = watch::channel(0u64);
    let progress = Arc::clone(&attempt.cx.progress);
    let on_progress: OnProgress = Arc::new(move |_| {
        moved.send_modify(|count| *count += 1);
        progress(Progress::Alive);
    });
    let timeout = attempt.call.timeout_ms.map(Duration::from_millis);
    let call = hub.call(order.server, order.tool, order.arguments.clone(), timeout, Some(on_progress));
    // Also while a server starts. Dropping a call cancels it, dropping a start ends the server.
    let answer = tokio::select! {
        answer = call => answer?,
        idle = silence(attempt, moves) => {
            let idle = humantime::format_duration(idle);
            let message = format!("`{}` of server `{}` idle: no progress for {idle}", order.tool, order.server);
            return Err(Miss::failed(FailureClass::Timeout, message));
        }
        () = attempt.cx.stop.reached(Stop::Graceful) => return Err(Miss::Stopped),
    };
    if answer.is_error {
        let message = format!("`{}` of server `{}`: {}", order.tool, order.server, answer.text);
        return Err(Miss::failed(FailureClass::Failed, message));
    }
    hub.note(answer.notes);
    Ok(answer.value)
}

/// Returns when the call has shown no progress for too long.
async fn silence(attempt: &Attempt<'_>, mut moves: watch::Receiver<u64>) -> Duration {
    let Some(idle) = attempt.call.idle_timeout_ms.map(Duration::from_millis) else {
        return std::future::pending().await;
    };
    loop {
        match tokio::time::timeout(idle, moves.changed()).await {
            Err(_) => return idle,
            Ok(Ok(())) => {}
            // The call is over.
            Ok(Err(_)) => std::future::pending().await,
        }
    }
}
