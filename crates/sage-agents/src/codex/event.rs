//! The lines that `codex exec --json` prints. What is not known here is passed over.

use serde::Deserialize;
use serde_json::Value;

use super::usage::Counts;

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "item.started")]
    ItemStarted { item: Numbered },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: Numbered },
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        #[serde(default)]
        usage: Option<Counts>,
    },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: Said },
    /// Not the end: also told when codex tries again by itself.
    #[serde(rename = "error")]
    Error(Said),
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Said {
    pub message: String,
}

#[derive(Debug, Deserialize)]
pub struct Numbered {
    #[serde(default)]
    pub id: String,
    #[serde(flatten)]
    pub item: Item,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    AgentMessage {
        #[serde(default)]
        text: String,
    },
    Reasoning {
        #[serde(default)]
        text: String,
    },
    CommandExecution {
        #[serde(default)]
        command: String,
        #[serde(default)]
        exit_code: Option<i64>,
        #[serde(default)]
        aggregated_output: String,
    },
    McpToolCall {
        #[serde(default)]
        server: String,
        #[serde(default)]
        tool: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        result: Value,
        #[serde(default)]
        error: Value,
    },
    FileChange {
        #[serde(default)]
        changes: Vec<Change>,
    },
    WebSearch {
        #[serde(default)]
        query: String,
    },
    /// A warning.
    Error {
        #[serde(default)]
        message: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Change {
    pub path: String,
    pub kind: Value,
}
