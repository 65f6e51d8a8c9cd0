//! The conversation with one process: what the code asks for is done, until it has ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::advice;
use super::answer::{CodeAnswer, CodeFailure, Console, Counts, FailureKind};
use super::limits::MAX_MESSAGE_BYTES;
use super::modules::module;
use super::process::{End, Process};
use super::session::{CodeRun, CodeSession, lock};
use super::wire::{Ask, FromWorker, Start, ToWorker, raw};
use crate::tools::{Detail, ToolDef, search};

/// Tools of a search inside of code, without a limit of its own.
const SEARCH_LIMIT: usize = 20;

pub(super) enum Ended {
    Done { nothing: bool, value: Box<RawValue> },
    Failed(FailureKind, String),
}

/// A call that has come to its end.
struct Settled {
    id: u32,
    outcome: Result<Box<RawValue>, String>,
}

/// The conversation with one process.
pub(super) struct Talk<'s> {
    session: &'s CodeSession,
    run: &'s CodeRun,
    catalogue: Arc<[ToolDef]>,
    console: Console,
    counts: Counts,
    /// Calls that wait for their turn.
    waiting: VecDeque<(u32, Ask)>,
    calls: JoinSet<Settled>,
    /// Names of tools that were called and have not answered.
    open: Vec<(u32, String)>,
}

