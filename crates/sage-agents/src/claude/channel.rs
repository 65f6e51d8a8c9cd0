//! What is said to the program: user messages, answers to its questions, requests of ours. One JSON line each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sage_core::port::{Message, Permission};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::session::{message_text, new_id};
use crate::talk::Mouth;

/// Names of our requests: their answers carry them.
pub const SERVERS: &str = "sage-servers";
const INTERRUPT: &str = "sage-interrupt";
const HOLD: &str = "sage-hold";

#[derive(Debug)]
pub struct Channel {
    /// Gone when everything is said: then the program's input ends.
    mouth: Mutex<Option<Mouth>>,
    /// It works on what it was told; before that there is nothing to interrupt.
    working: AtomicBool,
    /// It was interrupted only to be told to go on.
    nudging: AtomicBool,
    /// The prompt is said: what people add comes after it.
    begun: watch::Sender<bool>,
    over: watch::Sender<bool>,
    /// Messages of people that it has not begun with, by the id that it tells them by.
    queued: Mutex<BTreeMap<String, Message>>,
}

impl Channel {
    pub fn new(mouth: Mouth) -> Channel {
        Channel {
            mouth: Mutex::new(Some(mouth)),
            working: AtomicBool::new(false),
            nudging: AtomicBool::new(false),
            begun: watch::Sender::new(false),
            over: watch::Sender::new(false),
            queued: Mutex::default(),
        }
    }

    /// The order's prompt.
    pub fn prompt(&self, content: Value) {
        self.content(content);
        self.begun.send_replace(true);
    }

    /// Resolves once the prompt is said.
    pub async fn begun(&self) {
        // The sender is ours: it cannot be gone.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// A person's message: the program puts it in at the next tool, or begins another turn with it. Gives it back if
    /// nothing can be said any more.
    pub fn message(&self, message: Message) -> Result<(), Message> {
        let mouth = self.mouth();
        let Some(mouth) = &*mouth else { return Err(message) };
        let (id, text) = (new_id(), message_text(std::slice::from_ref(&message)));
        self.queued().insert(id.clone(), message);
        let line = json!({"type": "user", "uuid": id, "message": {"role": "user", "content": text}});
        mouth.say(line.to_string());
        Ok(())
    }

    /// It has begun with a message.
    pub fn took(&self, id: &str) -> Option<Message> {
        self.queued().remove(id)
    }

    /// Another turn follows: it has not begun with all that was said.
    pub fn has_queued(&self) -> bool {
        !self.queued().is_empty()
    }

    fn queued(&self) -> MutexGuard<'_, BTreeMap<String, Message>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn user(&self, text: &str) {
        self.content(text.into());
    }

    /// Text, or blocks of it.
    pub fn content(&self, content: Value) {
        self.say(&json!({"type": "user", "message": {"role": "user", "content": content}}));
    }

    /// Ends the turn at once, with a result that tells what was used.
    pub fn interrupt(&self) {
        self.request(INTERRUPT, "interrupt");
    }

    pub fn ask_for_servers(&self) {
        self.request(SERVERS, "mcp_status");
    }

    fn request(&self, id: &str, subtype: &str) {
        self.say(&json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}}));
    }

    /// Answers the question `id` about a tool that would be used with `input`.
    pub fn permit(&self, id: &str, permission: Permission, input: Value) {
        let response = match permission {
            Permission::Allow { input: changed } => {
                json!({"behavior": "allow", "updatedInput": changed.unwrap_or(input)})
            }
            Permission::Deny { message } => json!({"behavior": "deny", "message": message}),
        };
        self.respond(json!({"subtype": "success", "request_id": id, "response": response}));
    }

    /// From now on the program asks before each use of a tool, also of one that is allowed: `Event::Holds`.
    pub fn hold_tools(&self) {
        let hooks = json!({"PreToolUse": [{"hookCallbackIds": [HOLD]}]});
        let request = json!({"subtype": "initialize", "hooks": hooks});
        self.say(&json!({"type": "control_request", "request_id": HOLD, "request": request}));
    }

    /// The tool that `id` is about may be used, as far as this is concerned: permission is asked for separately.
    pub fn pass(&self, id: &str) {
        self.respond(json!({"subtype": "success", "request_id": id, "response": {}}));
    }

    /// A question that nobody here understands gets an answer, too: it must not hang.
    pub fn refuse(&self, id: &str) {
        self.respond(json!({"subtype": "error", "request_id": id, "error": "not supported"}));
    }

    fn respond(&self, response: Value) {
        self.say(&json!({"type": "control_response", "response": response}));
    }

    /// Nothing more is said, and the program ends by itself.
    pub fn close(&self) {
        *self.mouth() = None;
        self.over.send_replace(true);
    }

    pub fn is_closed(&self) -> bool {
        *self.over.borrow()
    }

    pub async fn closed(&self) {
        // The sender is ours: it cannot be gone.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    pub fn set_working(&self) {
        self.working.store(true, Ordering::SeqCst);
    }

    pub fn is_working(&self) -> bool {
        self.working.load(Ordering::SeqCst)
    }

    /// A hanging request does not hear what is said: it is broken off, and the turn goes on after that.
    pub fn nudge(&self) {
        if self.is_working() && !self.nudging.swap(true, Ordering::SeqCst) {
            self.interrupt();
        }
    }

    /// Whether the turn was broken off by a reminder; asked once.
    pub fn take_nudge(&self) -> bool {
        self.nudging.swap(false, Ordering::SeqCst)
    }

    fn say(&self, line: &Value) {
        if let Some(mouth) = &*self.mouth() {
            mouth.say(line.to_string());
        }
    }

    fn mouth(&self) -> MutexGuard<'_, Option<Mouth>> {
        self.mouth.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
