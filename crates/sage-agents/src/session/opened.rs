//! A session with the right to use it, and how it goes on without its conversation.

use sage_core::handoff::{BrokenSession, Handoff};
use sage_core::port::{Continuity, StepCall};
use sage_core::role::Role;
use serde_json::Value;

use super::choose::new_id;
use super::rebuild::annotate;
use super::record::{Parent, Record};
use super::store::{SessionLock, Store, now_ms};
use super::words::{after, told_before, told_of, without_task};
use crate::agent::Conversation;

#[derive(Debug)]
pub struct Opened {
    pub(super) store: Store,
    pub record: Record,
    _lock: SessionLock,
    pub(super) call: Work,
}

/// The work that the turn is for.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub run: String,
    pub step: String,
    pub key: String,
    pub attempt: u32,
}

impl Opened {
    pub fn new(store: Store, record: Record, lock: SessionLock, call: &StepCall) -> Opened {
        let (run, step, key) = (call.run.clone(), call.path.clone(), call.key.clone());
        Opened { store, record, _lock: lock, call: Work { run, step, key, attempt: call.attempt } }
    }

    /// A plan for this work was approved in the conversation of now.
    pub fn has_plan(&self) -> bool {
        let Work { run, step, key, .. } = &self.call;
        let turns = self.record.turns.iter().skip(self.record.begun_at);
        turns
            .filter(|turn| turn.planned)
            .any(|turn| turn.run == *run && turn.step == *step && turn.key == *key)
    }

    /// The answer of a turn, counted from 0.
    pub fn answer(&self, at: usize) -> Option<Value> {
        self.store.load_turn(&self.record.id, at + 1)?.get("answer").cloned()
    }

    /// The file of the turn under way learns what the session has just learnt.
    pub fn annotate_turn(&self) {
        let number = self.record.turns.len();
        if let Some(mut turn) = self.store.load_turn(&self.record.id, number) {
            annotate(&mut turn, &self.record);
            // Without it, a torn record costs a reload.
            let _ = self.store.save_turn(&self.record.id, number, &turn, false);
        }
    }

    /// The session goes on in another conversation: a fork that nobody has heard of is made once more, and where
    /// something was heard, it is told again.
    pub fn start(&mut self, task: &str, spoiled: bool, why: &str) -> (String, Conversation, Continuity) {
        let count = self.record.turns.len();
        let heard = self.record.turns.iter().skip(self.record.begun_at).any(|turn| turn.was_heard());
        let id = new_id();
        let parent = self.record.parent.clone();
        if let Some(parent) = parent.filter(|parent| !heard && !spoiled && self.can_fork(parent)) {
            self.record.conversation = None;
            let counters = self.record.counters.clone();
            let fork = Conversation::Fork { of: parent.conversation, id, counters };
            return (task.to_string(), fork, Continuity::Forked);
        }
        if let Some(beside) = &mut self.record.beside {
            beside.turns = 0;
        }
        let parents = told_before(&self.store, self.record.parent.as_ref());
        let own = without_task(&told_of(&self.store, &self.record, 0, count), task);
        let told = parents + &self.news_beside() + &own;
        if !told.is_empty() {
            self.hand_over(task, why);
            self.record.reloads += 1;
        }
        self.leave();
        let continuity = if told.is_empty() { Continuity::New } else { Continuity::Reloaded };
        (after(&told, task), Conversation::New { id }, continuity)
    }

    /// A conversation that has gone on since would tell more than was known then.
    fn can_fork(&self, parent: &Parent) -> bool {
        let moved_on = || {
            self.store.load(&parent.session).is_ok_and(|record| {
                record.turns.len() > parent.turns
                    || record.conversation.as_ref() != Some(&parent.conversation)
            })
        };
        let told = parent.conversation.is_empty() || (parent.exact && moved_on());
        !told
    }

    /// The next turn begins a conversation that knows nothing of the one before.
    pub fn leave(&mut self) {
        let record = &mut self.record;
        record.begun_at = record.turns.len();
        (record.conversation, record.proposed, record.parent) = (None, None, None);
        (record.counters, record.context_tokens) = (None, None);
    }

    /// What the session of another agent that this one stands in for has heard since it was last told.
    pub fn news_beside(&mut self) -> String {
        let Some(beside) = &mut self.record.beside else { return String::new() };
        let Ok(record) = self.store.load(&beside.session) else { return String::new() };
        let from = std::mem::replace(&mut beside.turns, record.turns.len());
        let before = if from == 0 { told_before(&self.store, record.parent.as_ref()) } else { String::new() };
        before + &told_of(&self.store, &record, from, record.turns.len())
    }

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
