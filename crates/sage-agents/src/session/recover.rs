//! What turns have used that were cut off when their owner was killed: their agent's own records tell.
//!
//! It is told as what it is, the usage of an earlier attempt, so that the attempt that goes on is charged with its
//! own only.

use sage_core::port::{CutAttempt, Progress, Usage};
use sage_core::price::PriceTable;

use super::opened::Opened;
use super::record::{Record, TurnState};
use super::store::Store;
use crate::agent::{Agent, AgentConfig, CutTurn, Recovered};
use crate::attempt::Attempt;

/// Of one attempt, without touching its session.
pub fn used_by(
    store: &Store,
    agent: &dyn Agent,
    config: &AgentConfig,
    cut: &CutAttempt<'_>,
) -> Option<Usage> {
    let record = store.load(cut.session).ok()?;
    let is_it = |at: &usize| {
        let turn = &record.turns[*at];
        turn.run == cut.run && turn.step == cut.step && turn.attempt == cut.attempt
    };
    let at = (record.begun_at..record.turns.len()).rev().find(is_it)?;
    let (turn, mut all) = (&record.turns[at], record.used_before(at));
    if !turn.usage.is_empty() || turn.state != TurnState::Open {
        all.add(&turn.usage);
        return Some(all).filter(|usage| !usage.is_empty());
    }
    let conversation = record.conversation.as_ref().or(record.proposed.as_ref())?;
    all.add(&found(&record, at, agent, config, conversation, cut.prices)?.usage);
    Some(all)
}

fn found(
    record: &Record,
    at: usize,
    agent: &dyn Agent,
    config: &AgentConfig,
    conversation: &str,
    prices: &PriceTable,
) -> Option<Recovered> {
    let cut = CutTurn {
        since_ms: record.turns[at].started_ms,
        until_ms: record.turns.get(at + 1).map(|next| next.started_ms),
        counters: record.counters.as_ref(),
        prices,
    };
    agent.used(config, conversation, &cut)
}

/// Called before the session goes on. `conversation` is the one that the turns belong to.
pub fn recover(
    opened: &mut Opened,
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    conversation: &str,
) {
    let turns = opened.record.begun_at..opened.record.turns.len();
    for at in turns {
        let record = &opened.record;
        let turn = &record.turns[at];
        if turn.state != TurnState::Open || turn.run != attempt.call.run || turn.step != attempt.call.path {
            continue;
        }
        let number = turn.attempt;
        if turn.usage.is_empty() {
            let found = found(record, at, agent, config, conversation, &attempt.cx.prices);
            let Some(found) = found else { continue };
            let record = &mut opened.record;
            record.usage.add(&found.usage);
            record.counters = found.counters.or(record.counters.take());
            record.turns[at].usage = found.usage;
        }
        let mut usage = opened.record.used_before(at);
        usage.add(&opened.record.turns[at].usage);
        (attempt.cx.progress)(Progress::Lost { attempt: number, usage });
    }
}
