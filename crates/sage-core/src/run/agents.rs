//! What agents ask for while they run, and what they had to be told again.

use std::sync::Arc;

use serde::Deserialize;

use crate::digest::Digest;
use crate::event::*;
use crate::policy::FailureClass;
use crate::port::{Allowance, Continuity, Message};
use crate::run::{FoldError, Output, Run, State, StepId};
use crate::template::Kind;

/// The result of an approval, as far as it names who decided.
#[derive(Deserialize)]
struct Answer {
    choice: String,
    by: String,
}

/// A question of a running attempt that nobody has answered yet.
#[derive(Clone, Debug)]
pub struct OpenAsk {
    pub step: StepId,
    pub attempt: u32,
    pub ask: AskedFor,
    pub since_ms: u64,
    pub until: Option<u64>,
}

/// What a person said to the agent of a step.
#[derive(Clone, Debug)]
pub struct Sent {
    pub step: Arc<str>,
    /// The work that it was about.
    pub key: Option<Digest>,
    pub message: Message,
}

impl Run {
    pub(super) fn is_of_agents(event: &Event) -> bool {
        use Event::{AccountUsed, StepAsked, StepMessaged, StepPermitted, StepPreempted, StepSession};
        let of_steps = matches!(event, StepAsked(_) | StepPermitted(_) | StepSession(_) | StepPreempted(_));
        of_steps || matches!(event, AccountUsed(_) | StepMessaged(_))
    }

    pub(super) fn apply_agents(&mut self, event: &Event, now: u64) -> Result<(), FoldError> {
        match event {
            Event::StepAsked(asked) => {
                let step = self.named("step.asked", &asked.step)?;
                let (attempt, ask, until) = (asked.attempt, asked.ask.clone(), asked.until);
                self.asks.push(OpenAsk { step, attempt, ask, since_ms: now, until });
                self.time_step(step);
            }
            Event::StepPermitted(permitted) => {
                let step = self.named("step.permitted", &permitted.step)?;
                self.signals.extend(permitted.signal.clone());
                let answered = |open: &OpenAsk| {
                    open.step == step && open.attempt == permitted.attempt && open.ask.id == permitted.ask
                };
                self.asks.retain(|open| !answered(open));
                self.time_step(step);
            }
            Event::StepSession(told) => {
                let id = self.named("step.session", &told.step)?;
                if told.continuity == Continuity::Reloaded {
                    self.tally.reloads += 1;
                    self.count_around(id, |counts| counts.reloads += 1);
                }
                if !told.session.is_empty() {
                    self.step_mut(id).session = Some(Arc::from(told.session.as_str()));
                }
            }
            Event::StepMessaged(sent) => {
                let id = self.named("step.messaged", &sent.step)?;
                self.signals.insert(sent.signal.clone());
                let message = Message { id: sent.signal.clone(), text: sent.text.clone() };
                self.messages.push(Sent { step: sent.step.clone(), key: self.step(id).key, message });
            }
            Event::AccountUsed(used) => {
                let key = (used.agent.clone(), used.allowance.window.clone());
                self.allowances.insert(key, used.allowance.clone());
            }
            Event::StepPreempted(preempted) => {
                let id = self.named("step.preempted", &preempted.step)?;
                self.step_mut(id).preempted = true;
                self.tally.preempted += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// What agents have said about the use of their accounts, by agent and window; those that are over by now are
    /// left out.
    pub fn allowances(&self) -> impl Iterator<Item = (&str, &Allowance)> {
        let counts = |it: &Allowance| it.reset_at_ms.is_none_or(|reset_at_ms| reset_at_ms > self.updated_ms);
        self.allowances.iter().filter(move |(_, it)| counts(it)).map(|((agent, _), it)| (agent.as_str(), it))
    }

    /// What an agent has last said about one window.
    pub fn allowance(&self, agent: &str, window: &str) -> Option<&Allowance> {
        self.allowances.get(&(agent.to_string(), window.to_string()))
    }

    /// What people have said to a step's agent while it did the work with this key.
    pub fn messages_to(&self, step: StepId, key: Digest) -> Vec<Message> {
        let path = &self.step(step).path;
        let meant = |sent: &&Sent| sent.step == *path && sent.key == Some(key);
        self.messages.iter().filter(meant).map(|sent| sent.message.clone()).collect()
    }

    /// An attempt that has ended waits for no answer.
    pub(super) fn close_asks(&mut self, step: StepId, attempt: u32) {
        self.asks.retain(|open| open.step != step || open.attempt != attempt);
        self.time_step(step);
    }

    pub fn asks_of(&self, step: StepId) -> impl Iterator<Item = &OpenAsk> {
        self.asks.iter().filter(move |open| open.step == step)
    }

    /// What a running agent asks for, and how many more questions it has.
    pub fn permission_question(&self, step: StepId) -> Option<String> {
        let first = self.asks_of(step).next()?;
        let more = self.asks_of(step).count() - 1;
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        Some(format!("{}{more}", first.ask.question()))
    }

    /// Whether a person has to say something about the step: it asks, or nobody knows what became of it.
    pub fn waits_for_person(&self, step: StepId) -> bool {
        match self.shown_state(step) {
            State::Running(running) => running.ask.is_some() || self.asks_of(step).next().is_some(),
            State::Unknown => true,
            _ => false,
        }
    }

    /// How a question that is no longer open was answered: the choice and by whom.
    pub fn answer_of(&self, step: StepId) -> Option<String> {
        let step = self.step(step);
        if let Some(failure) = step.failure.as_ref().filter(|f| f.class == FailureClass::Rejected) {
            return Some(failure.message.clone());
        }
        let Some(Output::Leaf { result, .. }) = step.output.as_deref() else { return None };
        let answer: Answer = serde_json::from_str(result.json.as_ref()?.get()).ok()?;
        Some(format!("`{}` by {}", answer.choice, answer.by))
    }

    /// The newest question that was answered, by a person or by its deadline.
    pub fn last_answered(&self) -> Option<StepId> {
        let asked = |&id: &StepId| self.kind(id) == Kind::Approval && self.step(id).state.settled();
        self.step_ids().filter(asked).max_by_key(|&id| self.step(id).ended_ms)
    }

    /// Running steps that only wait for a person: their time does not count.
    pub fn asking_steps(&self) -> u32 {
        let mut steps: Vec<StepId> = self.asks.iter().map(|open| open.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.len() as u32
    }
}