impl<'s> Talk<'s> {
    pub(super) fn new(session: &'s CodeSession, run: &'s CodeRun) -> Talk<'s> {
        Talk {
            session,
            run,
            catalogue: session.tools.catalogue(),
            console: Console::default(),
            counts: Counts::default(),
            waiting: VecDeque::new(),
            calls: JoinSet::new(),
            open: Vec::new(),
        }
    }

    /// Until the code has ended; `None` if its process did.
    pub(super) async fn hold(&mut self, process: &mut Process) -> Option<Ended> {
        process.say(&self.start()).await.ok()?;
        loop {
            let heard = tokio::select! {
                heard = process.hear() => Err(heard),
                Some(settled) = self.calls.join_next() => Ok(settled),
            };
            match heard {
                Ok(settled) => {
                    let message = self.settled(settled.ok()?);
                    process.say(&message).await.ok()?;
                    self.begin();
                }
                Err(Ok(None)) => return None,
                Err(Err(error)) => {
                    return Some(Ended::Failed(FailureKind::Broken, format!("the sandbox said {error}")));
                }
                Err(Ok(Some(FromWorker::Done { nothing, value }))) => {
                    return Some(Ended::Done { nothing, value });
                }
                Err(Ok(Some(FromWorker::Failed { kind, message }))) => {
                    return Some(Ended::Failed(kind, message));
                }
                Err(Ok(Some(FromWorker::Console(text)))) => {
                    self.console.push(&text, self.session.limits.console_bytes);
                }
                Err(Ok(Some(FromWorker::Cut(bytes)))) => self.console.cut_bytes += bytes,
                Err(Ok(Some(FromWorker::Need(names)))) => {
                    let skills = self.session.skills.as_ref();
                    let found = names.into_iter().map(|name| {
                        let module = module(&name, &self.catalogue, skills);
                        (name, module)
                    });
                    process.say(&ToWorker::Modules(found.collect())).await.ok()?;
                }
                Err(Ok(Some(FromWorker::Call { id, ask }))) => {
                    // The process holds to its limit; one that does not is not the one that we wrote.
                    if self.waiting.len() > self.session.limits.max_calls as usize {
                        return Some(Ended::Failed(
                            FailureKind::Broken,
                            "the sandbox does not hold to its limits".into(),
                        ));
                    }
                    self.waiting.push_back((id, ask));
                    self.begin();
                }
            }
        }
    }

    fn start(&self) -> ToWorker {
        let number = self.session.runs.fetch_add(1, Ordering::Relaxed);
        ToWorker::Start(Start {
            name: self.run.name.clone(),
            code: self.run.code.clone(),
            input: self.run.input.clone(),
            now_ms: self.session.began_ms,
            seed: self.session.began_ms.wrapping_add(number),
            limits: self.session.limits,
        })
    }

    /// Starts as many of the waiting calls as may run at once.
    fn begin(&mut self) {
        while self.calls.len() < self.session.limits.parallel.max(1)
            && let Some((id, ask)) = self.waiting.pop_front()
        {
            match ask {
                Ask::Tool { server, tool, input } => self.call(id, server, tool, input),
                Ask::Search { query, detail, limit } => {
                    let outcome = self.search(&query, detail.as_deref(), limit);
                    self.calls.spawn(std::future::ready(Settled { id, outcome }));
                }
                Ask::Handle(name) => {
                    let outcome = lock(&self.session.handles).get(&name).map(|text| (*text).to_owned());
                    self.calls.spawn(std::future::ready(Settled { id, outcome }));
                }
            }
        }
    }

    fn call(&mut self, id: u32, server: String, tool: String, input: Value) {
        self.counts.calls += 1;
        self.open.push((id, format!("{server}/{tool}")));
        let (tools, vault) = (Arc::clone(&self.session.tools), Arc::clone(&self.session.vault));
        self.calls.spawn(async move {
            let input = lock(&vault).show(input);
            let told = tools.call(&server, &tool, input).await;
            let outcome = match told {
                Ok(value) => Ok(raw(&lock(&vault).hide(value))),
                Err(message) => Err(format!("{server}/{tool}: {}", lock(&vault).hide_text(message))),
            };
            Settled { id, outcome }
        });
    }

    fn search(
        &self,
        query: &str,
        detail: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Box<RawValue>, String> {
        let detail = match detail {
            None => Detail::Signatures,
            Some(text) => Detail::parse(text).ok_or_else(|| {
                format!("there is no detail `{text}`; there are {}", Detail::NAMES.join(", "))
            })?,
        };
        let found = search(&self.catalogue, query, detail, limit.unwrap_or(SEARCH_LIMIT));
        let told = found
            .hits
            .iter()
            .map(|hit| json!({"module": hit.module, "name": hit.function, "text": hit.text}));
        Ok(raw(&told.collect::<Vec<Value>>()))
    }

    fn settled(&mut self, settled: Settled) -> ToWorker {
        let Settled { id, outcome } = settled;
        let called = self.open.iter().position(|(open, _)| *open == id).map(|at| self.open.swap_remove(at));
        if let (Some(_), Ok(value)) = (&called, &outcome) {
            self.counts.bytes_in += value.get().len() as u64;
        }
        let outcome = outcome.and_then(|value| match value.get().len() {
            bytes if bytes > MAX_MESSAGE_BYTES => {
                let name = called.as_ref().map_or("the value", |(_, name)| name);
                Err(format!(
                    "{name}: the result has {bytes} bytes, more than {} MiB",
                    MAX_MESSAGE_BYTES >> 20
                ))
            }
            _ => Ok(value),
        });
        if called.is_some() && outcome.is_err() {
            self.counts.failed_calls += 1;
        }
        match outcome {
            Ok(value) => ToWorker::Answer { id, good: true, value },
            Err(message) => ToWorker::Answer { id, good: false, value: raw(&message) },
        }
    }

    pub(super) fn died(&self, end: End) -> Ended {
        let limits = &self.session.limits;
        match end {
            End::Cpu => {
                Ended::Failed(FailureKind::Cpu, format!("the code computed longer than {} ms", limits.cpu_ms))
            }
            End::Memory => Ended::Failed(
                FailureKind::Memory,
                format!("the code needs more than {} MiB", limits.memory_bytes >> 20),
            ),
            End::Other(how) => Ended::Failed(FailureKind::Broken, format!("the sandbox ended: {how}")),
        }
    }

    pub(super) fn late(&self, wall_ms: u64) -> Ended {
        let names: Vec<&str> = self.open.iter().take(5).map(|(_, name)| name.as_str()).collect();
        let open = match self.open.len() {
            0 => String::new(),
            count => {
                format!("; {count} of {} calls had not answered: {}", self.counts.calls, names.join(", "))
            }
        };
        Ended::Failed(FailureKind::Timeout, format!("the code did not end within {wall_ms} ms{open}"))
    }

    fn counted(&self, value_bytes: usize) -> Counts {
        let bytes_out = (value_bytes + self.console.text.len()) as u64;
        Counts {
            bytes_out,
            bytes_kept_out: self.counts.bytes_in.saturating_sub(bytes_out),
            hidden: lock(&self.session.vault).len(),
            ..self.counts
        }
    }

    pub(super) fn answer(self, text: Box<RawValue>, duration_ms: u64) -> CodeAnswer {
        let (handle, value) = match text.get().len() > self.session.limits.value_bytes {
            true => {
                let (name, told) = lock(&self.session.handles).keep(text);
                (Some(name), told)
            }
            false => (None, serde_json::from_str(text.get()).unwrap_or_default()),
        };
        let counts = self.counted(value.to_string().len());
        CodeAnswer { value, handle, nothing: false, console: self.console, counts, duration_ms }
    }

    pub(super) fn failure(self, kind: FailureKind, message: String, duration_ms: u64) -> CodeFailure {
        let (name, code) = (&self.run.name, &self.run.code);
        let mut told = message;
        if matches!(kind, FailureKind::Threw | FailureKind::Import | FailureKind::Stuck)
            && let Some(line) = advice::excerpt(&told, name, code)
        {
            told = format!("{told}\n{line}");
        }
        let hint = match kind {
            FailureKind::Timeout => Some("do less at once, or ask for more time".to_string()),
            FailureKind::Cpu | FailureKind::Memory => Some("work on less data at once".to_string()),
            FailureKind::Threw | FailureKind::Import => advice::hint(&told, name, code, &self.catalogue),
            _ => None,
        };
        let counts = self.counted(told.len());
        CodeFailure { kind, message: told, hint, console: Box::new(self.console), counts, duration_ms }
    }
}
