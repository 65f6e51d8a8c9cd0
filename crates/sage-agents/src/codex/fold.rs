//! What all events of a turn so far amount to.
//!
//! An `error` is not the end: codex tells it before each try of its own. A refusal that every other agent of
//! the same account must hear of (a limit, a login) is not tried again behind sage's back: the fold says so and
//! the process is ended. The same holds for a request that would be rejected again, and for a network that is
//! gone, for which codex would wait for ever. A rate limit ends it only if codex's log says how long it would
//! wait (retry_log.rs); otherwise codex waits itself, because only codex knows what the endpoint asked for.

use std::path::{Path, PathBuf};

use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, Stage, Usage};
use serde_json::Value;

use super::event::{Event, Item, Numbered};
use super::retry_log::RetryLog;
use super::rollout::Rollout;
use super::trouble::complaint;
use super::usage::{Counts, since};
use crate::agent::Feed;
use crate::lines::Lines;
use crate::outcome::Miss;
use crate::told_time::Wall;

/// Far above any answer; a line holds at most one item.
const LINE_BYTES: usize = 16 * 1024 * 1024;
/// How codex begins to tell of a try of its own: `Reconnecting... 2/5 (why)`.
const RETRY: &str = "Reconnecting...";
/// Told again and again while there is no network; the first time may be a moment's.
const NETWORK_WAITS: u32 = 2;

pub struct Fold<'a> {
    feed: &'a Feed,
    /// The model that was asked for; the rollout tells which one answers.
    model: Option<String>,
    home: Option<PathBuf>,
    /// What the thread had counted before.
    before: Option<Usage>,
    lines: Lines,
    log: RetryLog,
    wall: Wall,
    pub rollout: Rollout,
    pub end: Option<End>,
    /// The last message of the agent.
    pub answer: Option<String>,
    /// The last `error`, which may have been the reason why codex ended.
    pub complaint: Option<String>,
    pub refusal: Option<Miss>,
    /// The model has answered something in this turn.
    pub answered: bool,
    network_waits: u32,
    told: Usage,
    stage: Stage,
}

/// The terminal event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Completed(Option<Counts>),
    Failed(String),
}

impl std::fmt::Debug for Fold<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fold").field("end", &self.end).field("answer", &self.answer).finish_non_exhaustive()
    }
}

