//! `sage_inbox`: what waits for somebody, answers to it, and messages to it.

use std::sync::Arc;
use std::time::Duration;

use sage_engine::inbox::{Delivery, Recorded, Wake, WakeType};
use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::answer::{Answered, Said, say};
use crate::cli::context::Context;
use crate::cli::roster::Roster;
use crate::cli::{background, inbox_view, wake};
use crate::display::text::plural;

/// Handling a wake is a line in a file; who takes longer waits for another process.
const DELIVERY_TIME: Duration = Duration::from_secs(20);
const TYPES: [&str; 4] = ["COMPLETE", "BLOCKED", "FINDING", "ERROR"];

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    match args.one_of("action", &["list", "answer", "acknowledge", "wake"])?.unwrap_or("list") {
        "answer" => {
            let feature = args.feature()?.slug().to_string();
            let step = args.text("step")?;
            let said = Said {
                choice: args.text("choice")?,
                message: args.text("message")?,
                ask: args.text("ask")?,
                input: None,
            };
            args.finish()?;
            let by = call.client();
            call.blocking(move |context| answer(context, &feature, step, said, by)).await
        }
        "acknowledge" => {
            args.finish()?;
            call.blocking(acknowledge).await
        }
        "wake" => {
            let wake = read_wake(&mut args)?;
            args.finish()?;
            call.blocking(move |context| post(context, &wake)).await
        }
        _ => {
            let all = args.flag("all", false)?;
            args.finish()?;
            call.blocking(move |context| list(context, all)).await
        }
    }
}

fn list(context: &Context, all: bool) -> Result<Answer, ToolError> {
    let inbox = context.inbox();
    let mut value = inbox_view::json(context, &inbox, all).map_err(|error| {
        ToolError::new(Code::Filesystem, format!("cannot read `{}`: {error}", inbox.dir().display()))
    })?;
    value["roster"] = json!(Roster::new(context).rows());
    let count = |field: &str, what: &str| plural(value[field].as_array().map_or(0, Vec::len) as u64, what);
    let text = format!(
        "{}, {}, {}",
        count("questions", "question"),
        count("wakes", "unhandled wake"),
        count("roster", "open run")
    );
    if let Some(fields) = value.as_object_mut() {
        fields.remove("type");
    }
    Ok(Answer::shown(value, text))
}

fn answer(
    context: &Context,
    feature: &str,
    step: Option<String>,
    said: Said,
    by: String,
) -> Result<Answer, ToolError> {
    // Told with the right code before anything is sent.
    context.engine().read(feature)?;
    let Answered { step, choice, run } = say(context, feature, step, said, by)?;
    background::ensure(context);
    let alone = background::goes_on_by_itself(context, feature);
    let value = json!({
        "success": true, "feature": feature, "step": step, "choice": choice, "status": run.status.name(),
        "goesOn": alone,
    });
    let next = match alone || !run.status.open() {
        true => String::new(),
        false => format!("; {} goes on", super::super::error::call_text("sage_workflow_resume", feature)),
    };
    Ok(Answer::new(value, format!("{step}: {choice}{next}")))
}

fn acknowledge(context: &Context) -> Result<Answer, ToolError> {
    let mut delivery = Delivery::new(context.inbox(), Arc::new(Recorded));
    let done = delivery.until_quiet(DELIVERY_TIME).map_err(|error| {
        ToolError::new(Code::Filesystem, error.to_string()).hint("nothing is lost; call again")
    })?;
    let value = json!({
        "success": done.left == 0 && !done.busy, "handled": done.handled, "left": done.left, "gaveUp": done.dead,
    });
    Ok(Answer::new(value, format!("{} handled, {} left", plural(done.handled as u64, "wake"), done.left)))
}

fn read_wake(args: &mut Args) -> Result<Wake, ToolError> {
    let missing =
        || ToolError::new(Code::Validation, format!("`type` is missing: one of {}", TYPES.join(", ")));
    let kind = args.one_of("type", &TYPES)?.and_then(WakeType::parse).ok_or_else(missing)?;
    let mut wake = Wake::new(kind, args.needed("session")?.trim());
    wake.agent_role = args.text("role")?;
    wake.summary = args.text("message")?.unwrap_or_default();
    wake.deliverables.files = args.texts("files")?;
    wake.next_role = args.text("nextRole")?;
    wake.wake_id = args.text("wakeId")?.unwrap_or(wake.wake_id);
    Ok(wake)
}

/// Answered when the wake is durable, not before.
fn post(context: &Context, message: &Wake) -> Result<Answer, ToolError> {
    context.inbox().post(message).map_err(wake::failure)?;
    let value = json!({"success": true, "wakeId": message.wake_id});
    Ok(Answer::new(value, format!("posted {}", message.wake_id)))
}
