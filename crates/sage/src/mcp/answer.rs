//! An answer: the structured content, and a text for clients that show nothing else. Or what is needed first.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult};
use serde_json::Value;

/// A value that is not larger than this is also in the text.
const SMALL_CHARS: usize = 1_500;

#[derive(Debug)]
pub enum Answer {
    Done {
        value: Value,
        text: String,
    },
    /// The client asks its user, and calls again.
    Needs(Box<InputRequiredResult>),
}

impl Answer {
    pub fn new(value: Value, text: impl Into<String>) -> Answer {
        Answer::Done { value, text: text.into() }
    }

    /// With the value itself in the text, where it is small.
    pub fn shown(value: Value, headline: impl Into<String>) -> Answer {
        let (json, mut text) = (value.to_string(), headline.into());
        if json.len() <= SMALL_CHARS {
            text = format!("{text}\n{json}");
        }
        Answer::Done { value, text }
    }

    pub fn into_response(self) -> CallToolResponse {
        match self {
            Answer::Done { value, text } => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(value);
                result.into()
            }
            Answer::Needs(needed) => (*needed).into(),
        }
    }
}
