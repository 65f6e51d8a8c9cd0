//! Takes the session that an attempt works in: a named one is waited for, a step's own one is free or another.

use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::policy::FailureClass;
use sage_core::port::{Progress, StepCall, Stop};
use tokio::time::Instant;

use super::choose::miss;
use super::opened::Opened;
use super::record::{Record, Source, TurnState};
use super::store::{SessionError, SessionLock, Store, now_ms};
use crate::agent::AgentConfig;
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// How often a session that somebody else uses is looked at.
const BUSY_POLL: Duration = Duration::from_millis(50);
/// How often somebody who waits for a session tells that it is not stuck.
const ALIVE: Duration = Duration::from_secs(2);
/// The longest name that a session can have.
const NAME_CHARS: usize = 100;

pub async fn take(attempt: &Attempt<'_>, store: Store, config: &AgentConfig) -> Result<Opened, Miss> {
    let call = attempt.call;
    let (id, lock) = match &call.session {
        Some(id) => (id.clone(), wait(attempt, &store, id).await?),
        None => own(&store, call)?,
    };
    let record = load(&store, &id, call, config)?;
    if record.agent == config.name {
        return Ok(Opened::new(store, record, lock, call));
    }
    // Another agent cannot go on with it. It has one beside it, and is told what is known here.
    drop(lock);
    let end = format!("-{}", plain(&config.name));
    let beside = format!("{}{end}", id.chars().take(NAME_CHARS - end.len()).collect::<String>());
    let lock = wait(attempt, &store, &beside).await?;
    let mut own = load(&store, &beside, call, config)?;
    if own.agent != config.name {
        let message =
            format!("session `{beside}` belongs to agent `{}`, not to `{}`", own.agent, config.name);
        return Err(Miss::invalid(message));
    }
    own.beside.get_or_insert(Source { session: id, turns: 0 });
    Ok(Opened::new(store, own, lock, call))
}

fn load(store: &Store, id: &str, call: &StepCall, config: &AgentConfig) -> Result<Record, Miss> {
    match store.load(id) {
        Err(SessionError::Unknown(_)) => {
            let role = call.role.map(|role| role.name().to_string());
            Ok(Record::new(id, &config.name, role, call.session.is_some(), now_ms()))
        }
        Err(damaged @ SessionError::Damaged { .. }) => {
            store.rebuild(id, Some(&config.name)).ok_or_else(|| miss(damaged))
        }
        loaded => loaded.map_err(miss),
    }
}

/// Waiting is no stall, and it ends when the attempt's time is over.
async fn wait(attempt: &Attempt<'_>, store: &Store, id: &str) -> Result<SessionLock, Miss> {
    let limit = attempt.call.timeout_ms.map(Duration::from_millis);
    let begun = Instant::now();
    let mut told = begun;
    loop {
        if let Some(lock) = store.lock(id).map_err(miss)? {
            return Ok(lock);
        }
        if limit.is_some_and(|limit| begun.elapsed() >= limit) {
            return Err(Miss::failed(FailureClass::Timeout, busy(store, id, begun.elapsed())));
        }
        if told.elapsed() >= ALIVE {
            told = Instant::now();
            (attempt.cx.progress)(Progress::Alive);
        }
        tokio::select! {
            () = attempt.cx.stop.reached(Stop::Graceful) => return Err(Miss::Stopped),
            () = tokio::time::sleep(BUSY_POLL) => {}
        }
    }
}

fn busy(store: &Store, id: &str, waited: Duration) -> String {
    let record = store.load(id).ok();
    let turn = record.as_ref().and_then(Record::last).filter(|turn| turn.state == TurnState::Open);
    let who = turn.map_or("somebody else has it".to_string(), |turn| {
        format!("step `{}` of run `{}` has it", turn.step, turn.run)
    });
    let waited = waited.as_secs_f64();
    format!("session `{id}` was not free for {waited:.1} s: {who}; wait for its end, or raise `timeout`")
}

/// A step's own session is only taken when another attempt of it is alive.
fn own(store: &Store, call: &StepCall) -> Result<(String, SessionLock), Miss> {
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
    let agent = plain(call.agent.as_deref().unwrap_or("agent"));
    format!("{role}-{agent}-{}", work.to_lowercase())
}

/// An agent's name as part of a session's.
fn plain(agent: &str) -> String {
    let agent = agent.to_ascii_lowercase();
    agent.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
