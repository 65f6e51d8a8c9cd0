//! What the answer to a call means for the step.

use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use rmcp::service::ServiceError;
use sage_core::policy::FailureClass;
use serde_json::{Value, json};

#[derive(Debug)]
pub enum Judged {
    Done(Value),
    Failed(FailureClass, String),
    /// There is no server any more; what it has done nobody knows.
    Gone,
}

pub fn judge(answer: Result<CallToolResult, ServiceError>) -> Judged {
    match answer {
        Ok(result) if result.is_error == Some(true) => {
            Judged::Failed(FailureClass::Failed, complaint(&result))
        }
        Ok(result) => Judged::Done(value(result)),
        Err(ServiceError::McpError(error)) => {
            let refused =
                [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST];
            let class =
                if refused.contains(&error.code) { FailureClass::Invalid } else { FailureClass::Failed };
            Judged::Failed(class, error.message.into_owned())
        }
        Err(
            ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. },
        ) => Judged::Gone,
        Err(other) => Judged::Failed(FailureClass::Invalid, other.to_string()),
    }
}

fn complaint(result: &CallToolResult) -> String {
    match (texts(&result.content), &result.structured_content) {
        (Some(text), _) if !text.is_empty() => text,
        (_, Some(value)) => value.to_string(),
        _ => "the tool failed and did not say why".into(),
    }
}

/// Structured content, JSON in a text, a text; whatever else there is stays as it is.
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

    fn judged(result: Value) -> Judged {
        judge(Ok(serde_json::from_value(result).unwrap()))
    }

    fn done(result: Value) -> Value {
        match judged(result) {
            Judged::Done(value) => value,
            other => panic!("{other:?}"),
        }
    }

    // covers: R24
    #[test]
    fn the_result_is_the_best_that_the_answer_has() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(done(json!({"content": [text("old")], "structuredContent": {"a": 1}})), json!({"a": 1}));
        assert_eq!(done(json!({"content": [text("{\"a\": [2]}")]})), json!({"a": [2]}));
        assert_eq!(done(json!({"content": [text("a"), text("b")]})), "a\nb");
        assert_eq!(done(json!({"content": [text("12e5")]})), "12e5");
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let both = done(json!({"content": [text("see"), image]}));
        assert_eq!(
            (&both["content"][0]["text"], &both["content"][1]["data"]),
            (&json!("see"), &json!("AA=="))
        );
    }

    // covers: R24
    #[test]
    fn an_error_is_told_in_the_words_of_the_tool() {
        let failed = json!({"content": [{"type": "text", "text": "no such page"}], "isError": true});
        assert!(matches!(judged(failed), Judged::Failed(FailureClass::Failed, why) if why == "no such page"));
        let silent = json!({"content": [], "isError": true});
        assert!(matches!(judged(silent), Judged::Failed(_, why) if why.contains("did not say why")));
    }
}