impl<'a> Fold<'a> {
    pub fn new(
        feed: &'a Feed,
        home: Option<&Path>,
        before: Option<Usage>,
        model: Option<&str>,
        wall: Wall,
    ) -> Fold<'a> {
        Fold {
            feed,
            model: model.map(str::to_string),
            home: home.map(Path::to_path_buf),
            before,
            lines: Lines::new(LINE_BYTES),
            log: RetryLog::default(),
            wall,
            rollout: Rollout::nowhere(),
            end: None,
            answer: None,
            complaint: None,
            refusal: None,
            answered: false,
            network_waits: 0,
            told: Usage::default(),
            stage: Stage::Answering,
        }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        let (mut events, overlong) = (Vec::new(), self.lines.overlong);
        self.lines.push(chunk, &mut |line| events.extend(parse(line)));
        // A line that is too long may have been the answer: an older one must not be taken for it.
        self.answer = self.answer.take().filter(|_| self.lines.overlong == overlong);
        events.into_iter().for_each(|event| self.take(event));
    }

    /// What codex logs on its standard error.
    pub fn logged(&mut self, chunk: &[u8]) {
        if let Some(wait) = self.log.push(chunk)
            && let Miss::Failed { class: FailureClass::RateLimit, message, .. } = self.complains(&wait.why)
        {
            let refusal = Refusal { retry_after_ms: Some(wait.ms), reset_at_ms: None };
            let limited = Miss::of_endpoint(FailureClass::RateLimit, message, refusal);
            self.refusal = self.refusal.take().or(Some(limited));
        }
    }

    pub fn note(&self, text: &str) {
        self.feed.note(text);
    }

    pub fn sent(&self, system: Option<&str>, prompt: &str) {
        self.feed.sent(system, prompt);
    }

    /// The output is over.
    pub fn end(&mut self) {
        let mut events = Vec::new();
        self.lines.end(&mut |line| events.extend(parse(line)));
        events.into_iter().for_each(|event| self.take(event));
        self.rollout.catch_up();
        self.tell_allowances();
    }

    /// Codex would try again by itself, and must not.
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some() && self.end.is_none()
    }

    /// What this turn has used and what the whole thread has, as far as anybody knows.
    pub fn usage(&self) -> Option<(Usage, Usage)> {
        let told = match &self.end {
            Some(End::Completed(counts)) => counts.map(|counts| counts.classes()),
            _ => None,
        };
        // Codex itself forgets answers whose tools were killed; its file does not. Whoever knows more is right.
        let total = told.into_iter().chain(self.rollout.total()).max_by_key(Usage::total)?;
        let (new, before) = (since(&total, self.before.as_ref()), self.before.as_ref());
        Some((self.rollout.priced(new, before, self.model.as_deref(), self.feed.prices()), total))
    }

    /// What was written to the rollout since the last event: an answer is there before its tools are done.
    pub fn look(&mut self) {
        if self.stage == Stage::GoesOn {
            self.tell_usage();
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::ThreadStarted { thread_id } => {
                self.feed.conversation(&thread_id);
                if let Some(home) = &self.home {
                    self.rollout = Rollout::of(home, &thread_id);
                }
            }
            // A goal of its own may make codex go on after an end; the last one counts.
            Event::TurnStarted => self.end = None,
            Event::ItemStarted { item } => self.started(&item),
            Event::ItemCompleted { item: Numbered { id, item } } => self.completed(&id, item),
            Event::TurnCompleted { usage } => self.end = Some(End::Completed(usage)),
            Event::TurnFailed { error } => self.end = Some(End::Failed(error.message)),
            Event::Error(error) => self.complained(error.message),
            Event::Other => self.feed.alive(),
        }
    }

    fn started(&mut self, Numbered { id, item }: &Numbered) {
        match item {
            Item::CommandExecution { command, .. } => {
                self.feed.tool(id, "shell", &Value::String(command.clone()));
            }
            Item::McpToolCall { server, tool, arguments, .. } => {
                self.feed.tool(id, &format!("{server}.{tool}"), arguments);
            }
            _ => self.feed.alive(),
        }
        self.progressed(Stage::GoesOn);
    }

    fn completed(&mut self, id: &str, item: Item) {
        let stage = match &item {
            Item::AgentMessage { .. } => Stage::Answered,
            Item::Reasoning { .. } => Stage::Answering,
            _ => Stage::GoesOn,
        };
        match item {
            Item::AgentMessage { text } => {
                self.feed.text(&text);
                self.answer = Some(text);
            }
            Item::Reasoning { text } => self.feed.note(&text),
            Item::CommandExecution { exit_code, aggregated_output, .. } => {
                self.feed.result(
                    id,
                    &outcome(exit_code, aggregated_output),
                    exit_code.is_some_and(|code| code != 0),
                );
            }
            Item::McpToolCall { result, error, .. } => {
                let failed = !error.is_null();
                self.feed.result(id, &text_of(if failed { &error } else { &result }), failed);
            }
            Item::FileChange { changes } => {
                for change in changes {
                    self.feed.tool(id, "patch", &Value::String(change.path));
                }
            }
            Item::WebSearch { query } => self.feed.tool(id, "web search", &Value::String(query)),
            // A warning, often before anything has happened.
            Item::Error { message } => return self.feed.note(&message),
            Item::Other => self.feed.alive(),
        }
        self.progressed(stage);
    }

    /// The model has answered: what it used is in the rollout by now, or will be in a moment.
    fn progressed(&mut self, stage: Stage) {
        (self.answered, self.network_waits, self.stage) = (true, 0, stage);
        self.tell_usage();
    }

    fn tell_usage(&mut self) {
        self.rollout.catch_up();
        self.tell_allowances();
        if let Some((usage, _)) = self.usage().filter(|(usage, _)| *usage != self.told) {
            self.feed.usage(usage.clone(), self.stage);
            self.told = usage;
        }
    }

    fn complained(&mut self, message: String) {
        self.feed.note(&message);
        if let Some(why) = message.strip_prefix(RETRY) {
            self.refusal = self.refusal.take().or_else(|| self.refused(uncounted(why)));
        }
        self.complaint = Some(message);
    }

    fn complains(&self, why: &str) -> Miss {
        complaint(why, None, None, &self.wall)
    }

    fn tell_allowances(&mut self) {
        self.rollout.new_allowances().into_iter().for_each(|allowance| self.feed.allowance(allowance));
    }

    fn refused(&mut self, why: &str) -> Option<Miss> {
        if why.contains("waiting for network") {
            self.network_waits += 1;
            let gone = self.network_waits >= NETWORK_WAITS;
            return gone.then(|| Miss::failed(FailureClass::Transient, format!("no network: {why}")));
        }
        // Codex speaks plain HTTP where its websocket is refused; that says nothing about the account.
        if why.contains("url: ws") {
            return None;
        }
        let miss = self.complains(why);
        let Miss::Failed { class, refusal, .. } = &miss else { return None };
        let known = match class {
            FailureClass::Quota | FailureClass::Auth | FailureClass::Invalid => true,
            FailureClass::RateLimit => refusal.is_some(),
            _ => false,
        };
        known.then_some(miss)
    }
}

