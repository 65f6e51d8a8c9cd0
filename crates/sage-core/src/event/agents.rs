//! Events about agents: what they ask for, and what they still know.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::inquiry::Inquiry;
use crate::port::{Allowance, AskKind, Continuity};

/// A running agent asks for permission, or for an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAsked {
    pub step: Arc<str>,
    pub attempt: u32,
    pub ask: AskedFor,
    /// When the default answers, in ms since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedFor {
    /// Unique in its attempt.
    pub id: String,
    pub tool: String,
    pub kind: AskKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub input: Payload,
    /// What it wants to know or have approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Inquiry>,
    /// Why no rule answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// A pattern for `[approvals] commands` that would have answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl AskedFor {
    /// The whole question, in a line.
    pub fn question(&self) -> String {
        match &self.inquiry {
            Some(Inquiry::Questions(_)) => self.title(),
            Some(Inquiry::Plan(_)) => format!("may it carry out its plan: {}?", self.title()),
            None => format!("may it use {}?", self.title()),
        }
    }

    /// What people read: the tool and what it is for, or what it wants to know.
    pub fn title(&self) -> String {
        if let Some(inquiry) = &self.inquiry {
            return inquiry.title();
        }
        let what = self.command.clone().unwrap_or_else(|| self.paths.join(", "));
        // All of it: nobody shall allow a line that they have not seen.
        let what = what.trim_end().replace('\n', " ⏎ ");
        if what.is_empty() { self.tool.clone() } else { format!("{}: {what}", self.tool) }
    }
}

/// A rule, a person or the deadline has answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPermitted {
    pub step: Arc<str>,
    pub attempt: u32,
    pub ask: String,
    /// What was asked, where a rule answered at once and nobody else was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedFor>,
    pub allow: bool,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the tool is given instead, where a person has changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// A person said something to a running agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepMessaged {
    pub step: Arc<str>,
    pub attempt: u32,
    pub by: String,
    pub text: String,
    /// Tells it from all other messages of the run.
    pub signal: String,
}

/// A running agent gives its slot to urgent work and goes on later.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPreempted {
    pub step: Arc<str>,
    pub attempt: u32,
    /// The step or run that it makes way for.
    pub by: String,
}

/// An agent tells how much of its account's allowance is used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountUsed {
    pub agent: String,
    #[serde(flatten)]
    pub allowance: Allowance,
}

/// The session that an attempt belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSession {
    pub step: Arc<str>,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    pub continuity: Continuity,
}
