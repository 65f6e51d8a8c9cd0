//! Which session an attempt works in, and what it is told there.
//!
//! | what is there                               | what happens                                           |
//! |---------------------------------------------|--------------------------------------------------------|
//! | nothing, or nothing that anybody has heard  | a new conversation (or fork), the task                 |
//! | the same work, killed or failed             | the conversation goes on: "go on and finish"           |
//! | the same work, done                         | the kept answer, without asking anybody                |
//! | the same work, done, but not good enough    | the conversation goes on: what was wrong               |
//! | the same work, done, asked for anew         | a new conversation; a named one goes on: the task      |
//! | other work                                  | the conversation goes on: the task                     |
//! | a conversation that cannot go on            | a new one that is told what the old one knew (reload)  |
//! | a session of another agent                  | `<name>-<agent>`, told what is known there (reload)    |

use sage_core::policy::FailureClass;
use sage_core::port::{Continuity, Message, Progress, StepCall};

use super::chosen::Chosen;
use super::opened::Opened;
use super::record::{Record, TurnRecord, TurnState};
use super::recover::recover;
use super::store::SessionError;
use super::take::take;
use super::words::{after, go_on, with_feedback, with_messages};
use crate::agent::{Agent, AgentConfig, Conversation};
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// Turns of one piece of work that end badly before the conversation itself is to blame.
const BAD_TURNS: usize = 3;

pub async fn choose(
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    task: &str,
) -> Result<Chosen, Miss> {
    let call = attempt.call;
    let Some(store) = attempt.config.session_store().filter(|_| agent.capabilities().resume) else {
        return Ok(without_session(call, task));
    };
    let opened = take(attempt, store, config).await?;
    Ok(decide(opened, attempt, agent, config, task))
}

/// An agent that cannot go on is told everything with every attempt.
fn without_session(call: &StepCall, task: &str) -> Chosen {
    let again = call.attempt > 1;
    let continuity = if again { Continuity::Reloaded } else { Continuity::New };
    let whole = with_messages(with_feedback(task, call), &call.messages);
    let chosen = Chosen::without(whole, Conversation::New { id: new_id() }, continuity);
    chosen.with_messages(&call.messages, &call.messages)
}

fn decide(
    mut opened: Opened,
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    task: &str,
) -> Chosen {
    let call = attempt.call;
    let whole = with_messages(with_feedback(task, call), &call.messages);
    let known = |message: &&Message| !opened.record.knows(&message.id);
    let news: Vec<Message> = call.messages.iter().filter(known).cloned().collect();
    let same = opened.record.turns.iter().rposition(|turn| is_same_work(turn, call));
    let done = same.filter(|at| opened.record.turns[*at].state == TurnState::Done);
    if let Some(at) = done.filter(|at| news.is_empty() && is_kept(&opened.record.turns[*at], call))
        && let Some(answer) = opened.answer(at)
    {
        let turn = &opened.record.turns[at];
        if call.unknown && !turn.usage.is_empty() {
            let (attempt_then, mut usage) = (turn.attempt, opened.record.used_before(at));
            usage.add(&turn.usage);
            (attempt.cx.progress)(Progress::Lost { attempt: attempt_then, usage });
        }
        return Chosen::kept_answer(opened, answer);
    }
    // Asked for anew, with nothing wrong about the first answer: it shall not copy itself.
    let anew = done.is_some() && call.fresh && call.feedback.is_none();
    if anew && !opened.record.named {
        opened.leave();
        return Chosen::new(
            opened,
            &whole,
            whole.clone(),
            Conversation::New { id: new_id() },
            Continuity::New,
        )
        .with_messages(&call.messages, &call.messages);
    }
    let cwd = attempt.cwd().unwrap_or_else(|_| attempt.cx.project.clone());
    let id = opened.record.conversation.clone().or_else(|| opened.record.proposed.clone());
    let id = id.filter(|id| agent.knows(config, id, &cwd));
    if let Some(id) = &id {
        recover(&mut opened, attempt, agent, config, id);
    }
    let spoiled = is_spoiled(&opened.record, call);
    let Some(id) = id.filter(|_| !spoiled) else {
        let (prompt, conversation, continuity) =
            opened.start(&whole, spoiled, "the conversation cannot go on");
        return Chosen::new(opened, &whole, prompt, conversation, continuity)
            .with_messages(&call.messages, &call.messages);
    };
    let mut worked = (opened.record.begun_at..opened.record.turns.len()).rev();
    let worked = worked.find(|at| {
        let turn = &opened.record.turns[*at];
        is_same_work(turn, call) && (turn.was_heard() || agent.has_heard(config, &id, task))
    });
    let worked = worked.filter(|_| !anew);
    let (prompt, carried) = match worked {
        Some(at) => {
            let others = opened.record.turns[at..].iter().any(|turn| !is_same_work(turn, call));
            (go_on(&opened.record.turns[at], !others, task, call, &news), &news)
        }
        None => (after(&opened.news_beside(), &whole), &call.messages),
    };
    let counters = opened.record.counters.clone();
    let conversation = Conversation::Resume { id, counters };
    Chosen::new(opened, &whole, prompt, conversation, Continuity::Resumed)
        .going_on(worked.is_some())
        .with_messages(carried, &call.messages)
}

fn is_same_work(turn: &TurnRecord, call: &StepCall) -> bool {
    turn.run == call.run && turn.step == call.path && turn.key == call.key
}

/// Whether an answer is what this call wants: nobody has judged it, and nobody wants another one.
fn is_kept(turn: &TurnRecord, call: &StepCall) -> bool {
    let of_the_lost_attempt = call.unknown && turn.attempt + 1 == call.attempt;
    of_the_lost_attempt || (call.feedback.is_none() && !call.fresh)
}

/// The agent called the conversation itself bad, or nothing good came of it for too long. Limits, logins and
/// broken connections say nothing about it.
fn is_spoiled(record: &Record, call: &StepCall) -> bool {
    let turns = record.turns.get(record.begun_at..).unwrap_or_default();
    let own = turns.iter().rev().filter(|turn| is_same_work(turn, call));
    let bad = own.take_while(|turn| turn.state != TurnState::Done);
    let bad = bad.filter(|turn| matches!(turn.class, Some(FailureClass::Failed | FailureClass::Lost)));
    turns.last().is_some_and(|turn| turn.spoiled) || bad.count() >= BAD_TURNS
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
        SessionError::Disk { ref source, .. } => Miss::of_io(source, error.to_string()),
        _ => Miss::invalid(error.to_string()),
    }
}
