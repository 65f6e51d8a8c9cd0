//! What an adapter tells while its agent works. Everything here returns at once.
//!
//! The readable side of it is `agent.log` in the attempt's scratch directory: what the agent said, which tools
//! it used. The raw events are in `stdout.log`.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sage_core::port::{
    Allowance, BoxFuture, Permission, PermissionAsk, Progress, QuotaSignal, Stage, StepCx, Usage,
};
use sage_core::price::PriceTable;
use sage_core::secret::Redactor;

/// Most text of a turn that is kept as partial work.
const TEXT_BYTES: usize = 1024 * 1024;
/// Most of a tool's input that the log shows.
const INPUT_CHARS: usize = 200;
/// The log is for people; nobody reads more.
const LOG_BYTES: usize = 16 * 1024 * 1024;

/// What a session must know to survive a kill.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// The agent's own id of the conversation.
    Conversation(&'a str),
    /// The agent has begun to work on what it was asked.
    Working,
}

pub type OnNews = Box<dyn Fn(News<'_>) + Send + Sync>;

pub struct Feed {
    cx: StepCx,
    redactor: Redactor,
    on_news: OnNews,
    said: Mutex<Said>,
}

struct Said {
    text: String,
    log: Option<File>,
    log_left: usize,
    conversation: Option<String>,
    working: bool,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Feed {
    pub fn new(cx: &StepCx, redactor: &Redactor, on_news: OnNews) -> Feed {
        let log = sage_fence::private::create(&cx.scratch.join("agent.log")).ok();
        let said = Said { text: String::new(), log, log_left: LOG_BYTES, conversation: None, working: false };
        Feed { cx: cx.clone(), redactor: redactor.clone(), on_news, said: Mutex::new(said) }
    }

    /// The agent's own id of this conversation, as soon as it is known. From here on it can be resumed.
    pub fn conversation(&self, id: &str) {
        let mut said = self.said();
        if said.conversation.as_deref() != Some(id) {
            said.conversation = Some(id.to_string());
            (self.on_news)(News::Conversation(id));
        }
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
        said.log(text);
        drop(said);
        self.alive();
    }

    /// Something came of the prompt that is not shown yet.
    pub fn works(&self) {
        drop(self.working());
        self.alive();
    }

    /// A tool is used: one line in the log.
    pub fn tool(&self, name: &str, input: &str) {
        let input = &*self.redactor.text(input);
        let mut short: String = input.chars().take(INPUT_CHARS).collect();
        if short.len() < input.len() {
            short.push('…');
        }
        let line = format!("> {name} {}", short.replace('\n', " "));
        self.working().log(&self.redactor.text(&line));
        self.alive();
    }

    /// Something worth a line in the log, e.g. a retry of the agent's own.
    pub fn note(&self, text: &str) {
        self.said().log(&self.redactor.text(&format!("# {text}")));
        self.alive();
    }

    pub fn alive(&self) {
        (self.cx.progress)(Progress::Alive);
    }

    /// All of this turn so far, not what is new.
    pub fn usage(&self, so_far: Usage, stage: Stage) {
        (self.cx.progress)(Progress::Usage(so_far, stage));
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
        self.note(&format!("asks for `{}`", ask.tool));
        self.cx.questions.ask(ask)
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

impl Said {
    /// The log is a convenience: without it the turn goes on.
    fn log(&mut self, line: &str) {
        let bytes = line.len() + 1;
        if bytes > self.log_left {
            self.log = None;
        }
        self.log_left = self.log_left.saturating_sub(bytes);
        if let Some(file) = &mut self.log
            && writeln!(file, "{line}").is_err()
        {
            self.log = None;
        }
    }
}
