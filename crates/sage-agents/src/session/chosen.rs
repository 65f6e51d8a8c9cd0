//! The session that an attempt works in: begun, told of, settled.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sage_core::handoff::{BrokenSession, Handoff};
use sage_core::port::{Continuity, StepCall, StepOutcome, Usage};
use sage_core::role::Role;
use serde_json::{Value, json};

use super::choose::{miss, new_id};
use super::record::{Record, TurnRecord, TurnState};
use super::store::{SessionLock, Store, now_ms};
use crate::agent::{Conversation, News, OnNews, Order, Turn};
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// Turns that a new conversation is told of, and how much of each answer.
const TOLD_TURNS: usize = 5;
const TOLD_CHARS: usize = 4_000;

/// A session with the right to use it.
#[derive(Debug)]
pub struct Opened {
    store: Store,
    pub record: Record,
    _lock: SessionLock,
    call: Work,
}

/// The work that the turn is for.
#[derive(Clone, Debug)]
struct Work {
    run: String,
    step: String,
    key: String,
    attempt: u32,
}

impl Opened {
    pub fn new(store: Store, record: Record, lock: SessionLock, call: &StepCall) -> Opened {
        let (run, step, key) = (call.run.clone(), call.path.clone(), call.key.clone());
        Opened { store, record, _lock: lock, call: Work { run, step, key, attempt: call.attempt } }
    }

    /// The answer of the last turn.
    pub fn kept_answer(&self) -> Option<Value> {
        let turn = self.store.load_turn(&self.record.id, self.record.turns.len())?;
        turn.get("answer").cloned()
    }

    /// The conversation cannot go on; the session does, in another one. What is known of it is handed over.
    pub fn forget(&mut self, task: &str, why: &str) {
        self.hand_over(task, why);
        self.record.conversation = None;
        self.record.parent = None;
        self.record.counters = None;
        self.record.context_tokens = None;
        self.record.reloads += 1;
    }
}

