//! One entry of `activity.jsonl`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// In ms since the epoch.
    pub at: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum What {
    /// A message of the agent.
    Message { text: String },
    /// The agent uses a tool; `input` is its main argument.
    Tool {
        tool: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        input: String,
    },
    /// What came of it, in one line.
    Result {
        tool: String,
        text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// All of the attempt so far.
    #[serde(rename_all = "camelCase")]
    Usage {
        tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_estimated: bool,
    },
    /// A remark of the adapter, e.g. about a retry of the agent's own.
    Note { text: String },
    /// A person's message, when the agent was given it.
    Heard { text: String },
    /// From a version that knows more.
    #[serde(other)]
    Unknown,
}

impl What {
    /// What a row of the live tree shows: the tool with its argument, what came of it, or the end of the message.
    pub fn brief(&self) -> Option<String> {
        match self {
            What::Message { text } => last_line(text).map(str::to_string),
            What::Tool { tool, input } if input.is_empty() => Some(tool.clone()),
            What::Tool { tool, input } => Some(format!("{tool} {input}")),
            What::Result { tool, text, .. } => Some(format!("{tool}: {text}")),
            What::Usage { .. } | What::Note { .. } | What::Heard { .. } | What::Unknown => None,
        }
    }
}

/// The last line that says something.
pub fn last_line(text: &str) -> Option<&str> {
    text.split(['\n', '\r']).map(str::trim).rfind(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R8
    #[test]
    fn rows_show_the_tool_or_the_end_of_the_message() {
        let tool = |input: &str| What::Tool { tool: "Bash".into(), input: input.into() }.brief();
        assert_eq!(tool("cargo test").as_deref(), Some("Bash cargo test"));
        assert_eq!(tool("").as_deref(), Some("Bash"));
        let result = What::Result { tool: "Bash".into(), text: "3 passed".into(), failed: false };
        assert_eq!(result.brief().as_deref(), Some("Bash: 3 passed"));
        let message = What::Message { text: "First.\n\n  Then this.\n\n".into() };
        assert_eq!(message.brief().as_deref(), Some("Then this."));
        assert_eq!(What::Message { text: "\n".into() }.brief(), None);
    }

    #[test]
    fn entries_of_later_versions_are_passed_over() {
        let entry: Entry = serde_json::from_str(r#"{"at":1,"kind":"hologram","text":"x"}"#).unwrap();
        assert_eq!(entry.what, What::Unknown);
    }
}
