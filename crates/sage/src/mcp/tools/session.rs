//! `sage_session`: named conversations with agents. Talking to one is a step's business: a turn may take longer
//! than a call.

use sage_agents::session::{SessionError, Store};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError, cut};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::session::{create, resume_command, view};
use crate::display::text::plural;

/// Of one prompt or answer.
const MAX_TEXT_CHARS: usize = 20_000;
/// The newest turns of a session; older ones one by one.
const MAX_TURNS: usize = 50;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let action = args.one_of("action", &["list", "show", "new", "fork", "delete"])?.unwrap_or("list");
    match action {
        "new" => {
            let (agent, role, name) = (args.needed("agent")?, args.text("role")?, args.text("name")?);
            args.finish()?;
            call.blocking(move |context| {
                let record = create(context, &store(context), &agent, role.as_deref(), name)?;
                Ok(shown(view(&record), "created"))
            })
            .await
        }
        "fork" => {
            let (name, new) = (args.needed("name")?, args.needed("as")?);
            args.finish()?;
            call.blocking(move |context| {
                Ok(shown(view(&store(context).fork(&name, &new).map_err(failed)?), "forked"))
            })
            .await
        }
        "delete" => {
            let name = args.needed("name")?;
            args.finish()?;
            call.blocking(move |context| {
                store(context).delete(&name).map_err(failed)?;
                Ok(Answer::new(json!({"success": true, "name": name}), format!("{name} deleted")))
            })
            .await
        }
        "show" => {
            let (name, turn) = (args.needed("name")?, args.number("turn", 1, u64::from(u32::MAX))?);
            args.finish()?;
            call.blocking(move |context| show(context, &name, turn)).await
        }
        _ => {
            let all = args.flag("all", false)?;
            args.finish()?;
            call.blocking(move |context| list(&store(context), all)).await
        }
    }
}

fn store(context: &Context) -> Store {
    context.sessions()
}

fn failed(error: SessionError) -> ToolError {
    let unknown = matches!(error, SessionError::Unknown(_));
    let error = ToolError::from(Failure::from(error));
    if unknown { error.code(Code::NotFound) } else { error }
}

fn shown(session: Value, what: &str) -> Answer {
    let text = format!("{} {what}", session["id"].as_str().unwrap_or_default());
    Answer::shown(json!({"success": true, "session": session}), text)
}

fn list(store: &Store, all: bool) -> Result<Answer, ToolError> {
    let found = store
        .list()
        .map_err(|error| ToolError::new(Code::Filesystem, format!("cannot list the sessions: {error}")))?;
    let row = |entry: Result<_, SessionError>| match entry {
        Ok(record) => brief(view(&record)),
        Err(error) => json!({"error": error.to_string()}),
    };
    let wanted = |entry: &Result<sage_agents::session::Record, SessionError>| {
        entry.as_ref().map_or(true, |record| record.named || all)
    };
    let rows: Vec<Value> = found.into_iter().filter(wanted).map(row).collect();
    let text = plural(rows.len() as u64, "session");
    Ok(Answer::shown(json!({"sessions": rows}), text))
}

/// Without its turns, only how many.
fn brief(mut session: Value) -> Value {
    session["turns"] = session["turns"].as_array().map_or(0, Vec::len).into();
    session
}

fn show(context: &Context, name: &str, turn: Option<u64>) -> Result<Answer, ToolError> {
    let store = store(context);
    let record = store.load(name).map_err(failed)?;
    let Some(number) = turn else {
        let mut session = view(&record);
        session["resumeCommand"] = resume_command(context, &record).into();
        if let Some(turns) = session["turns"].as_array_mut() {
            let older = turns.len().saturating_sub(MAX_TURNS);
            turns.drain(..older);
            session["olderTurns"] = older.into();
        }
        let text = format!("{name}: {}", plural(record.turns.len() as u64, "turn"));
        return Ok(Answer::shown(json!({"session": session}), text));
    };
    let found = usize::try_from(number).ok().and_then(|number| store.load_turn(name, number));
    let Some(mut turn) = found else {
        let message = format!("`{name}` has no turn {number}; it has {}", record.turns.len());
        return Err(ToolError::new(Code::NotFound, message));
    };
    for (_, value) in turn.as_object_mut().into_iter().flatten() {
        if let Value::String(text) = value {
            *text = cut(text, MAX_TEXT_CHARS);
        }
    }
    Ok(Answer::shown(json!({"turn": turn}), format!("{name}, turn {number}")))
}
