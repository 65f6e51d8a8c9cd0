//! Questions of a running agent: may I use this tool, which one do you want, is this plan right? A rule or a person
//! answers, never the adapter.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BoxFuture;
use crate::inquiry::Inquiry;
use crate::secret::Redactor;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionAsk {
    /// Unique in its attempt.
    pub id: String,
    /// The tool as the agent calls it.
    pub tool: String,
    pub input: Value,
    pub kind: AskKind,
    /// Files that it would touch, as the agent names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it wants to know or have approved; the tool is only its way to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Inquiry>,
    /// Its plan has not been approved yet: nothing may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planning: bool,
}

impl PermissionAsk {
    /// What only a person can answer.
    pub fn of_person(id: &str, tool: &str, input: Value, inquiry: Inquiry) -> PermissionAsk {
        let kind = match &inquiry {
            Inquiry::Questions(_) => AskKind::Question,
            Inquiry::Plan(_) => AskKind::Plan,
        };
        let (id, tool, inquiry) = (id.into(), tool.into(), Some(inquiry));
        PermissionAsk { id, tool, input, kind, paths: Vec::new(), command: None, inquiry, planning: false }
    }
}

/// What a tool does to the world, as far as its adapter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskKind {
    Read,
    Write,
    Run,
    Network,
    Other,
    /// It wants to know something.
    Question,
    /// It wants its plan approved.
    Plan,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Permission {
    /// `input` is there when a person has changed what the tool is given; for questions it is `inquiry::PersonAnswers`.
    Allow { input: Option<Value> },
    /// The message goes back to the agent.
    Deny { message: String },
}

pub trait Asks: Send + Sync {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission>;

    /// The same, of an attempt that works somewhere else than in the project.
    fn ask_in(&self, ask: PermissionAsk, _at: &Workplace) -> BoxFuture<'static, Permission> {
        self.ask(ask)
    }

    /// Resolves once the engine has taken in everything that the attempt reported before.
    fn caught_up(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Where an attempt works, if that is not the project.
#[derive(Clone, Debug, Default)]
pub struct Workplace {
    /// What takes the project's place.
    pub root: Option<Arc<Path>>,
    /// The directory in it that commands run in.
    pub cwd: Option<Arc<Path>>,
}

/// Where an attempt asks. Counts what is open: while somebody thinks, no time of the attempt is used up.
#[derive(Clone)]
pub struct Questions {
    asks: Arc<dyn Asks>,
    open: Arc<AtomicU32>,
    at: Workplace,
    redactor: Redactor,
}

impl Questions {
    pub fn new(asks: Arc<dyn Asks>) -> Questions {
        Questions { asks, open: Arc::default(), at: Workplace::default(), redactor: Redactor::default() }
    }

    /// Of an attempt that works somewhere else than in the project.
    pub fn within(mut self, root: &Path) -> Questions {
        self.at.root = Some(root.into());
        self
    }

    /// Of an agent whose commands run in this directory.
    #[must_use]
    pub fn in_directory(mut self, cwd: &Path) -> Questions {
        self.at.cwd = Some(cwd.into());
        self
    }

    /// Questions are kept: without the values of keys.
    #[must_use]
    pub fn redacting(self, redactor: &Redactor) -> Questions {
        Questions { redactor: redactor.clone(), ..self }
    }

    /// Open from this call on, not only from the first poll.
    pub fn ask(&self, mut ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.redactor.string(&mut ask.tool);
        self.redactor.value(&mut ask.input);
        let asked = ask.inquiry.as_mut().map(Inquiry::texts_mut).unwrap_or_default();
        let texts = ask.paths.iter_mut().chain(&mut ask.command).chain(asked);
        texts.for_each(|text| self.redactor.string(text));
        let (open, mut answer) = (Open(Arc::clone(&self.open)), self.asks.ask_in(ask, &self.at));
        Box::pin(std::future::poll_fn(move |cx| {
            // Closed when the answer is there, or when nobody waits for it any more.
            let _held = &open;
            answer.as_mut().poll(cx)
        }))
    }

    /// Resolves once the engine has taken in everything that the attempt reported before: what it makes of it, such
    /// as a stop at a budget, is known then.
    pub fn caught_up(&self) -> BoxFuture<'static, ()> {
        self.asks.caught_up()
    }

    pub fn open(&self) -> u32 {
        self.open.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").field("open", &self.open()).finish_non_exhaustive()
    }
}

impl Default for Questions {
    fn default() -> Questions {
        Questions::new(Arc::new(Nobody))
    }
}

struct Open(Arc<AtomicU32>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Nobody is there to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Asks for Nobody {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        let message = format!("`{}` is not allowed, and nobody is there to be asked", ask.tool);
        Box::pin(std::future::ready(Permission::Deny { message }))
    }
}
