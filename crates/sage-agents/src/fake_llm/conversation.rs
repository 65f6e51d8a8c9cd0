//! What a request says last, in any of the protocols: the last user message and the last result of a tool.

use serde_json::Value;

/// Text of the last user message, results of tools included where the protocol puts them there.
pub fn last_user(request: &Value) -> String {
    if let Some(text) = request["input"].as_str() {
        return text.to_string();
    }
    let user = entries(request).rev().find(|entry| entry["role"] == "user");
    let content = |entry: &Value| {
        if entry["parts"].is_array() { flat(&entry["parts"]) } else { flat(&entry["content"]) }
    };
    user.map(content).unwrap_or_default()
}

pub fn last_tool_result(request: &Value) -> String {
    entries(request).rev().find_map(tool_result).unwrap_or_default()
}

fn tool_result(entry: &Value) -> Option<String> {
    match (entry["type"].as_str(), entry["role"].as_str()) {
        (Some("function_call_output" | "custom_tool_call_output"), _) => Some(flat(&entry["output"])),
        (_, Some("tool")) => Some(flat(&entry["content"])),
        (_, Some("user")) => {
            let mut results =
                entry["content"].as_array()?.iter().filter(|block| block["type"] == "tool_result");
            results.next_back().map(|block| flat(&block["content"]))
        }
        _ => None,
    }
}

fn entries(request: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    let list = ["messages", "input", "contents"].iter().find_map(|name| request[*name].as_array());
    list.into_iter().flatten()
}

/// All text in a content, whether it is a string or blocks.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn block_text(block: &Value) -> Option<String> {
    // A part of Gemini's has no type.
    let Some(kind) = block["type"].as_str() else { return block["text"].as_str().map(str::to_string) };
    match kind {
        "text" | "input_text" | "output_text" => block["text"].as_str().map(str::to_string),
        "tool_result" => Some(flat(&block["content"])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_words_are_found_in_all_protocols() {
        let anthropic = json!({"messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "42"}]},
                {"type": "text", "text": "go on"},
            ]},
        ]});
        assert_eq!((last_user(&anthropic), last_tool_result(&anthropic)), ("42\ngo on".into(), "42".into()));
        let responses = json!({"input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "name": "x"},
            {"type": "function_call_output", "output": "7"},
        ]});
        assert_eq!((last_user(&responses), last_tool_result(&responses)), ("hello".into(), "7".into()));
        let chat = json!({"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "content": "9"}]});
        assert_eq!((last_user(&chat), last_tool_result(&chat)), ("hi".into(), "9".into()));
        let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]});
        assert_eq!(last_user(&gemini), "a\nb");
        assert_eq!(last_user(&json!({"input": "plain"})), "plain");
        assert_eq!(last_user(&json!({})), "");
    }
}
