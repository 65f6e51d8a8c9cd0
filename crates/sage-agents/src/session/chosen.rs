//! The session that an attempt works in: begun, told of, settled.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sage_core::port::{Continuity, Message, StepOutcome, Usage};
use serde_json::{Value, json};

use super::choose::miss;
use super::opened::{Opened, Work};
use super::rebuild::annotate;
use super::record::{TurnRecord, TurnState};
use super::store::now_ms;
use super::words::message;
use crate::agent::{Conversation, News, OnNews, Order, Turn};
use crate::attempt::Attempt;
use crate::outcome::Miss;

#[derive(Debug)]
pub struct Chosen {
    opened: Option<Arc<Mutex<Opened>>>,
    id: String,
    /// The whole task, for a conversation that knows nothing.
    task: String,
    prompt: String,
    conversation: Conversation,
    continuity: Continuity,
    kept: Option<Value>,
    /// The agent knows the task, and is only asked to go on with it.
    goes_on: bool,
    /// Messages of people that are in the prompt, and those that are in the whole task.
    carried: Vec<Message>,
    added: Vec<Message>,
}

impl Chosen {
    pub fn without(prompt: String, conversation: Conversation, continuity: Continuity) -> Chosen {
        let task = prompt.clone();
        let (id, goes_on, carried, added) = (String::new(), false, Vec::new(), Vec::new());
        Chosen {
            opened: None,
            id,
            task,
            prompt,
            conversation,
            continuity,
            kept: None,
            goes_on,
            carried,
            added,
        }
    }

    pub fn new(
        opened: Opened,
        task: &str,
        prompt: String,
        conversation: Conversation,
        continuity: Continuity,
    ) -> Chosen {
        let (id, task) = (opened.record.id.clone(), task.to_string());
        let opened = Some(Arc::new(Mutex::new(opened)));
        let (goes_on, carried, added) = (false, Vec::new(), Vec::new());
        Chosen { opened, id, task, prompt, conversation, continuity, kept: None, goes_on, carried, added }
    }

    /// The prompt has the messages `carried` in it, the whole task those that are `added` to it.
    #[must_use]
    pub fn with_messages(mut self, carried: &[Message], added: &[Message]) -> Chosen {
        (self.carried, self.added) = (carried.to_vec(), added.to_vec());
        self
    }

    pub fn carried(&self) -> &[Message] {
        &self.carried
    }

    /// The agent has answered, and people have said something since: the next turn tells it. False if there is
    /// nothing to tell, or no way to.
    pub fn goes_on_with(&mut self, messages: Vec<Message>) -> bool {
        let Some(opened) = self.opened().filter(|_| !messages.is_empty()) else { return false };
        let (id, counters) = (opened.record.conversation.clone(), opened.record.counters.clone());
        drop(opened);
        let Some(id) = id else { return false };
        self.prompt = message(&messages);
        self.conversation = Conversation::Resume { id, counters };
        (self.continuity, self.carried) = (Continuity::Resumed, messages);
        true
    }

    pub fn kept_answer(opened: Opened, answer: Value) -> Chosen {
        let conversation = Conversation::New { id: String::new() };
        let mut chosen = Chosen::new(opened, "", String::new(), conversation, Continuity::Resumed);
        chosen.kept = Some(answer);
        chosen
    }

    #[must_use]
    pub fn going_on(self, goes_on: bool) -> Chosen {
        Chosen { goes_on, ..self }
    }

    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// The answer that an earlier call of this work got, if that is what is wanted. Nothing is used for it.
    pub fn kept(&self) -> Option<StepOutcome> {
        Some(StepOutcome::Succeeded { result: self.kept.clone()?, usage: Usage::none() })
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

    /// A person has approved a plan for this work, and the conversation knows it.
    pub fn has_plan(&self) -> bool {
        let goes_on = matches!(self.conversation, Conversation::Resume { .. });
        goes_on && self.opened().is_some_and(|opened| opened.has_plan())
    }

    pub fn dir(&self) -> Option<PathBuf> {
        let opened = self.opened()?;
        Some(opened.store.path(&opened.record.id))
    }

    fn opened(&self) -> Option<MutexGuard<'_, Opened>> {
        Some(self.opened.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Durable enough for a kill -9 before the agent starts: from here on the work can be found again.
    /// `proposes` an id: the agent takes the order's for a new conversation.
    pub fn begin(&mut self, attempt: &Attempt<'_>, order: &Order, proposes: bool) -> Result<(), Miss> {
        let Some(mut opened) = self.opened() else { return Ok(()) };
        let Work { run, step, key, attempt: number } = opened.call.clone();
        let started_ms = now_ms();
        opened.record.updated_ms = started_ms;
        opened.record.cwd = Some(order.cwd.clone());
        if proposes && let Conversation::New { id } | Conversation::Fork { id, .. } = &order.conversation {
            opened.record.proposed = Some(id.clone());
        }
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
            spoiled: false,
            planned: false,
            messages: Vec::new(),
        });
        let mut turn = json!({"prompt": order.prompt, "feature": attempt.call.feature});
        annotate(&mut turn, &opened.record);
        let number = opened.record.turns.len();
        opened.store.save_turn(&opened.record.id, number, &turn, false).map_err(miss)?;
        opened.store.save(&opened.record, false).map_err(miss)
    }

    /// Writes down what must survive a kill: the conversation's id, and that the agent works.
    pub fn on_news(&self) -> OnNews {
        let opened = self.opened.clone();
        Box::new(move |news| {
            let Some(opened) = &opened else { return };
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            match news {
                News::Conversation(id) => {
                    opened.record.conversation = Some(id.to_string());
                    opened.record.proposed = None;
                    opened.annotate_turn();
                }
                News::Working => {
                    opened.record.turns.iter_mut().last().into_iter().for_each(|t| t.heard = true)
                }
                News::Planned => {
                    opened.record.turns.iter_mut().last().into_iter().for_each(|t| t.planned = true)
                }
                News::Heard(message) => {
                    let last = opened.record.turns.last_mut();
                    last.into_iter().for_each(|turn| turn.messages.push(message.id.clone()));
                }
            }
            // Without it the work would only be asked for again.
            let _ = opened.store.save(&opened.record, false);
        })
    }

    /// The agent does not know its conversation: once more, in another one. False if that was a new one already.
    pub fn start_over(&mut self) -> bool {
        if matches!(self.conversation, Conversation::New { .. }) {
            return false;
        }
        let is_fork = matches!(self.conversation, Conversation::Fork { .. });
        let Some(mut opened) = self.opened() else { return false };
        opened.record.turns.pop();
        let why = "the agent does not know its conversation";
        let (prompt, conversation, continuity) = opened.start(&self.task, is_fork, why);
        drop(opened);
        (self.prompt, self.conversation, self.continuity) = (prompt, conversation, continuity);
        self.goes_on = false;
        self.carried = self.added.clone();
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
        let record = &mut opened.record;
        record.updated_ms = now;
        record.usage.add(&turn.usage);
        record.counters = turn.counters.clone().or(record.counters.take());
        record.context_tokens = turn.context_tokens.or(record.context_tokens);
        if let Some(last) = record.turns.last_mut() {
            last.ended_ms = Some(now);
            last.usage = turn.usage.clone();
            last.spoiled = turn.spoiled;
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
        annotate(&mut kept, record);
        let saved = opened.store.save_turn(&id, number, &kept, true);
        // A session that cannot be saved costs a reload some day; the turn's result is not lost by it.
        if saved.is_ok() {
            let _ = opened.store.save(&opened.record, true);
        }
    }
}
