//! OpenAI's Responses: the request without anything stored at the other end, and the answer from its items.

use std::collections::BTreeMap;

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::reply::{Answered, Call, Heard, Reply, Stop};
use super::sse::Event;
use super::trouble;
use super::wire::{Ask, Fold, openai_usage, parsed};
use crate::outcome::Miss;

pub fn body(ask: &Ask<'_>) -> Value {
    let mut body = json!({"model": ask.model, "stream": true, "store": false, "input": ask.history});
    if let Some(system) = ask.system {
        body["instructions"] = system.into();
    }
    if let Some(effort) = ask.effort {
        body["reasoning"] = json!({"effort": effort});
    }
    if let Some(most) = ask.max_tokens {
        body["max_output_tokens"] = most.into();
    }
    if !ask.tools.is_empty() {
        let tool = |tool: &super::ToolSpec| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.input_schema, "strict": false,
            })
        };
        body["tools"] = ask.tools.iter().map(tool).collect();
    }
    if let Some(shape) = ask.shape {
        let format =
            json!({"type": "json_schema", "name": "answer", "schema": shape.schema, "strict": shape.strict});
        body["text"] = json!({"format": format});
    }
    body
}

pub fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    let result = |it: &Answered<'_>| json!({"type": "function_call_output", "call_id": it.call.id, "output": it.text()});
    answered.iter().map(result).collect()
}

pub fn open_calls(history: &[Value]) -> Vec<String> {
    let ids = |kind: &'static str| {
        let entries = history.iter().filter(move |entry| entry["type"] == kind);
        entries.filter_map(|entry| entry["call_id"].as_str())
    };
    let answered: Vec<&str> = ids("function_call_output").collect();
    ids("function_call").filter(|id| !answered.contains(id)).map(str::to_string).collect()
}

#[derive(Debug, Default)]
pub struct Folded {
    /// Finished ones, by their place.
    items: BTreeMap<u64, Value>,
    /// Text of those that are still written.
    text: String,
    /// `completed` or `incomplete`, with the response.
    end: Option<Value>,
}

impl Fold for Folded {
    fn event(&mut self, event: &Event) -> Result<Heard, Miss> {
        let data = parsed(event);
        match data["type"].as_str() {
            Some("response.output_text.delta" | "response.refusal.delta") => {
                self.text.push_str(data["delta"].as_str().unwrap_or_default());
            }
            Some("response.output_item.done") => {
                self.items.insert(data["output_index"].as_u64().unwrap_or_default(), data["item"].clone());
            }
            Some("response.completed" | "response.incomplete") => {
                self.end = Some(data["response"].clone());
                return Ok(Heard::Over);
            }
            Some("response.failed") => {
                self.end = Some(data["response"].clone());
                return Err(trouble::midstream(&data["response"]));
            }
            Some("error") => return Err(trouble::midstream(&data)),
            Some(kind) if kind.starts_with("response.") && kind.ends_with(".delta") => {}
            Some("response.output_item.added") => {}
            _ => return Ok(Heard::Quiet),
        }
        Ok(Heard::Moved)
    }

    fn usage(&self) -> Usage {
        let Some(end) = &self.end else { return Usage::default() };
        let model = end["model"].as_str().map(str::to_string);
        Usage { model, ..openai_usage(&end["usage"], "input_tokens", "output_tokens") }
    }

    fn text(&self) -> String {
        let said: String = self.items().iter().map(|item| texts(item, "output_text", "text")).collect();
        if said.is_empty() { self.text.clone() } else { said }
    }

    fn reply(&self) -> Option<Reply> {
        let end = self.end.as_ref()?;
        let items = self.items();
        let refusal: String = items.iter().map(|item| texts(item, "refusal", "refusal")).collect();
        let stop = match (end["status"].as_str(), end["incomplete_details"]["reason"].as_str()) {
            _ if !refusal.is_empty() => Stop::Refused,
            (Some("completed"), _) => Stop::Whole,
            (_, Some("max_output_tokens")) => Stop::Length,
            (_, Some("content_filter")) => Stop::Refused,
            (status, reason) => Stop::Unknown(reason.or(status).unwrap_or("nothing").to_string()),
        };
        let text = if refusal.is_empty() { self.text() } else { refusal };
        let calls = items.iter().filter_map(call).collect();
        let entries = items.iter().filter_map(kept).collect();
        Some(Reply { text, calls, stop, entries, usage: self.usage() })
    }
}

impl Folded {
    /// Some endpoints send the items only with the end.
    fn items(&self) -> Vec<Value> {
        if self.items.is_empty()
            && let Some(Value::Array(items)) = self.end.as_ref().map(|end| &end["output"])
        {
            return items.clone();
        }
        self.items.values().cloned().collect()
    }
}

fn texts(item: &Value, kind: &str, field: &str) -> String {
    let parts = item["content"].as_array().into_iter().flatten().filter(|part| part["type"] == kind);
    parts.filter_map(|part| part[field].as_str()).collect()
}

fn call(item: &Value) -> Option<Call> {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    (item["type"] == "function_call").then(|| Call::new(text("call_id"), text("name"), text("arguments")))
}

/// As the conversation keeps it: without ids, which only who stored the response could look up, and without
/// reasoning, which cannot be sent back for the same reason.
fn kept(item: &Value) -> Option<Value> {
    match item["type"].as_str()? {
        "message" => {
            let text = texts(item, "output_text", "text");
            let content = json!([{"type": "output_text", "text": text}]);
            (!text.is_empty()).then(|| json!({"type": "message", "role": "assistant", "content": content}))
        }
        "function_call" => Some(json!({
            "type": "function_call", "call_id": item["call_id"], "name": item["name"],
            "arguments": item["arguments"],
        })),
        _ => None,
    }
}
