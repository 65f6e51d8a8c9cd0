//! What an adapter tells while its agent works. Everything here returns at once.
//!
//! The readable side of it is the attempt's activity: what the agent said, which tools it used, what came of them.
//! The raw events are in `stdout.log`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sage_core::port::{
    Allowance, AskKind, BoxFuture, Message, Permission, PermissionAsk, Progress, QuotaSignal, Stage, StepCx,
    Usage,
};
use sage_core::price::PriceTable;
use sage_core::secret::Redactor;
use serde_json::Value;

use super::asks::kind;
use crate::activity::{Prompt, What, Writer, main_argument, outcome_line};

/// Most text of a turn that is kept as partial work.
const TEXT_BYTES: usize = 1024 * 1024;
/// Tool calls without a result that are remembered; no agent has that many at once.
const OPEN_TOOLS: usize = 1_000;
/// How often the activity says what was used; the last figure is always there.
const USAGE_EVERY: Duration = Duration::from_secs(10);

/// What a session must know to survive a kill.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// The agent's own id of the conversation.
    Conversation(&'a str),
    /// The agent has begun to work on what it was asked.
    Working,
    /// A person has approved its plan.
    Planned,
    /// The agent was given this message of a person.
    Heard(&'a Message),
}

pub type OnNews = Box<dyn Fn(News<'_>) + Send + Sync>;

pub struct Feed {
    cx: StepCx,
    redactor: Redactor,
    on_news: OnNews,
    /// What earlier turns of the attempt have used.
    before: Usage,
    said: Mutex<Said>,
}

struct Said {
    text: String,
    activity: Writer,
    /// Names of the tools that are in use, by the id of the call.
    tools: BTreeMap<String, String>,
    usage: Told,
    conversation: Option<String>,
    working: bool,
}

/// What was used, and what of it the activity says.
#[derive(Default)]
struct Told {
    written: Option<(Instant, What)>,
    newest: Option<What>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Feed {
    pub fn new(cx: &StepCx, redactor: &Redactor, on_news: OnNews) -> Feed {
        let said = Said {
            text: String::new(),
            activity: Writer::open(&cx.scratch),
            tools: BTreeMap::new(),
            usage: Told::default(),
            conversation: None,
            working: false,
        };
        let before = Usage::default();
        Feed { cx: cx.clone(), redactor: redactor.clone(), on_news, before, said: Mutex::new(said) }
    }

    /// Of an attempt that has used so much in earlier turns.
    #[must_use]
    pub fn after(mut self, before: &Usage) -> Feed {
        self.before = before.clone();
        if !before.is_empty() {
            self.said().usage.written = Some((Instant::now(), used(before)));
        }
        self
    }

    /// The agent's own id of this conversation, as soon as it is known. From here on it can be resumed.
    pub fn conversation(&self, id: &str) {
        let mut said = self.said();
        if said.conversation.as_deref() != Some(id) {
            said.conversation = Some(id.to_string());
            (self.on_news)(News::Conversation(id));
        }
    }

    /// What the agent is asked, as it is sent.
    pub fn sent(&self, system: Option<&str>, prompt: &str) {
        let text = |text: &str| self.redactor.text(text).into_owned();
        Prompt { system: system.map(text), prompt: text(prompt) }.write(&self.cx.scratch);
    }

    pub fn text(&self, text: &str) {
        let text = &*self.redactor.text(text);
        let mut said = self.working();
        if said.text.len() + text.len() < TEXT_BYTES {
            if !said.text.is_empty() && !said.text.ends_with('\n') {
                said.text.push('\n');
            }
            said.text.push_str(text);
        }
        said.activity.write(What::Message { text: text.to_string() });
        drop(said);
        self.alive();
    }

    /// Something came of the prompt that is not shown yet.
    pub fn works(&self) {
        drop(self.working());
        self.alive();
    }

    /// A tool is used. `call` is the agent's own id of it, by which the result is told.
    pub fn tool(&self, call: &str, name: &str, input: &Value) {
        let (tool, mut input) = (self.redactor.text(name).into_owned(), input.clone());
        self.redactor.value(&mut input);
        let input = main_argument(&input, &self.cx.project);
        let mut said = self.working();
        if said.tools.len() >= OPEN_TOOLS {
            said.tools.pop_first();
        }
        said.tools.insert(call.to_string(), tool.clone());
        said.activity.write(What::Tool { tool, input });
        drop(said);
        self.alive();
    }

    /// What came of a tool that was used; of others nothing is shown.
    pub fn result(&self, call: &str, output: &str, failed: bool) {
        let mut said = self.said();
        if let Some(tool) = said.tools.remove(call) {
            let text = outcome_line(does(&tool), &self.redactor.text(output), failed);
            said.activity.write(What::Result { tool, text, failed });
        }
        drop(said);
        self.alive();
    }

    /// The agent is given a person's message.
    pub fn heard(&self, message: &Message) {
        let text = self.redactor.text(&message.text).into_owned();
        self.said().activity.write(What::Heard { text });
        (self.on_news)(News::Heard(message));
        self.alive();
    }

    /// Something worth a line, e.g. a retry of the agent's own.
    pub fn note(&self, text: &str) {
        let text = self.redactor.text(text).into_owned();
        self.said().activity.write(What::Note { text });
        self.alive();
    }

    pub fn alive(&self) {
        (self.cx.progress)(Progress::Alive);
    }

    /// All of this turn so far, not what is new.
    pub fn usage(&self, so_far: Usage, stage: Stage) {
        let so_far = self.with_before(&so_far);
        self.said().used(&so_far, stage);
        (self.cx.progress)(Progress::Usage(so_far, stage));
    }

    /// What the turn has used in the end: the activity says it, whatever was told before.
    pub fn spent(&self, usage: &Usage) {
        if !usage.is_empty() {
            self.said().used(&self.with_before(usage), Stage::Answering);
        }
    }

    fn with_before(&self, usage: &Usage) -> Usage {
        let mut all = self.before.clone();
        all.add(usage);
        all
    }

    /// What models cost, for an agent that does not say so itself.
    pub fn prices(&self) -> &PriceTable {
        &self.cx.prices
    }

    /// Resolves once the engine has taken in everything that was told before: then `stop` says whether to go on.
    pub fn caught_up(&self) -> BoxFuture<'static, ()> {
        self.cx.questions.caught_up()
    }

    pub fn quota(&self, signal: QuotaSignal) {
        (self.cx.progress)(Progress::Quota(signal));
    }

    /// How much of the account's allowance is used.
    pub fn allowance(&self, allowance: Allowance) {
        (self.cx.progress)(Progress::Allowance(allowance));
    }

    /// The attempt's clocks stand still until the answer is there.
    pub fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.note(&match &ask.inquiry {
            Some(inquiry) => format!("asks: {}", inquiry.title()),
            None => format!("asks for `{}`", ask.tool),
        });
        self.cx.questions.ask(ask)
    }

    /// Its plan is approved: whoever goes on with this work need not plan again.
    pub fn planned(&self) {
        (self.on_news)(News::Planned);
        self.note("its plan is approved");
    }

    /// All text so far.
    pub fn said_text(&self) -> String {
        self.said().text.clone()
    }

    /// Whether something came of the prompt.
    pub fn has_begun(&self) -> bool {
        self.said().working
    }

    /// Something came of the prompt.
    fn working(&self) -> MutexGuard<'_, Said> {
        let mut said = self.said();
        if !std::mem::replace(&mut said.working, true) {
            (self.on_news)(News::Working);
        }
        said
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// ACP may name the kind of work instead of a tool.
fn does(tool: &str) -> AskKind {
    match tool {
        "execute" => AskKind::Run,
        "read" | "search" => AskKind::Read,
        named => kind(named),
    }
}

fn used(usage: &Usage) -> What {
    let Usage { cost_usd, cost_estimated, .. } = *usage;
    What::Usage { tokens: usage.total(), cost_usd, cost_estimated }
}

impl Said {
    fn used(&mut self, usage: &Usage, stage: Stage) {
        self.usage.newest = Some(used(usage));
        let due = self.usage.written.as_ref().is_none_or(|(at, _)| at.elapsed() >= USAGE_EVERY);
        if due && stage != Stage::Answering {
            self.write_usage();
        }
    }

    fn write_usage(&mut self) {
        let written = self.usage.written.as_ref().map(|(_, what)| what);
        if let Some(used) = self.usage.newest.take().filter(|newest| Some(newest) != written) {
            self.usage.written = Some((Instant::now(), used.clone()));
            self.activity.write(used);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.said().write_usage();
    }
}
