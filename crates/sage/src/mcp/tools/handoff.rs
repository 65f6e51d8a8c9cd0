//! `sage_handoff`: work that goes from one role to the next.

use sage_core::handoff::{Entry, Handoff, Status};
use sage_engine::clock::Clock;
use sage_engine::handoff::{Done, HandoffError, Store};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::context::Context;
use crate::cli::handoff::{failure, view};
use crate::display::text::plural;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let actions = ["list", "show", "create", "accept", "reject", "complete"];
    match args.one_of("action", &actions)?.unwrap_or("list") {
        "create" => {
            let draft = args.object("handoff")?;
            args.finish()?;
            let missing = || ToolError::new(Code::Validation, "`handoff` is missing: what is handed over");
            let draft = Value::Object(draft.ok_or_else(missing)?);
            call.blocking(move |context| changed(store(context).create(&draft))).await
        }
        "show" => {
            let id = args.needed("id")?;
            args.finish()?;
            call.blocking(move |context| show(&store(context), &id)).await
        }
        "list" => {
            let all = args.flag("all", false)?;
            args.finish()?;
            call.blocking(move |context| list(&store(context), all)).await
        }
        action => {
            let id = args.needed("id")?;
            let (to, reason) = match action {
                "accept" => (Status::Accepted, None),
                "complete" => (Status::Completed, None),
                _ => (Status::Rejected, Some(args.needed("reason")?)),
            };
            args.finish()?;
            call.blocking(move |context| changed(store(context).advance(&id, to, reason.as_deref()))).await
        }
    }
}

fn store(context: &Context) -> Store {
    Store::new(&context.project, context.disk.clone(), Clock::System)
}

fn failed(error: HandoffError) -> ToolError {
    let unknown = matches!(error, HandoffError::Unknown { .. });
    let refused = matches!(error, HandoffError::Refused(_) | HandoffError::Exists(_));
    let problems = match &error {
        HandoffError::Incomplete(problems) => Some(json!({"problems": problems})),
        _ => None,
    };
    let error = ToolError::from(failure(error)).with(problems.unwrap_or_default());
    match (unknown, refused) {
        (true, _) => error.code(Code::NotFound),
        (_, true) => error.code(Code::Conflict),
        _ => error,
    }
}

fn changed(done: Result<Done<Handoff>, HandoffError>) -> Result<Answer, ToolError> {
    let done = done.map_err(failed)?;
    let (header, notes) = (&done.value.handoff, &done.notes);
    let text = format!("{}: {} ({})", header.handoff_id, view::way(&done.value), header.status.name());
    Ok(Answer::shown(json!({"success": true, "handoff": done.value, "notes": notes}), text))
}

fn show(store: &Store, id: &str) -> Result<Answer, ToolError> {
    let done = store.show(id).map_err(failed)?;
    let (entry, now) = (Entry::of(&done.value), store.now_ms());
    let text = format!("{}: {}", done.value.handoff.handoff_id, view::way(&done.value));
    let value = json!({
        "handoff": done.value, "ageMs": entry.age_ms(now), "stuck": entry.is_stuck(now), "notes": done.notes,
    });
    Ok(Answer::shown(value, text))
}

fn list(store: &Store, all: bool) -> Result<Answer, ToolError> {
    let (done, now) = (store.list().map_err(failed)?, store.now_ms());
    let stuck = done.value.iter().filter(|entry| entry.is_stuck(now)).count();
    let shown = done.value.iter().filter(|entry| all || !entry.archived);
    let rows: Vec<Value> = shown.map(|entry| view::row_json(entry, now)).collect();
    let text = plural(rows.len() as u64, "handoff");
    let value = json!({"handoffs": rows, "total": done.value.len(), "stuck": stuck, "notes": done.notes});
    Ok(Answer::shown(value, text))
}
