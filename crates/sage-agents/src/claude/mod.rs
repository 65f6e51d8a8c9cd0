//! Claude Code, headless: `claude -p` with JSON lines in both directions.
//!
//! ```text
//! turn --argv--> process ==stdout==> event -> dialog --> transcript -> judge --> Turn
//!                   ^                           |  \--> feed, asks (access decides, or somebody is asked)
//!                   +=========== channel <------+------ watch (stop, reminders, patience)
//! ```
//! What must stay true: only a `result` event with `is_error: false` is a success; the program's input is
//! closed after its result, and a program that stays nevertheless is ended without spoiling the result.

mod access;
mod agent_type;
mod allowance;
mod argv;
mod asks;
mod channel;
mod dialog;
mod event;
mod gate;
mod home;
mod judge;
mod planning;
mod probe;
mod project;
mod prompt;
mod shape;
mod spent;
mod tab;
#[cfg(test)]
mod tests;
mod transcript;
mod watch;

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sage_core::port::{BoxFuture, Stop, StopSignal};

use crate::agent::{
    Agent, AgentConfig, Capabilities, Conversation, CutTurn, Feed, Hears, Order, Probe, Recovered, Turn,
};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::session::now_ms;
use crate::talk::Talk;
use channel::Channel;
use dialog::Dialog;
use shape::Shape;
use tab::Tab;

/// How often the files of subagents are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Whose models it uses.
const PROVIDER: &str = "anthropic";

#[derive(Clone, Copy, Debug)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
            asks: true,
            schema: true,
            live_usage: true,
            max_turns: true,
            max_budget: true,
            questions: true,
            plans: true,
            effort: true,
            agent_types: true,
            project: true,
            mcp: true,
        }
    }

    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        Box::pin(probe::probe(config))
    }

    fn chooses_id(&self) -> bool {
        true
    }

    fn hears(&self) -> Hears {
        Hears::Now
    }

    fn knows(&self, config: &AgentConfig, conversation: &str, _cwd: &Path) -> bool {
        home::knows(config, conversation)
    }

    fn resume_command(&self, config: &AgentConfig, conversation: &str) -> Option<Vec<String>> {
        Some(config.typed("claude", &["HOME", "CLAUDE_CONFIG_DIR"], &["--resume", conversation]))
    }

    fn used(&self, config: &AgentConfig, conversation: &str, cut: &CutTurn<'_>) -> Option<Recovered> {
        let mut tab = Tab::default();
        let recorded = home::recorded(config, conversation, cut.since_ms, cut.until_ms);
        recorded.iter().for_each(|counted| tab.take(counted));
        let usage = tab.usage(cut.prices);
        (!usage.is_empty()).then_some(Recovered { usage, counters: None })
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(async move { turn(attempt, order, feed).await.unwrap_or_else(Turn::missed) })
    }
}

async fn turn(attempt: &Attempt<'_>, order: &Order, feed: &Feed) -> Result<Turn, Miss> {
    let since_ms = now_ms();
    let shape = order.schema.as_ref().map(Shape::of);
    let (argv, env) = (argv::argv(attempt, order, shape.as_ref())?, argv::env(order));
    let (talk, mouth) = Talk::open(attempt)?;
    let channel = Arc::new(Channel::new(mouth));
    let mut dialog = Dialog::new(attempt, order, feed, &channel);
    dialog.begin();
    // The process is stopped by a signal of its own: a stop from outside is first said in words.
    let mut cx = attempt.cx.clone();
    cx.stop = StopSignal::default();
    let inner = Attempt { config: attempt.config, cx: &cx, call: attempt.call };
    let dialog = Mutex::new(dialog);
    let mut on_stdout = |chunk: &[u8]| locked(&dialog).push(chunk);
    let finished = tokio::select! {
        finished = inner.converse(argv, env, talk, &mut on_stdout) => finished?,
        never = watch::watch(attempt.cx, &cx.stop, &channel, attempt.config.grace) => match never {},
        never = look(&dialog) => match never {},
    };
    let transcript = dialog.into_inner().unwrap_or_else(PoisonError::into_inner).end();
    let stopped = attempt.cx.stop.get() >= Stop::Graceful;
    let recorded = || home::recorded(&order.config, order.conversation.id(), since_ms, None);
    let (counters, usage) = (transcript.counters(), transcript.usage(feed.prices(), recorded));
    let answer = judge::judge(&transcript, &finished, stopped, shape.as_ref());
    Ok(Turn {
        spoiled: judge::is_spoiled(&answer, &transcript),
        answer,
        usage,
        counters,
        context_tokens: transcript.context_tokens,
        unknown_conversation: transcript.is_unknown(),
    })
}

/// Looks for what is only written down, again and again.
async fn look(dialog: &Mutex<Dialog<'_>>) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        locked(dialog).look();
    }
}

fn locked<'m, 'd>(dialog: &'m Mutex<Dialog<'d>>) -> MutexGuard<'m, Dialog<'d>> {
    dialog.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the conversation had cost when it last stopped.
fn counted(conversation: &Conversation) -> Option<f64> {
    match conversation {
        Conversation::New { .. } => None,
        Conversation::Resume { counters, .. } | Conversation::Fork { counters, .. } => {
            counters.as_ref().and_then(|counters| counters.cost_usd)
        }
    }
}
