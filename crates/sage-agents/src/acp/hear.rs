//! What the agent says and does while it works.
//!
//! Everything here returns at once: the protocol handles one message after the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, CreateElicitationRequest, PromptResponse, RequestPermissionRequest,
    SessionNotification, SessionUpdate,
};
use sage_core::port::{Permission, PermissionAsk, Stage, Usage};

use super::elicit::{self, Form};
use super::message::Messages;
use super::permit::{self, Decision};
use super::tool::{Call, Shown, Tools};
use super::usage::{self, Told};
use crate::agent::{Feed, Order, Reach};

/// What came of this turn's prompt.
#[derive(Debug, Default)]
pub struct Heard {
    session: Option<String>,
    /// The prompt is out. Whatever came before belongs to older turns: a session that is loaded tells them all.
    asked: bool,
    questions: u32,
    pub messages: Messages,
    pub tools: Tools,
    pub told: Told,
    /// What prompts before the last one have used.
    pub earlier: Usage,
    denied: Denied,
    /// Its plan has not been approved yet.
    planning: bool,
    /// It has been just now.
    planned: bool,
    /// Why its last plan was not, and it has not been told in words.
    refused_plan: Option<String>,
}

/// The last thing that was not allowed.
#[derive(Debug, Default)]
struct Denied {
    why: Option<String>,
    /// The agent has said something since.
    answered: bool,
}

impl Heard {
    pub fn is_planning(&self) -> bool {
        self.planning
    }

    /// What was not allowed last, and why.
    pub fn denied(&self) -> Option<&str> {
        self.denied.why.as_deref()
    }

    /// The last denial, if the agent has said nothing since: its last message is older and no answer.
    pub fn silent_since_denial(&self) -> Option<&str> {
        self.denied().filter(|_| !self.denied.answered)
    }

    pub fn deny(&mut self, tool: &str, why: &str) {
        self.denied = Denied { why: Some(format!("`{tool}` was not allowed: {why}")), answered: false };
    }

    /// A piece of a message; gives the text of the message that it ends.
    pub fn say(&mut self, id: Option<&str>, text: &str) -> Option<String> {
        self.denied.answered |= !text.trim().is_empty();
        self.messages.push(id, text)
    }
}

#[derive(Debug)]
pub struct Ears<'a> {
    feed: &'a Feed,
    order: &'a Order,
    pub reach: Reach,
    heard: Arc<Mutex<Heard>>,
}

