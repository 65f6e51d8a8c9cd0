//! Which session an attempt works in, and what it is told there.
//!
//! | what is there                              | what happens                                          |
//! |--------------------------------------------|-------------------------------------------------------|
//! | nothing, or no conversation yet            | a new conversation, the task                          |
//! | the same work, killed or failed            | the conversation goes on: "go on and finish"          |
//! | the same work, done, but nobody knows it   | the kept answer, without asking anybody               |
//! | the same work, done, but not good enough   | the conversation goes on: what was wrong              |
//! | other work                                 | the conversation goes on: the task                    |
//! | a conversation that cannot go on           | a new one that is told what the old one knew (reload) |

use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::policy::FailureClass;
use sage_core::port::{Continuity, StepCall, Stop};

use super::chosen::{Chosen, Opened, earlier};
use super::record::{Record, TurnRecord, TurnState};
use super::store::{SessionError, SessionLock, Store, now_ms};
use crate::agent::{Agent, AgentConfig, Conversation};
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// How often a session that somebody else uses is looked at.
const BUSY_POLL: Duration = Duration::from_millis(50);
/// Turns of one piece of work that end badly in a row before the conversation itself is to blame.
const BAD_TURNS: usize = 3;

pub async fn choose(
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    task: &str,
) -> Result<Chosen, Miss> {
    let call = attempt.call;
    let Some(dir) = attempt.config.sessions.clone().filter(|_| agent.capabilities().resume) else {
        return Ok(without_session(call, task));
    };
    let store = Store::new(dir);
    let (id, lock) = take(attempt, &store).await?;
    let record = match store.load(&id) {
        Ok(record) => record,
        Err(SessionError::Unknown(_)) => fresh(&id, call, config),
        Err(error) => return Err(miss(error)),
    };
    if record.agent != config.name {
        let message = format!("session `{id}` belongs to agent `{}`, not to `{}`", record.agent, config.name);
        return Err(Miss::invalid(message));
    }
    let opened = Opened::new(store, record, lock, call);
    Ok(decide(opened, attempt, agent, config, task))
}

/// An agent that cannot go on is told everything with every attempt.
fn without_session(call: &StepCall, task: &str) -> Chosen {
    let again = call.attempt > 1;
    let continuity = if again { Continuity::Reloaded } else { Continuity::New };
    Chosen::without(with_feedback(task, call), Conversation::New { id: new_id() }, continuity)
}

/// Waits for a session that has a name; a step's own one is only taken when another attempt of it is alive.
async fn take(attempt: &Attempt<'_>, store: &Store) -> Result<(String, SessionLock), Miss> {
    let call = attempt.call;
    if let Some(id) = &call.session {
        loop {
            if let Some(lock) = store.lock(id).map_err(miss)? {
                return Ok((id.clone(), lock));
            }
            tokio::select! {
                () = attempt.cx.stop.reached(Stop::Graceful) => return Err(Miss::Stopped),
                () = tokio::time::sleep(BUSY_POLL) => {}
            }
        }
    }
    let own = own_id(call);
    for number in 1.. {
        let id = if number == 1 { own.clone() } else { format!("{own}-{number}") };
        if let Some(lock) = store.lock(&id).map_err(miss)? {
            return Ok((id, lock));
        }
    }
    Err(Miss::failed(FailureClass::Transient, "no session is free"))
}

/// `<role>-<agent>-<id>`: the same for every attempt of the same work.
fn own_id(call: &StepCall) -> String {
    let work = Digest::of(format!("{}\0{}\0{}", call.run, call.path, call.key).as_bytes()).short();
    let role = call.role.map_or("step", |role| role.name());
    let agent: String = call.agent.as_deref().unwrap_or("agent").to_ascii_lowercase();
    let agent: String = agent.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{role}-{}-{}", agent.chars().take(40).collect::<String>(), work.to_lowercase())
}