/// Without the count of codex's own tries: ` 2/5 (why)` is `why`.
fn uncounted(told: &str) -> &str {
    let told = told.trim();
    let counted = told.split_once(" (").filter(|(count, _)| count.contains('/'));
    counted.and_then(|(_, why)| why.strip_suffix(')')).unwrap_or(told)
}

/// What a command printed, or how it ended if that says more.
fn outcome(exit_code: Option<i64>, output: String) -> String {
    match exit_code {
        Some(code) if code != 0 && output.trim().is_empty() => format!("exit code {code}"),
        _ => output,
    }
}

/// The text of what an MCP server answered: content blocks, an error, or anything else as JSON.
fn text_of(answer: &Value) -> String {
    let blocks = answer["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    match (texts.as_slice(), answer["message"].as_str()) {
        ([], Some(message)) => message.to_string(),
        ([], None) if answer.is_null() => String::new(),
        ([], None) => answer.to_string(),
        (texts, _) => texts.join("\n"),
    }
}

/// A line that is no event is passed over; without a terminal event there is no success anyway.
fn parse(line: &[u8]) -> Option<Event> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sage_core::port::{Progress, StepCx, StopSignal};

    use super::*;
    use crate::activity::{Reader, What};
    use crate::agent::News;

    /// What a fold told while it read `lines`, and what it is then.
    fn folded<T>(lines: &[&str], look: impl FnOnce(Fold<'_>) -> T) -> (Vec<String>, T) {
        let dir = tempfile::tempdir().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let (news, usages) = (told.clone(), told.clone());
        let cx = StepCx {
            watch: None,
            project: dir.path().to_path_buf(),
            scratch: dir.path().to_path_buf(),
            children_lock: None,
            proofs: Vec::new(),
            stop: StopSignal::default(),
            nudge: Default::default(),
            questions: Default::default(),
            messages: Default::default(),
            crowd: Default::default(),
            prices: Default::default(),
            capped: false,
            progress: Arc::new(move |it| {
                if let Progress::Usage(usage, _) = it {
                    usages.lock().unwrap().push(format!("used {}", usage.total()));
                }
            }),
        };
        let on_news = move |it: News<'_>| news.lock().unwrap().push(format!("{it:?}"));
        let feed = Feed::new(&cx, &Default::default(), Box::new(on_news));
        let mut fold = Fold::new(&feed, None, None, None, Wall::now(None));
        for line in lines {
            fold.push(line.as_bytes());
            fold.push(b"\n");
        }
        fold.end();
        let seen = look(fold);
        let mut told = told.lock().unwrap().clone();
        told.extend(Reader::new(dir.path()).read().into_iter().filter_map(|entry| match entry.what {
            What::Message { text } => Some(text),
            What::Note { text } => Some(format!("# {text}")),
            What::Result { failed: true, text, .. } => Some(format!("failed: {text}")),
            what => what.brief(),
        }));
        (told, seen)
    }

    fn error(message: &str) -> String {
        serde_json::json!({"type": "error", "message": message}).to_string()
    }

    const STARTED: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
    const COMPLETED: &str = r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":30,"cache_write_input_tokens":7,"output_tokens":20,"reasoning_output_tokens":5}}"#;

    // covers: R18
    #[test]
    fn an_answer_that_is_too_long_is_not_taken_for_an_older_one() {
        let message = |text: &str| {
            serde_json::json!({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": text}})
                .to_string()
        };
        let long = message(&"x".repeat(LINE_BYTES));
        let answers = |lines: &[&str]| folded(lines, |fold| fold.answer.clone()).1;
        assert_eq!(answers(&[&message("first"), &long, COMPLETED]), None);
        assert_eq!(answers(&[&long, &message("last"), COMPLETED]).as_deref(), Some("last"));
    }

    #[test]
    fn a_turn_is_told_as_it_goes_and_its_last_message_is_the_answer() {
        let lines = [
            STARTED,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"no metadata"}}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I look."}}"#,
            r#"{"type":"item.started","item":{"id":"2","type":"command_execution","command":"ls","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"2","type":"command_execution","command":"ls","exit_code":2}}"#,
            r#"{"type":"item.completed","item":{"id":"3","type":"file_change","changes":[{"path":"a.rs","kind":"add"}]}}"#,
            r#"{"type":"item.started","item":{"id":"4","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1}}}"#,
            r#"{"type":"item.completed","item":{"id":"5","type":"something_new","x":1}}"#,
            r#"{"type":"event.of.tomorrow"}"#,
            "no json at all",
            r#"{"type":"item.completed","item":{"id":"6","type":"agent_message","text":"done"}}"#,
            COMPLETED,
        ];
        let (told, (end, answer, usage)) = folded(&lines, |fold| {
            let usage = fold.usage().map(|(usage, _)| usage.total());
            (fold.end.clone(), fold.answer.clone(), usage)
        });
        assert!(matches!(end, Some(End::Completed(Some(_)))));
        assert_eq!((answer.as_deref(), usage), (Some("done"), Some(120)));
        let expected = [
            "Conversation(\"t-1\")",
            "Working",
            "# no metadata",
            "I look.",
            "shell ls",
            "failed: exit code 2",
            "patch a.rs",
            "s.t {\"a\":1}",
            "done",
        ];
        assert_eq!(told, expected);
    }

    // covers: R7
    #[test]
    fn an_error_is_not_the_end_and_a_turn_that_goes_on_has_none_yet() {
        let again = error("Reconnecting... 1/5 (stream disconnected before completion: x)");
        let (_, (end, refused)) =
            folded(&[STARTED, &again, COMPLETED], |fold| (fold.end.clone(), fold.is_refused()));
        assert!(matches!(end, Some(End::Completed(_))) && !refused);
        let goes_on = [STARTED, COMPLETED, r#"{"type":"turn.started"}"#];
        assert_eq!(folded(&goes_on, |fold| fold.end.clone()).1, None);
        assert_eq!(folded(&[&again], |fold| (fold.end.clone(), fold.usage())).1, (None, None));
    }

    // covers: R7
    #[test]
    fn what_others_must_hear_of_is_not_tried_again() {
        let refused = |messages: &[&str]| {
            let lines: Vec<String> = messages.iter().map(|message| error(message)).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            folded(&lines, |fold| fold.is_refused()).1
        };
        let limit = "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)";
        assert!(!refused(&[limit]), "codex waits as long as the endpoint wants");
        assert!(refused(&["Reconnecting... 1/5 (rate limit exceeded: try again in 1.5s)"]));
        assert!(refused(&[
            "Reconnecting... 1/5 (unexpected status 413 Payload Too Large: x, url: http://x)"
        ]));
        assert!(refused(&["Reconnecting... 1/5 (unexpected status 401 Unauthorized: no, url: http://x)"]));
        assert!(!refused(&["Reconnecting... 1/5 (unexpected status 403 Forbidden: no, url: ws://x)"]));
        assert!(!refused(&["Reconnecting... 3/5 (unexpected status 503 Service Unavailable: x)"]));
        let ended = "unexpected status 401 Unauthorized: no, url: http://x";
        assert!(!refused(&[ended]), "codex ends by itself");
        let offline = "Reconnecting... waiting for network (Connection failed: error sending request)";
        assert!(!refused(&[offline]));
        assert!(refused(&[offline, offline]));
    }

    // covers: R7
    #[test]
    fn a_rate_limit_ends_it_with_the_time_that_its_log_names() {
        let limit = error("Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)");
        let log = b"2026-11-18T00:33:06Z  WARN codex_core::responses_retry: stream disconnected - retrying \
            sampling request (1/5 in 5.999s)... turn_id=t retries=1 max_retries=5 sampling_error=exceeded retry \
            limit, last status: 429 Too Many Requests\n";
        let refusal = |log: &[u8]| {
            folded(&[STARTED, &limit], |mut fold| {
                fold.logged(log);
                fold.refusal.clone()
            })
            .1
        };
        let Some(Miss::Failed { class, message, refusal: told, .. }) = refusal(log) else { panic!() };
        assert_eq!(class, FailureClass::RateLimit);
        assert_eq!(message, "exceeded retry limit, last status: 429 Too Many Requests");
        assert_eq!(told, Some(Refusal { retry_after_ms: Some(5_999), reset_at_ms: None }));
        let other = String::from_utf8_lossy(log).replace("429 Too Many", "503 Many");
        assert_eq!(refusal(other.as_bytes()), None, "a broken stream is codex's own business");
    }

    #[test]
    fn messages_have_no_count_of_codexs_own_tries() {
        assert_eq!(
            uncounted(" 1/5 (unexpected status 401 (no), url: x)"),
            "unexpected status 401 (no), url: x"
        );
        assert_eq!(uncounted(" waiting for network (x)"), "waiting for network (x)");
    }
}
