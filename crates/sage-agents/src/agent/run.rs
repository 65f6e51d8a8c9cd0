//! One attempt of an agent step: choose the session, give the order, keep what came of it.

use sage_core::port::{Continuity, Progress, StepCx, StepOutcome, Usage};

use super::{Agent, AgentConfig, Feed, Order, Turn};
use crate::attempt::Attempt;
use crate::outcome::Miss;
use crate::secrets;
use crate::session::{self, Chosen};

pub async fn run(attempt: &Attempt<'_>, agent: &dyn Agent, config: &AgentConfig) -> StepOutcome {
    match attend(attempt, agent, config).await {
        Ok(outcome) => outcome,
        // It got no further than its session: its agent was not asked.
        Err(miss) => miss.into_outcome(None, Usage::none()),
    }
}

async fn attend(attempt: &Attempt<'_>, agent: &dyn Agent, config: &AgentConfig) -> Result<StepOutcome, Miss> {
    let task = attempt.params().text("prompt")?.ok_or_else(|| Miss::invalid("an agent needs a `prompt`"))?;
    let mut chosen = session::choose(attempt, agent, config, task).await?;
    if let Some(kept) = chosen.kept() {
        tell(attempt, &chosen);
        return Ok(kept);
    }
    let (mut turn, mut text) = take_turn(attempt, agent, config, &mut chosen).await?;
    while turn.unknown_conversation && chosen.start_over() {
        (turn, text) = take_turn(attempt, agent, config, &mut chosen).await?;
    }
    chosen.settle(&turn, &text);
    Ok(turn.into_outcome(&text))
}

async fn take_turn(
    attempt: &Attempt<'_>,
    agent: &dyn Agent,
    config: &AgentConfig,
    chosen: &mut Chosen,
) -> Result<(Turn, String), Miss> {
    let mut order = Order::new(attempt, config, chosen.prompt().to_string(), chosen.conversation().clone())?;
    order.session_dir = chosen.dir();
    chosen.begin(attempt, &order, agent.chooses_id())?;
    tell(attempt, chosen);
    let redactor = attempt.config.redactor.with(secrets::of_step(&order.env));
    let questions = attempt.cx.questions.clone().in_directory(&order.cwd);
    let cx = StepCx { questions, ..attempt.cx.clone() };
    let feed = Feed::new(&cx, &redactor, chosen.on_news());
    let mut turn = agent.turn(attempt, &order, &feed).await;
    // The session keeps it: without the values of keys, which an endpoint may have repeated in pieces.
    turn.redact(&redactor);
    if turn.usage.is_empty() && turn.did_not_start() && !feed.has_begun() {
        turn.usage = Usage::none();
    }
    Ok((turn, feed.said_text()))
}

fn tell(attempt: &Attempt<'_>, chosen: &Chosen) {
    let (id, continuity) = (chosen.id().to_string(), chosen.continuity());
    if !id.is_empty() || continuity == Continuity::Reloaded {
        (attempt.cx.progress)(Progress::Session { id, continuity });
    }
}
