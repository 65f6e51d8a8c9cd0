//! What is known about a session.

use std::path::PathBuf;

use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use serde::{Deserialize, Serialize};

/// Raised when an older sage could not read the record any more.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub v: u32,
    pub id: String,
    /// The configured agent that it belongs to.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// A person or a template gave it its name; the others belong to one step each.
    pub named: bool,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// The agent's own id of the conversation; `None` until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The id that a conversation shall have which its agent has not told of yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<String>,
    /// The directory that its agent last worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Turns before the conversation of now.
    #[serde(default)]
    pub begun_at: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The session of another agent that this one stands in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Source>,
    #[serde(default)]
    pub turns: Vec<TurnRecord>,
    #[serde(default)]
    pub usage: Usage,
    /// The agent's own counters, where they count over the whole conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Usage>,
    /// What the next turn carries along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How often it had to be told everything again.
    #[serde(default)]
    pub reloads: u32,
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    pub session: String,
    /// Empty if it had gone further than the fork shall know.
    pub conversation: String,
    /// Turns that the parent had then.
    pub turns: usize,
    /// Later turns of the parent are none of its business.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// What a session was told of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub session: String,
    /// So many of its turns.
    pub turns: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    pub run: String,
    pub step: String,
    pub key: String,
    pub attempt: u32,
    pub state: TurnState,
    /// The agent has begun to work on what it was asked.
    #[serde(default)]
    pub heard: bool,
    pub started_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The agent has called the conversation itself bad.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoiled: bool,
    /// A person has approved the agent's plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// Ids of the messages that people sent and the agent was given in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

impl TurnRecord {
    /// An answer is heard as well, whatever was seen of the work before it.
    pub fn was_heard(&self) -> bool {
        self.heard || self.state == TurnState::Done
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnState {
    /// Under way, or its owner was killed: the lock says which.
    Open,
    Done,
    Failed,
    /// Ended because sage asked for it.
    Stopped,
}

impl Record {
    pub fn new(id: &str, agent: &str, role: Option<String>, named: bool, now_ms: u64) -> Record {
        Record {
            v: VERSION,
            id: id.to_string(),
            agent: agent.to_string(),
            role,
            named,
            created_ms: now_ms,
            updated_ms: now_ms,
            conversation: None,
            proposed: None,
            cwd: None,
            begun_at: 0,
            parent: None,
            beside: None,
            turns: Vec::new(),
            usage: Usage::default(),
            counters: None,
            context_tokens: None,
            reloads: 0,
        }
    }

    /// Whether the conversation of now knows a message.
    pub fn knows(&self, message: &str) -> bool {
        let turns = self.turns.iter().skip(self.begun_at).filter(|turn| turn.was_heard());
        turns.into_iter().any(|turn| turn.messages.iter().any(|id| id == message))
    }

    /// What an attempt had used in turns before this one.
    pub fn used_before(&self, at: usize) -> Usage {
        let turn = &self.turns[at];
        let same = |other: &&TurnRecord| {
            (&other.run, &other.step, other.attempt) == (&turn.run, &turn.step, turn.attempt)
        };
        let mut sum = Usage::default();
        self.turns[..at].iter().filter(same).for_each(|turn| sum.add(&turn.usage));
        sum
    }

    pub fn last(&self) -> Option<&TurnRecord> {
        self.turns.last()
    }
}