impl Opened {
    /// For people and for whoever takes the work over: `handoff.json` beside the record.
    fn hand_over(&self, task: &str, why: &str) {
        let last = self.store.load_turn(&self.record.id, self.record.turns.len()).unwrap_or_default();
        let said = match &last["answer"] {
            Value::Null => last["text"].as_str().unwrap_or_default().to_string(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let broken = BrokenSession {
            role: self.record.role.as_deref().and_then(|role| Role::parse(role).ok()),
            session: &self.record.id,
            feature: last["feature"].as_str().unwrap_or_default(),
            step: &self.call.step,
            prompt: task,
            partial: &said,
            files: &[],
            why,
        };
        let (id, at) = (ulid::Ulid::generate().to_string(), sage_core::wire::rfc3339(now_ms()));
        // A convenience: the new conversation is told all of it anyway.
        let _ = self.store.save_handoff(&self.record.id, &Handoff::from_session(&broken, &id, &at));
    }
}

/// What a conversation that cannot go on had been asked and had answered, before the task.
pub fn earlier(opened: &Opened, task: &str) -> String {
    let count = opened.record.turns.len();
    let mut told = String::new();
    for number in count.saturating_sub(TOLD_TURNS) + 1..=count {
        let Some(turn) = opened.store.load_turn(&opened.record.id, number) else { continue };
        let text = |name: &str| match &turn[name] {
            Value::Null => String::new(),
            Value::String(text) => shortened(text),
            other => shortened(&other.to_string()),
        };
        let answer = if turn["answer"].is_null() { text("text") } else { text("answer") };
        told.push_str(&format!("## Asked\n{}\n## Answered\n{answer}\n\n", text("prompt")));
    }
    if told.is_empty() {
        return task.to_string();
    }
    format!(
        "This work goes on from an earlier conversation that is gone. What is known of it:\n\n{told}# Now\n{task}"
    )
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(TOLD_CHARS).collect();
    if short.len() < text.len() {
        short.push_str(" […]");
    }
    short
}

#[derive(Debug)]
pub struct Chosen {
    opened: Option<Arc<Mutex<Opened>>>,
    id: String,
    prompt: String,
    conversation: Conversation,
    continuity: Continuity,
    kept: Option<(Value, Usage)>,
}

impl Chosen {
    pub fn without(prompt: String, conversation: Conversation, continuity: Continuity) -> Chosen {
        Chosen { opened: None, id: String::new(), prompt, conversation, continuity, kept: None }
    }

    pub fn new(opened: Opened, prompt: String, conversation: Conversation, continuity: Continuity) -> Chosen {
        let id = opened.record.id.clone();
        let opened = Some(Arc::new(Mutex::new(opened)));
        Chosen { opened, id, prompt, conversation, continuity, kept: None }
    }

    pub fn kept_answer(opened: Opened, answer: Value, usage: Usage) -> Chosen {
        let conversation = Conversation::New { id: String::new() };
        let mut chosen = Chosen::new(opened, String::new(), conversation, Continuity::Resumed);
        chosen.kept = Some((answer, usage));
        chosen
    }

    /// The answer that an earlier call of this work got, if nobody but us knows it.
    pub fn kept(&self) -> Option<StepOutcome> {
        let (result, usage) = self.kept.clone()?;
        Some(StepOutcome::Succeeded { result, usage })
    }

    /// Empty where there is no session.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    pub fn continuity(&self) -> Continuity {
        self.continuity
    }

    pub fn dir(&self) -> Option<PathBuf> {
        let opened = self.opened()?;
        Some(opened.store.path(&opened.record.id))
    }

    fn opened(&self) -> Option<MutexGuard<'_, Opened>> {
        Some(self.opened.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Durable enough for a kill -9 before the agent starts: from here on the work can be found again.
    pub fn begin(&mut self, attempt: &Attempt<'_>, order: &Order) -> Result<(), Miss> {
        let Some(mut opened) = self.opened() else { return Ok(()) };
        let Work { run, step, key, attempt: number } = opened.call.clone();
        let started_ms = now_ms();
        opened.record.updated_ms = started_ms;
        opened.record.turns.push(TurnRecord {
            run,
            step,
            key,
            attempt: number,
            state: TurnState::Open,
            heard: false,
            started_ms,
            ended_ms: None,
            usage: Usage::default(),
            class: None,
            message: None,
        });
        let turn = json!({"prompt": order.prompt, "feature": attempt.call.feature});
        let number = opened.record.turns.len();
        opened.store.save_turn(&opened.record.id, number, &turn).map_err(miss)?;
        opened.store.save(&opened.record, false).map_err(miss)
    }

    /// Writes down what must survive a kill: the conversation's id, and that the agent works.
    pub fn on_news(&self) -> OnNews {
        let opened = self.opened.clone();
        Box::new(move |news| {
            let Some(opened) = &opened else { return };
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            match news {
                News::Conversation(id) => opened.record.conversation = Some(id.to_string()),
                News::Working => {
                    opened.record.turns.iter_mut().last().into_iter().for_each(|t| t.heard = true)
                }
            }
            // Without it the work would only be asked for again.
            let _ = opened.store.save(&opened.record, false);
        })
    }

    /// The agent does not know its conversation: once more, in a new one. False if that has happened already.
    pub fn start_over(&mut self, task: &str) -> bool {
        if matches!(self.conversation, Conversation::New { .. }) {
            return false;
        }
        let Some(mut opened) = self.opened() else { return false };
        opened.record.turns.pop();
        let prompt = earlier(&opened, task);
        opened.forget(task, "the agent does not know its conversation");
        drop(opened);
        self.prompt = prompt;
        self.conversation = Conversation::New { id: new_id() };
        self.continuity = Continuity::Reloaded;
        true
    }

    /// Keeps what came of the turn. The answer is on disk before anybody hears of it.
    pub fn settle(&mut self, turn: &Turn, text: &str) {
        let Some(mut opened) = self.opened() else { return };
        let now = now_ms();
        let (id, number) = (opened.record.id.clone(), opened.record.turns.len());
        let mut kept = opened.store.load_turn(&id, number).unwrap_or_else(|| json!({}));
        match &turn.answer {
            Ok(answer) => kept["answer"] = answer.clone(),
            Err(_) => kept["text"] = text.into(),
        }
        let saved = opened.store.save_turn(&id, number, &kept);
        let record = &mut opened.record;
        record.updated_ms = now;
        record.usage.add(&turn.usage);
        record.counters = turn.counters.clone().or(record.counters.take());
        record.context_tokens = turn.context_tokens.or(record.context_tokens);
        if let Some(last) = record.turns.last_mut() {
            last.ended_ms = Some(now);
            last.usage = turn.usage.clone();
            match &turn.answer {
                Ok(_) => last.state = TurnState::Done,
                Err(Miss::Stopped) => last.state = TurnState::Stopped,
                Err(Miss::Failed { class, message, .. }) => {
                    last.state = TurnState::Failed;
                    last.class = Some(*class);
                    last.message = Some(message.clone());
                }
            }
        }
        // A session that cannot be saved costs a reload some day; the turn's result is not lost by it.
        if saved.is_ok() {
            let _ = opened.store.save(&opened.record, true);
        }
    }
}
