//! Waits for the report on an order, and makes an answer of it.

use std::sync::Arc;
use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::inquiry::{AgentQuestion, Inquiry, PersonAnswers};
use sage_core::policy::FailureClass;
use sage_core::port::{Permission, PermissionAsk, Report, ReportKind, Stop, Usage, Wakes};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::letter::Letter;
use super::memory::Memory;
use crate::agent::{Feed, Order, Turn};
use crate::attempt::Attempt;
use crate::json_text;
use crate::outcome::{Miss, excerpt};

/// An order that has grown longer than this begins anew.
const BODY_BYTES: usize = 256 * 1024;

pub async fn turn(attempt: &Attempt<'_>, order: &Order, feed: &Feed) -> Turn {
    let Some(wakes) = attempt.config.wakes.clone() else {
        let name = &order.config.name;
        let message = format!(
            "agent `{name}` reports by wakes, and they are switched off; hint: set ENABLE_WAKE_MESSAGING=true"
        );
        return Turn::missed(Miss::invalid(message));
    };
    let session = session_id(attempt, order);
    feed.conversation(&session);
    let letter = Letter::new(attempt, order, &session, &wakes.orders(), &wakes.reports());
    let memory = Memory::open(order.session_dir.as_deref(), attempt.call);
    let mut waiting = Waiting { attempt, order, feed, wakes, session, letter, memory };
    let answer = waiting.wait().await;
    waiting.letter.take_back();
    Turn::new(answer, Usage::default())
}

/// The session's name; without sessions a name that is the same for the same work.
fn session_id(attempt: &Attempt<'_>, order: &Order) -> String {
    let dir = order.session_dir.as_ref().and_then(|dir| dir.file_name());
    dir.map(|name| name.to_string_lossy().into_owned()).unwrap_or_else(|| {
        let call = attempt.call;
        let work = Digest::of(format!("{}\0{}\0{}", call.run, call.path, call.key).as_bytes()).short();
        format!("foreign-{}", work.to_lowercase())
    })
}

struct Waiting<'a> {
    attempt: &'a Attempt<'a>,
    order: &'a Order,
    feed: &'a Feed,
    wakes: Arc<dyn Wakes>,
    session: String,
    letter: Letter,
    memory: Memory,
}

enum Next {
    Report(Report),
    Over(Miss),
}

impl Waiting<'_> {
    async fn wait(&mut self) -> Result<Value, Miss> {
        if self.memory.is_new {
            let last = self.wakes.last(&self.session).await;
            self.memory.begin(last.map_err(|why| Miss::failed(FailureClass::Transient, why))?);
        }
        let body = self.first_body();
        self.feed.sent(None, &body);
        self.send(&body)?;
        self.feed.note(&format!("the order is in {}", self.letter.path().display()));
        let (mut limit, mut idle) = (self.limit(), self.idle());
        loop {
            let report = match self.next(limit, idle).await {
                Next::Report(report) => report,
                Next::Over(miss) => return Err(miss),
            };
            let id = report.id.clone();
            match report.kind {
                ReportKind::Complete | ReportKind::Failed => {
                    self.memory.take(&id);
                    return self.answer(report);
                }
                ReportKind::Finding => self.feed.text(&report.summary),
                ReportKind::Blocked => {
                    let asked = Instant::now();
                    self.unblock(report).await?;
                    // Time in which a person thinks is nobody's.
                    limit = limit.map(|limit| limit + asked.elapsed());
                }
            }
            self.memory.pass(&id);
            idle = self.idle();
        }
    }

    /// A session that goes on reads below what it has read before; after a crash there is nothing new to say.
    fn first_body(&self) -> String {
        let (before, prompt) = (self.memory.body(), &self.order.prompt);
        if before.is_empty() || before.len() > BODY_BYTES {
            return prompt.clone();
        }
        if self.memory.goes_on || before.ends_with(prompt.as_str()) {
            return before.to_string();
        }
        format!("{before}\n\n---\n\n{prompt}")
    }

    fn send(&mut self, body: &str) -> Result<(), Miss> {
        self.memory.tell(body);
        self.letter.write(body, self.order.schema.as_ref()).map_err(|error| {
            let path = self.letter.path().display();
            Miss::of_io(&error, format!("cannot write the order `{path}`: {error}"))
        })
    }

    fn limit(&self) -> Option<Instant> {
        self.attempt.call.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms))
    }

    fn idle(&self) -> Option<Instant> {
        self.attempt.call.idle_timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms))
    }

    async fn next(&self, limit: Option<Instant>, idle: Option<Instant>) -> Next {
        let timeout = |what: &str| Next::Over(Miss::failed(FailureClass::Timeout, what));
        tokio::select! {
            report = self.wakes.next(&self.session, self.memory.after()) => match report {
                Ok(report) => Next::Report(report),
                Err(why) => Next::Over(Miss::failed(FailureClass::Transient, why)),
            },
            () = self.attempt.cx.stop.reached(Stop::Graceful) => Next::Over(Miss::Stopped),
            () = reached(limit) => timeout("timed out: nobody has reported"),
            () = reached(idle) => timeout("idle: nobody has reported anything"),
        }
    }

    /// What blocks it is a person's to answer; the answer goes into the order.
    async fn unblock(&mut self, report: Report) -> Result<(), Miss> {
        let id = &report.id;
        let question = AgentQuestion {
            id: id.clone(),
            question: told(&report.summary).to_string(),
            free_text: true,
            ..AgentQuestion::default()
        };
        let input = json!({"question": report.summary, "files": report.files});
        let ask = PermissionAsk::of_person(id, "report", input, Inquiry::Questions(vec![question]));
        let permission = tokio::select! {
            permission = self.feed.ask(ask) => permission,
            () = self.attempt.cx.stop.reached(Stop::Graceful) => return Err(Miss::Stopped),
        };
        let answer = match permission {
            Permission::Allow { input: None } => "Go on.".to_string(),
            Permission::Allow { input: Some(Value::String(text)) } => text,
            Permission::Allow { input: Some(input) } => {
                let given = PersonAnswers::from_input(&input).and_then(|given| given.told(id));
                let plain = || input.get("answer").and_then(Value::as_str).map(str::to_string);
                given.or_else(plain).unwrap_or_else(|| input.to_string())
            }
            Permission::Deny { message } => {
                let message = format!("blocked: {}; answered: {message}", told(&report.summary));
                return Err(Miss::of_answer(FailureClass::Failed, message));
            }
        };
        let body = format!("{}\n\n---\n\n> {}\n\n{answer}", self.letter.body(), told(&report.summary));
        self.send(&body)
    }

    fn answer(&self, report: Report) -> Result<Value, Miss> {
        if report.kind == ReportKind::Failed {
            let message = format!("reported: {}", told(&report.summary));
            return Err(Miss::of_answer(FailureClass::Failed, message));
        }
        if self.order.schema.is_none() {
            let result = json!({"summary": report.summary, "files": report.files, "status": "complete"});
            return Ok(match report.result {
                Some(more) => merged(result, more),
                None => result,
            });
        }
        let parsed = report.result.or_else(|| json_text::find(&report.summary));
        parsed.ok_or_else(|| {
            let summary = excerpt(&report.summary);
            Miss::unfit(format!("the report has no `result`, and its summary is not JSON: {summary}"))
        })
    }
}

fn merged(mut result: Value, more: Value) -> Value {
    result["result"] = more;
    result
}

fn told(summary: &str) -> &str {
    if summary.trim().is_empty() { "no reason given" } else { summary.trim() }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
