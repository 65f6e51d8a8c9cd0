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
mod home;
mod judge;
mod probe;
mod shape;
mod spent;
#[cfg(test)]
mod tests;
mod transcript;
mod watch;

use std::path::Path;
use std::sync::Arc;

use sage_core::port::{BoxFuture, Stop, StopSignal};

use crate::agent::{Agent, AgentConfig, Capabilities, Conversation, Feed, Order, Probe, Turn};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::talk::Talk;
use channel::Channel;
use dialog::Dialog;
use shape::Shape;

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
        }
    }

    fn probe<'a>(&'a self, config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        Box::pin(probe::probe(config))
    }

    fn chooses_id(&self) -> bool {
        true
    }

    fn knows(&self, config: &AgentConfig, conversation: &str, _cwd: &Path) -> bool {
        home::knows(config, conversation)
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(async move { turn(attempt, order, feed).await.unwrap_or_else(Turn::missed) })
    }
}

async fn turn(attempt: &Attempt<'_>, order: &Order, feed: &Feed) -> Result<Turn, Miss> {
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
    let mut on_stdout = |chunk: &[u8]| dialog.push(chunk);
    let finished = tokio::select! {
        finished = inner.converse(argv, env, talk, &mut on_stdout) => finished?,
        never = watch::watch(attempt.cx, &cx.stop, &channel, attempt.config.grace) => match never {},
    };
    let transcript = dialog.end();
    let stopped = attempt.cx.stop.get() >= Stop::Graceful;
    let (counters, usage) = (transcript.counters(), transcript.usage());
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

/// What the conversation had cost when it last stopped.
fn counted(conversation: &Conversation) -> Option<f64> {
    match conversation {
        Conversation::New { .. } => None,
        Conversation::Resume { counters, .. } | Conversation::Fork { counters, .. } => {
            counters.as_ref().and_then(|counters| counters.cost_usd)
        }
    }
}
