//! An answer: the structured content, and a text for clients that show nothing else.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// A value that is not larger than this is also in the text.
const SMALL_CHARS: usize = 1_500;

#[derive(Debug)]
pub struct Answer {
    value: Value,
    text: String,
}

impl Answer {
    pub fn new(value: Value, text: impl Into<String>) -> Answer {
        Answer { value, text: text.into() }
    }

    /// With the value itself in the text, where it is small.
    pub fn shown(value: Value, headline: impl Into<String>) -> Answer {
        let (json, mut text) = (value.to_string(), headline.into());
        if json.len() <= SMALL_CHARS {
            text = format!("{text}\n{json}");
        }
        Answer { value, text }
    }

    pub fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.value);
        result
    }
}