fn fresh(id: &str, call: &StepCall, config: &AgentConfig) -> Record {
    let role = call.role.map(|role| role.name().to_string());
    Record::new(id, &config.name, role, call.session.is_some(), now_ms())
}

fn decide(
    mut opened: Opened,
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    task: &str,
) -> Chosen {
    let call = attempt.call;
    let counters = opened.record.counters.clone();
    let Some(id) = opened.record.conversation.clone() else {
        let prompt = with_feedback(task, call);
        let Some(parent) = opened.record.parent.clone() else {
            return Chosen::new(opened, prompt, Conversation::New { id: new_id() }, Continuity::New);
        };
        let fork = Conversation::Fork { of: parent.conversation, id: new_id(), counters };
        return Chosen::new(opened, prompt, fork, Continuity::Forked);
    };
    let last = opened.record.last().cloned();
    let same = last.as_ref().filter(|turn| is_same_work(turn, call));
    if let Some(kept) = same.filter(|turn| turn.state == TurnState::Done && call.unknown)
        && let Some(answer) = opened.kept_answer()
    {
        return Chosen::kept_answer(opened, answer, kept.usage.clone());
    }
    let cwd = attempt.cwd().unwrap_or_else(|_| attempt.cx.project.clone());
    // Asked for anew, with nothing wrong about the first answer: it shall not copy itself.
    let anew = same.is_some_and(|turn| turn.state == TurnState::Done) && call.feedback.is_none();
    if anew && !opened.record.named {
        opened.record.conversation = None;
        return Chosen::new(opened, task.to_string(), Conversation::New { id: new_id() }, Continuity::New);
    }
    if !agent.knows(config, &id, &cwd) || is_spoiled(&opened.record, call) {
        let prompt = earlier(&opened, task);
        opened.forget(task, "the conversation cannot go on");
        return Chosen::new(opened, prompt, Conversation::New { id: new_id() }, Continuity::Reloaded);
    }
    let prompt = match same {
        Some(turn) if turn.heard && !anew => go_on(turn, call),
        _ => with_feedback(task, call),
    };
    Chosen::new(opened, prompt, Conversation::Resume { id, counters }, Continuity::Resumed)
}

fn is_same_work(turn: &TurnRecord, call: &StepCall) -> bool {
    turn.run == call.run && turn.step == call.path && turn.key == call.key
}

/// The agent called the conversation itself bad, or nothing good came of it for too long.
fn is_spoiled(record: &Record, call: &StepCall) -> bool {
    let own = record.turns.iter().rev().take_while(|turn| is_same_work(turn, call));
    let bad = own.take_while(|turn| turn.state == TurnState::Failed).count();
    let refused = record.last().is_some_and(|turn| turn.class == Some(FailureClass::Invalid));
    refused || bad >= BAD_TURNS
}

fn with_feedback(task: &str, call: &StepCall) -> String {
    match &call.feedback {
        Some(why) => format!("{task}\n\nAn earlier try was not accepted: {why}"),
        None => task.to_string(),
    }
}

fn go_on(turn: &TurnRecord, call: &StepCall) -> String {
    match (&call.feedback, turn.state) {
        (Some(why), TurnState::Done) => {
            format!("Your answer was not accepted: {why}\nPut that right and give the whole answer again.")
        }
        (Some(why), TurnState::Failed) => format!(
            "You were interrupted: {why}\nWhat you have done so far is still there. Go on from there, do not \
             begin again, finish the task and give the final answer."
        ),
        _ => "You were interrupted before you had finished. What you have done so far is still there. Go on \
              from there, do not begin again, finish the task and give the final answer."
            .into(),
    }
}

/// A UUID (version 7) that agents accept as the id of a conversation.
pub fn new_id() -> String {
    let bits = ulid::Ulid::generate().0;
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x7 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

pub(super) fn miss(error: SessionError) -> Miss {
    match error {
        SessionError::Disk { .. } => Miss::failed(FailureClass::Transient, error.to_string()),
        _ => Miss::invalid(error.to_string()),
    }
}
