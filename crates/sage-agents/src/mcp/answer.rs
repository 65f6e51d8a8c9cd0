//! What comes back from a call: an answer, or why there is none.

use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use rmcp::service::ServiceError;
use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use sage_core::secret::Redactor;
use serde_json::{Value, json};

use super::trouble::Trouble;
use crate::outcome::Miss;

/// What a tool said, also that it failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// Structured content, JSON in a text, a text; whatever else there is as it came.
    pub value: Value,
    /// All its texts.
    pub text: String,
    /// The tool says that it failed, and `text` why.
    pub is_error: bool,
    /// What is odd about it, in words for a person.
    pub notes: Vec<String>,
}

impl ToolAnswer {
    /// Without the values of keys.
    pub fn redacted(mut self, redactor: &Redactor) -> ToolAnswer {
        redactor.value(&mut self.value);
        self.notes.iter_mut().chain([&mut self.text]).for_each(|text| redactor.string(text));
        self
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    pub class: FailureClass,
    pub message: String,
    pub refusal: Option<Refusal>,
}

impl ToolFailure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> ToolFailure {
        ToolFailure { class, message: message.into(), refusal: None }
    }

    pub fn invalid(message: impl Into<String>) -> ToolFailure {
        ToolFailure::new(FailureClass::Invalid, message)
    }

    /// Its message, told about something.
    pub fn about(self, what: &str) -> ToolFailure {
        ToolFailure { message: format!("{what}: {}", self.message), ..self }
    }
}

impl From<ToolFailure> for Miss {
    fn from(failure: ToolFailure) -> Miss {
        let ToolFailure { class, message, refusal } = failure;
        Miss::Failed { class, cause: None, message, refusal }
    }
}

/// Why a request was not answered.
#[derive(Debug)]
pub enum Unanswered {
    Failed(ToolFailure),
    /// There is no server any more; what it has done nobody knows.
    Gone,
}

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Unanswered {
        match error {
            ServiceError::McpError(error) => {
                let refused =
                    [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST];
                let ours = refused.contains(&error.code);
                let class = if ours { FailureClass::Invalid } else { FailureClass::Failed };
                Unanswered::Failed(ToolFailure::new(class, error.message.into_owned()))
            }
            ServiceError::TransportSend(error) => match Trouble::of(error.error.as_ref()) {
                Some(trouble) => Unanswered::Failed(trouble.failure()),
                None => Unanswered::Gone,
            },
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Unanswered::Gone,
            other => Unanswered::Failed(ToolFailure::invalid(other.to_string())),
        }
    }
}

impl From<CallToolResult> for ToolAnswer {
    fn from(result: CallToolResult) -> ToolAnswer {
        let is_error = result.is_error == Some(true);
        let told: Vec<&str> =
            result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        let mut text = told.join("\n");
        if is_error && text.is_empty() {
            text = match &result.structured_content {
                Some(value) => value.to_string(),
                None => "the tool failed and did not say why".into(),
            };
        }
        ToolAnswer { value: value(result), text, is_error, notes: Vec::new() }
    }
}

fn value(result: CallToolResult) -> Value {
    if let Some(value) = result.structured_content {
        return value;
    }
    match texts(&result.content) {
        Some(text) => document(&text).unwrap_or(Value::String(text)),
        None => json!({ "content": result.content }),
    }
}

/// All of it, if all of it is text.
fn texts(content: &[ContentBlock]) -> Option<String> {
    let text = |block: &ContentBlock| block.as_text().map(|text| text.text.clone());
    content.iter().map(text).collect::<Option<Vec<String>>>().map(|texts| texts.join("\n"))
}

/// An object or a list. A text such as `12e5` may be a name: it stays a text.
fn document(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: Value) -> ToolAnswer {
        serde_json::from_value::<CallToolResult>(result).unwrap().into()
    }

    // covers: R24
    #[test]
    fn the_value_is_the_best_that_the_answer_has() {
        let done = |result: Value| {
            let answer = answer(result);
            assert!(!answer.is_error);
            answer.value
        };
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(done(json!({"content": [text("old")], "structuredContent": {"a": 1}})), json!({"a": 1}));
        assert_eq!(done(json!({"content": [text("{\"a\": [2]}")]})), json!({"a": [2]}));
        assert_eq!(done(json!({"content": [text("a"), text("b")]})), "a\nb");
        assert_eq!(done(json!({"content": [text("12e5")]})), "12e5");
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let both = answer(json!({"content": [text("see"), image]}));
        assert_eq!(both.text, "see");
        assert_eq!(
            (&both.value["content"][0]["text"], &both.value["content"][1]["data"]),
            (&json!("see"), &json!("AA=="))
        );
    }

    // covers: R24
    #[test]
    fn an_error_is_told_in_the_words_of_the_tool() {
        let failed = json!({"content": [{"type": "text", "text": "no such page"}], "isError": true});
        assert_eq!((answer(failed.clone()).is_error, answer(failed).text), (true, "no such page".into()));
        let silent = answer(json!({"content": [], "isError": true}));
        assert!(silent.is_error && silent.text.contains("did not say why"));
        let odd = answer(json!({"content": [], "structuredContent": {"why": 1}, "isError": true}));
        assert_eq!(odd.text, "{\"why\":1}");
    }
}
