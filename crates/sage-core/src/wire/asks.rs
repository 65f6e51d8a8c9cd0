//! A question of a running agent, as doors show it.

use serde::{Deserialize, Serialize};

use super::rfc3339;
use crate::inquiry::{AgentQuestion, Inquiry};
use crate::port::AskKind;
use crate::run::OpenAsk;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskView {
    pub id: String,
    pub tool: String,
    pub kind: AskKind,
    /// What people read.
    pub title: String,
    /// What it wants to know, with the options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
    /// What it would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    pub since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Why no rule answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// A pattern for `[approvals] commands` that would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl AskView {
    pub fn of(open: &OpenAsk) -> AskView {
        let inquiry = open.ask.inquiry.as_ref();
        AskView {
            questions: inquiry.map(|inquiry| inquiry.questions().to_vec()).unwrap_or_default(),
            plan: inquiry.and_then(Inquiry::plan).map(str::to_string),
            id: open.ask.id.clone(),
            tool: open.ask.tool.clone(),
            kind: open.ask.kind,
            title: open.ask.title(),
            since: rfc3339(open.since_ms),
            until: open.until.map(rfc3339),
            why: open.ask.why.clone(),
            rule: open.ask.rule.clone(),
        }
    }
}
