//! One attempt of an agent step: choose the session, give the order, keep what came of it.

use sage_core::port::{Continuity, Progress, StepCx, StepOutcome, Stop, Usage};

use super::{Agent, AgentConfig, Feed, Order, Turn};
use crate::activity::{What, Writer};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::secrets;
use crate::session::{self, Chosen};

pub async fn run(attempt: &Attempt<'_>, agent: &dyn Agent, config: &AgentConfig) -> StepOutcome {
    Writer::begin(&attempt.cx.scratch);
    let outcome = attend(attempt, agent, config).await;
    // Whatever comes now is the next attempt's to hear.
    attempt.cx.messages.close();
    // Without an outcome it got no further than its session: its agent was not asked.
    outcome.unwrap_or_else(|miss| miss.into_outcome(None, Usage::none()))
}

async fn attend(attempt: &Attempt<'_>, agent: &dyn Agent, config: &AgentConfig) -> Result<StepOutcome, Miss> {
    let task = attempt.params().text("prompt")?.ok_or_else(|| Miss::invalid("an agent needs a `prompt`"))?;
    let mut chosen = session::choose(attempt, agent, config, task).await?;
    if let Some(kept) = chosen.kept() {
        tell(attempt, &chosen);
        return Ok(kept);
    }
    let mut spent = Usage::default();
    let (mut turn, mut text) = take_turn(attempt, agent, config, &mut chosen, &spent).await?;
    while turn.unknown_conversation && chosen.start_over() {
        (turn, text) = take_turn(attempt, agent, config, &mut chosen, &spent).await?;
    }
    chosen.settle(&turn, &text);
    spent.add(&turn.usage);
    while turn.answer.is_ok() && goes_on(attempt, &mut chosen) {
        let next = take_turn(attempt, agent, config, &mut chosen, &spent).await;
        let (next, said) = next.unwrap_or_else(|miss| (Turn::missed(miss), String::new()));
        chosen.settle(&next, &said);
        spent.add(&next.usage);
        if next.unknown_conversation {
            undelivered(attempt);
            break;
        }
        (turn, text) = (next, said);
    }
    Ok(Turn { usage: spent, ..turn }.into_outcome(&text))
}

/// Whether people have said something that the agent did not hear in its turn, and can be told in another one.
fn goes_on(attempt: &Attempt<'_>, chosen: &mut Chosen) -> bool {
    if attempt.cx.stop.get() != Stop::No {
        return false;
    }
    let messages = attempt.cx.messages.take_last();
    let any = !messages.is_empty();
    let goes_on = chosen.goes_on_with(messages);
    if any && !goes_on {
        undelivered(attempt);
    }
    goes_on
}

fn undelivered(attempt: &Attempt<'_>) {
    let text = "a message was not delivered: the conversation cannot be continued".to_string();
    Writer::open(&attempt.cx.scratch).write(What::Note { text });
}

async fn take_turn(
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    chosen: &mut Chosen,
    spent: &Usage,
) -> Result<(Turn, String), Miss> {
    let mut order = Order::new(attempt, config, chosen.prompt().to_string(), chosen.conversation().clone())?;
    order.session_dir = chosen.dir();
    order.plans &= !chosen.has_plan();
    if chosen.goes_on() {
        order.files.clear();
    }
    if order.plans && !agent.capabilities().plans {
        return Err(Miss::invalid(format!("agent `{}` has no plan mode", config.name)));
    }
    chosen.begin(attempt, &order, agent.chooses_id())?;
    tell(attempt, chosen);
    let sent = secrets::of_step(&order.env).into_iter().chain(secrets::of_servers(&order.mcp_servers));
    let redactor = attempt.config.redactor.with(sent.collect());
    let questions = attempt.cx.questions.clone().in_directory(&order.cwd);
    let cx = StepCx { questions, ..attempt.cx.clone() };
    let feed = Feed::new(&cx, &redactor, chosen.on_news()).after(spent);
    chosen.carried().iter().for_each(|message| feed.heard(message));
    let mut turn = agent.turn(attempt, &order, &feed).await;
    // The session keeps it: without the values of keys, which an endpoint may have repeated in pieces.
    turn.redact(&redactor);
    if turn.usage.is_empty() && turn.did_not_start() && !feed.has_begun() {
        turn.usage = Usage::none();
    }
    feed.spent(&turn.usage);
    Ok((turn, feed.said_text()))
}

fn tell(attempt: &Attempt<'_>, chosen: &Chosen) {
    let (id, continuity) = (chosen.id().to_string(), chosen.continuity());
    if !id.is_empty() || continuity == Continuity::Reloaded {
        (attempt.cx.progress)(Progress::Session { id, continuity });
    }
}
