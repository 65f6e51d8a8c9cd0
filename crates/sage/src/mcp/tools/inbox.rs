//! `sage_inbox`: what waits for somebody, answers to it, and messages to it.

use std::sync::Arc;
use std::time::Duration;

use sage_core::template::Kind;
use sage_engine::inbox::{Delivery, Recorded, Wake, WakeType};
use sage_engine::open::{OpenError, answered};
use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError};
use super::person::{self, Asked};
use crate::cli::answer::{Answered, Said, command, say};
use crate::cli::context::Context;
use crate::cli::questions::{self, Question};
use crate::cli::roster::Roster;
use crate::cli::{background, inbox_view, wake};
use crate::display::text::plural;
use crate::trust::Door;
use crate::trust::person::refuse_steps;

/// Handling a wake is a line in a file; who takes longer waits for another process.
const DELIVERY_TIME: Duration = Duration::from_secs(20);
const TYPES: [&str; 4] = ["COMPLETE", "BLOCKED", "FINDING", "ERROR"];

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    match args.one_of("action", &["list", "answer", "acknowledge", "wake"])?.unwrap_or("list") {
        "answer" => {
            let feature = args.feature()?.slug().to_string();
            let (step, ask, proposed) = (args.text("step")?, args.text("ask")?, args.text("choice")?);
            args.text("message")?;
            args.finish()?;
            answer(call, feature, step, ask, proposed).await
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

/// Finds the question, and lets the person in front of the client answer it.
async fn answer(
    call: &Call,
    feature: String,
    step: Option<String>,
    ask: Option<String>,
    proposed: Option<String>,
) -> Result<Answer, ToolError> {
    let name = feature.clone();
    let question =
        call.blocking(move |context| find(context, &name, step.as_deref(), ask.as_deref())).await?;
    let said = match person::ask(call, &question, proposed.as_deref()).await? {
        Asked::Said(said) => Said { ask: question.ask.clone(), ..said },
        Asked::Needs(needed) => return Ok(Answer::Needs(needed)),
    };
    let by = Door::Mcp(call.client()).by();
    call.blocking(move |context| record(context, &feature, question.step, said, by)).await
}

/// The open question that is meant. What could mean several is refused.
fn find(
    context: &Context,
    feature: &str,
    step: Option<&str>,
    ask: Option<&str>,
) -> Result<Question, ToolError> {
    // An agent of a step may have this server: it is no person's.
    refuse_steps("answer a question", &command("approve", feature, step))?;
    let snapshot = context.engine().read(feature)?;
    if snapshot.is_foreign {
        return Err(OpenError::Foreign(feature.into()).into());
    }
    let is_meant = |question: &Question| {
        step.is_none_or(|step| question.step == step)
            && ask.is_none_or(|ask| question.ask.as_deref() == Some(ask))
    };
    let mut open: Vec<Question> = questions::of_run(&snapshot.run).into_iter().filter(is_meant).collect();
    let which = |open: &[Question]| {
        open.iter()
            .map(|it| format!("{} {}", it.step, it.ask.as_deref().unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let list = "sage_inbox {\"action\":\"list\"}";
    match open.len() {
        1 => Ok(open.remove(0)),
        0 => {
            let run = &snapshot.run;
            let asked = step.filter(|step| run.find(step).is_some_and(|id| run.kind(id) == Kind::Approval));
            if let Some(step) = asked {
                return Err(answered(run, step).into());
            }
            Err(ToolError::new(Code::Validation, format!("no such question of `{feature}` is open"))
                .hint(list))
        }
        count => {
            let message = format!("{count} questions of `{feature}` are open: {}", which(&open).join(", "));
            Err(ToolError::new(Code::Validation, message).hint("say which with `step` and `ask`").hint(list))
        }
    }
}

fn record(
    context: &Context,
    feature: &str,
    step: String,
    said: Said,
    by: String,
) -> Result<Answer, ToolError> {
    let Answered { step, choice, run } = say(context, feature, Some(step), said, by)?;
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