impl<'a> Ears<'a> {
    pub fn new(feed: &'a Feed, order: &'a Order, reach: Reach) -> Ears<'a> {
        let heard = Heard { planning: order.plans, ..Heard::default() };
        Ears { feed, order, reach, heard: Arc::new(Mutex::new(heard)) }
    }

    pub fn heard(&self) -> MutexGuard<'_, Heard> {
        lock(&self.heard)
    }

    /// From here on it is this turn that is heard.
    pub fn ask_now(&self, session: &str) {
        let mut heard = self.heard();
        heard.session = Some(session.to_string());
        heard.asked = true;
    }

    /// The agent has answered, and is asked once more.
    pub fn answered(&self, response: &PromptResponse) {
        self.close();
        let mut heard = self.heard();
        let used = usage::of_turn(Some(response), &heard.told, heard.tools.used).tokens();
        heard.earlier.add(&used);
        heard.told.begin_again();
    }

    /// The turn is over: what is still unsaid is said.
    pub fn close(&self) {
        let said = self.heard().messages.pause();
        said.iter().for_each(|text| self.feed.text(text));
    }

    pub fn update(&self, notification: SessionNotification) {
        let mut heard = self.heard();
        if std::mem::take(&mut heard.planned) {
            self.feed.planned();
        }
        let other = heard.session.as_deref().is_some_and(|session| session != &*notification.session_id.0);
        if other {
            drop(heard);
            return self.feed.alive();
        }
        match notification.update {
            SessionUpdate::UsageUpdate(update) => {
                let asked = heard.asked;
                heard.told.update(&update, asked);
                let cost_usd = heard.told.cost_usd();
                drop(heard);
                if cost_usd.is_some() {
                    self.feed.usage(Usage { cost_usd, ..Usage::default() }, Stage::Answered);
                }
            }
            update if heard.asked => self.work(heard, update),
            _ => {}
        }
        self.feed.alive();
    }

    fn work(&self, mut heard: MutexGuard<'_, Heard>, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(heard, &chunk),
            SessionUpdate::AgentThoughtChunk(_) => {
                drop(heard);
                self.feed.works();
            }
            SessionUpdate::ToolCall(call) => {
                let said = heard.messages.pause();
                let shown = heard.tools.begin(call).show();
                drop(heard);
                self.show(said, shown);
            }
            SessionUpdate::ToolCallUpdate(update) => {
                // News of an old call may come while the agent speaks.
                let new = !heard.tools.knows(&update.tool_call_id.0);
                let said = if new { heard.messages.pause() } else { None };
                let shown = heard.tools.update(update).show();
                drop(heard);
                self.show(said, shown);
            }
            SessionUpdate::Notice(notice) => {
                drop(heard);
                self.feed.note(&notice.title);
            }
            _ => {}
        }
    }

    fn chunk(&self, mut heard: MutexGuard<'_, Heard>, chunk: &ContentChunk) {
        let ContentBlock::Text(text) = &chunk.content else { return };
        let id = chunk.message_id.as_ref().map(|id| id.0.as_ref());
        let said = heard.say(id, &text.text);
        let used = heard.told.piece(chunk);
        drop(heard);
        self.feed.works();
        used.into_iter().for_each(|used| self.feed.usage(used, Stage::Answered));
        self.show(said, Shown::default());
    }

    fn show(&self, said: Option<String>, Shown { call, begun, ended }: Shown) {
        said.iter().for_each(|text| self.feed.text(text));
        begun.iter().for_each(|(name, input)| self.feed.tool(&call, name, input));
        ended.iter().for_each(|(output, failed)| self.feed.result(&call, output, *failed));
    }

    /// Why its last plan was not approved; asked once.
    pub fn take_refused_plan(&self) -> Option<String> {
        self.heard().refused_plan.take()
    }

    /// A form that the agent wants filled in; `None` if nobody here can.
    pub fn inquired(&self, request: &CreateElicitationRequest) -> Option<(Form, PermissionAsk)> {
        let (form, inquiry) = elicit::read(request)?;
        let mut heard = self.heard();
        heard.questions += 1;
        let (said, id) = (heard.messages.pause(), format!("form-{}", heard.questions));
        drop(heard);
        self.show(said, Shown::default());
        self.feed.works();
        let input = serde_json::to_value(request).unwrap_or_default();
        Some((form, PermissionAsk::of_person(&id, "elicitation", input, inquiry)))
    }

    /// What a request for permission is about, and what follows from the role alone.
    pub fn asked(&self, request: &RequestPermissionRequest) -> (Call, Decision) {
        let mut heard = self.heard();
        heard.questions += 1;
        let said = heard.messages.pause();
        let call = heard.tools.update(request.tool_call.clone()).clone();
        let id = format!("{}-{}", call.id, heard.questions);
        let (has_prompt, planning) = (heard.asked, heard.planning);
        drop(heard);
        self.show(said, Shown::default());
        // Some agents ask before they announce the tool call: the prompt must not be sent again.
        if has_prompt {
            self.feed.works();
        }
        let decision = match permit::decide(&call, id.clone(), self.order, &self.reach) {
            // What the step opens would be open while it plans, too.
            Decision::Allow if planning && !call.only_looks() => Decision::Ask(call.ask(id)),
            decision => decision,
        };
        let decision = match decision {
            Decision::Ask(ask) => Decision::Ask(PermissionAsk { planning, ..ask }),
            decision => decision,
        };
        (call, decision)
    }

    /// Where a denial is noted, also after this turn's handlers are gone.
    pub fn ledger(&self) -> Ledger {
        Ledger(Arc::clone(&self.heard))
    }
}

/// Remembers why something was not allowed.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Mutex<Heard>>);

impl Ledger {
    /// A person has decided about its plan.
    pub fn plan(&self, permission: &Permission) {
        let mut heard = lock(&self.0);
        match permission {
            Permission::Allow { .. } => (heard.planning, heard.planned) = (false, true),
            Permission::Deny { message } => heard.refused_plan = Some(message.clone()),
        }
    }

    pub fn denied(&self, tool: &str, why: &str) {
        lock(&self.0).deny(tool, why);
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
