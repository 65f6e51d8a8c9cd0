//! What an agent is told, by what it knows already.

use sage_core::port::{Message, StepCall};
use serde_json::Value;

use super::record::{Parent, Record, TurnRecord, TurnState};
use super::store::Store;
use crate::outcome::excerpt;

/// Turns that a new conversation is told of, and how much of each answer.
const TOLD_TURNS: usize = 5;
const TOLD_CHARS: usize = 4_000;
/// Forks of forks that are told of.
const TOLD_PARENTS: usize = 8;

const ASKED: &str = "## Asked\n";

const GO_ON: &str = "What you have done so far is still there. Go on from there, do not begin again, finish the \
                     task and give the final answer.";

/// The answer of the turn that ends last is the step's.
const TAKE_IN: &str = "(The user sent this while you worked. Take it into account, then finish the task and give the \
                       whole final answer.)";

/// To an agent that has not heard of the task.
pub fn with_feedback(task: &str, call: &StepCall) -> String {
    match &call.feedback {
        Some(why) => format!("{task}\n\nAn earlier try was not accepted: {why}"),
        None => task.to_string(),
    }
}

/// To an agent that knows the task. `turn` is the last one in which it has worked on it.
pub fn go_on(turn: &TurnRecord, is_last: bool, task: &str, call: &StepCall, news: &[Message]) -> String {
    let words = match (&call.feedback, turn.state) {
        (None, TurnState::Done) if !news.is_empty() => message(news),
        (Some(why), TurnState::Done) => {
            format!("Your answer was not accepted: {why}\nPut that right and give the whole answer again.")
        }
        (Some(why), _) => format!(
            "You were interrupted before you had finished. An earlier answer was not accepted: {why}\n{GO_ON}"
        ),
        (None, _) => format!("You were interrupted before you had finished. {GO_ON}"),
    };
    let told = call.feedback.is_none() && turn.state == TurnState::Done;
    let words = if told { words } else { with_messages(words, news) };
    if is_last {
        return words;
    }
    format!("Back to the earlier task that begins with `{}`. {words}", excerpt(task))
}

/// To an agent that has not heard of the task, which people have added to.
pub fn with_messages(task: String, messages: &[Message]) -> String {
    if messages.is_empty() {
        return task;
    }
    format!("{task}\n\nThe user has added:\n{}", texts(messages))
}

/// To an agent that is at work, or has just answered.
pub fn message(messages: &[Message]) -> String {
    format!("{}\n\n{TAKE_IN}", texts(messages))
}

fn texts(messages: &[Message]) -> String {
    messages.iter().map(|message| message.text.trim()).collect::<Vec<_>>().join("\n\n")
}

/// What a session's turns `from..to` had been asked and had answered; empty if nobody had heard of them.
pub fn told_of(store: &Store, record: &Record, from: usize, to: usize) -> String {
    let to = to.min(record.turns.len());
    let mut told = String::new();
    for at in to.saturating_sub(TOLD_TURNS).max(from)..to {
        if !record.turns[at].was_heard() {
            continue;
        }
        let Some(turn) = store.load_turn(&record.id, at + 1) else { continue };
        let text = |name: &str| match &turn[name] {
            Value::Null => String::new(),
            Value::String(text) => shortened(text),
            other => shortened(&other.to_string()),
        };
        let answer = if turn["answer"].is_null() { text("text") } else { text("answer") };
        told.push_str(&format!("{ASKED}{}\n## Answered\n{answer}\n\n", text("prompt")));
    }
    told
}

/// What a session has heard, for an agent that is given the same task below: it is told once.
pub fn without_task(told: &str, task: &str) -> String {
    told.replace(&format!("{ASKED}{}\n", shortened(task)), &format!("{ASKED}The task below.\n"))
}

/// What was known in the sessions that this one comes from, the oldest first.
pub fn told_before(store: &Store, parent: Option<&Parent>) -> String {
    let (mut told, mut at) = (String::new(), parent.cloned());
    for _ in 0..TOLD_PARENTS {
        let Some(parent) = at else { break };
        let Ok(record) = store.load(&parent.session) else { break };
        told.insert_str(0, &told_of(store, &record, 0, parent.turns));
        at = record.parent;
    }
    told
}

/// The task, after what was said elsewhere.
pub fn after(told: &str, task: &str) -> String {
    if told.is_empty() {
        return task.to_string();
    }
    format!("This work goes on from another conversation. What is known of it:\n\n{told}# Now\n{task}")
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(TOLD_CHARS).collect();
    if short.len() < text.len() {
        short.push_str(" […]");
    }
    short
}
