//! OpenAI's Codex: `codex exec --json`, one process per turn.
//!
//! ```text
//! Order --argv, sandbox, mcp--> codex exec [resume|fork] --json -   (the prompt is a file on its stdin)
//! Turn <--judge-- Fold <--events-- stdout
//!                  ^--rollout-- CODEX_HOME/sessions/**/rollout-*-<thread>.jsonl
//! ```
//! Success is a `turn.completed` and nothing else. The rollout is codex's own file about the thread: it tells
//! what was used while the agent works and what kind of error it was; all of it is a bonus, nothing depends on
//! it. Codex tries again by itself, its built-in provider up to 30 requests for one answer, and that cannot be
//! switched off there: a refusal that sage must hear of (limits, login) or that would come again (an invalid
//! request) ends the process at once (fold.rs).

mod argv;
mod event;
mod fold;
mod judge;
mod mcp;
mod newcomer;
mod probe;
mod prompt;
mod repository;
mod retry_log;
mod rollout;
mod sandbox;
mod strict;
mod toml_text;
mod trouble;
mod usage;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sage_core::port::{BoxFuture, FileKind, Stop, StopSignal, Usage};
use serde_json::Value;

use crate::agent::{
    Agent, AgentConfig, Capabilities, Conversation, CutTurn, Feed, Order, Probe, Recovered, Turn,
};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::process::{Finished, Sinks};
use crate::prompt_files::in_words;
use crate::told_time::Wall;
use fold::Fold;
use rollout::Rollout;

#[derive(Clone, Copy, Debug)]
pub struct Codex;

/// The adapter's own program.
const PROGRAM: &str = "codex";
/// Whose models it uses, where their names do not tell.
const PROVIDER: &str = "openai";
/// How often its file is looked at while a tool runs: what the answer before it used is there at once.
const LOOK: Duration = Duration::from_millis(20);

impl Agent for Codex {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
            schema: true,
            live_usage: true,
            effort: true,
            mcp: true,
            ..Capabilities::default()
        }
    }

    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        Box::pin(probe::probe(config))
    }

    fn knows(&self, config: &AgentConfig, conversation: &str, _cwd: &Path) -> bool {
        // Without a place to look, only codex can tell.
        home(config, &[]).is_none_or(|home| rollout::find(&home, conversation).is_some())
    }

    fn resume_command(&self, config: &AgentConfig, conversation: &str) -> Option<Vec<String>> {
        Some(config.typed("codex", &["HOME", "CODEX_HOME"], &["resume", conversation]))
    }

    fn has_heard(&self, config: &AgentConfig, conversation: &str, prompt: &str) -> bool {
        home(config, &[]).is_some_and(|home| rollout::mentions(&home, conversation, prompt))
    }

    fn refuses_server(&self, name: &str, server: &Value) -> Option<String> {
        mcp::refuses(name, server)
    }

    fn used(&self, config: &AgentConfig, conversation: &str, cut: &CutTurn<'_>) -> Option<Recovered> {
        let rollout = Rollout::whole(&home(config, &[])?, conversation);
        let total = rollout.total()?;
        let new = usage::since(&total, cut.counters);
        let usage = rollout.priced(new, cut.counters, config.model.as_deref(), cut.prices);
        (usage.total() > 0).then_some(Recovered { usage, counters: Some(total) })
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(async move {
            let home = home(&order.config, &order.env);
            let before = baseline(order, home.as_deref());
            let mut fold = Fold::new(feed, home.as_deref(), before, order.model.as_deref(), wall(order));
            let watched = async {
                let watch =
                    newcomer::Watch::begin(attempt, argv::site(attempt, order).missing(&order.access))?;
                let finished = talk(attempt, order, home.as_deref(), &mut fold).await;
                watch.end().and(finished)
            };
            match watched.await {
                Ok(finished) => judge::turn(fold, &finished, order, attempt.cx.stop.get() != Stop::No),
                Err(miss) => Turn::missed(miss),
            }
        })
    }
}

async fn talk(
    attempt: &Attempt<'_>,
    order: &Order,
    home: Option<&Path>,
    fold: &mut Fold<'_>,
) -> Result<Finished, Miss> {
    if !order.access.run {
        fold.note("codex cannot be kept from running commands; its sandbox keeps them from what the role may not do");
    }
    if order.agent_type.is_some() {
        fold.note("`agentType` is only for claude");
    }
    let files = in_words(&attempt.cx.scratch, &order.files, |file| file.kind == FileKind::Image);
    let prompt = prompt::of(order, home, &files);
    let stdin = attempt.write("stdin.txt", prompt.text.as_bytes())?;
    fold.sent(order.system.as_deref().filter(|_| prompt.developer_instructions.is_some()), &prompt.text);
    let logs = retry_log::is_wanted(order, home);
    let (argv, mut env) = (argv::of(attempt, order, &prompt, logs)?, order.environment());
    env.extend(logs.then(retry_log::variable));
    // Ours to stop, too: the engine's signal is passed on.
    let (engine, stop) = (attempt.cx.stop.clone(), StopSignal::default());
    let mut cx = attempt.cx.clone();
    cx.stop = stop.clone();
    let attempt = Attempt { config: attempt.config, cx: &cx, call: attempt.call };
    let shared = Mutex::new(fold);
    let locked = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let hear = |take: &dyn Fn(&mut Fold<'_>)| {
        let mut fold = locked();
        take(&mut fold);
        if fold.is_refused() {
            stop.set(Stop::Graceful);
        }
    };
    let sinks = Sinks {
        stdout: &mut |chunk| hear(&|fold| fold.push(chunk)),
        stderr: &mut |chunk| hear(&|fold| fold.logged(chunk)),
    };
    let running = attempt.run_heard(argv, env, Some(stdin), 0, sinks);
    let finished = tokio::select! {
        finished = running => finished,
        never = pass_on(&engine, &stop) => match never {},
        never = look(&shared) => match never {},
    }?;
    locked().end();
    Ok(finished)
}

/// Looks at its file again and again.
async fn look(fold: &Mutex<&mut Fold<'_>>) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        fold.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

/// The clock that codex reads: it names local times.
fn wall(order: &Order) -> Wall {
    let given = order.env.iter().rev().find(|(name, _)| name == "TZ").and_then(|(_, zone)| zone.to_str());
    Wall::now(given.map(str::to_string).or_else(|| order.config.variable("TZ")).as_deref())
}

/// Whatever the engine says is said again.
async fn pass_on(engine: &StopSignal, ours: &StopSignal) -> Infallible {
    engine.reached(Stop::Graceful).await;
    ours.set(engine.get());
    engine.reached(Stop::Now).await;
    ours.set(Stop::Now);
    std::future::pending().await
}

/// What the thread had counted before this turn. A fork begins with all that its origin has counted by now.
fn baseline(order: &Order, home: Option<&Path>) -> Option<Usage> {
    match &order.conversation {
        Conversation::New { .. } => None,
        Conversation::Resume { counters, .. } => counters.clone(),
        Conversation::Fork { of, counters, .. } => {
            let origin = home.map(|home| Rollout::of(home, of).total());
            origin.flatten().or_else(|| counters.clone())
        }
    }
}

/// Where codex keeps its threads and its login.
fn home(config: &AgentConfig, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let given =
        env.iter().rev().find(|(name, _)| name == "CODEX_HOME").map(|(_, value)| PathBuf::from(value));
    let own = || Some(PathBuf::from(config.variable("HOME")?).join(".codex"));
    given.or_else(|| config.variable("CODEX_HOME").map(PathBuf::from)).or_else(own)
}
