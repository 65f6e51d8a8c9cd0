//! Chat Completions: what every OpenAI-compatible endpoint understands.

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::reply::{Answered, Call, Heard, Reply, Stop};
use super::sse::Event;
use super::trouble;
use super::wire::{Ask, Fold, openai_usage, parsed};
use crate::outcome::Miss;

pub fn body(ask: &Ask<'_>) -> Value {
    let system = ask.system.map(|text| json!({"role": "system", "content": text}));
    let messages: Vec<Value> = system.into_iter().chain(ask.history.iter().cloned()).collect();
    let mut body = json!({
        "model": ask.model, "stream": true, "stream_options": {"include_usage": true}, "messages": messages,
    });
    if let Some(effort) = ask.effort {
        body["reasoning_effort"] = effort.into();
    }
    if let Some(most) = ask.max_tokens {
        body["max_completion_tokens"] = most.into();
    }
    if !ask.tools.is_empty() {
        let tool = |tool: &super::ToolSpec| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = ask.tools.iter().map(tool).collect();
    }
    if let Some(shape) = ask.shape {
        let schema = json!({"name": "answer", "schema": shape.schema, "strict": shape.strict});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

pub fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    let result =
        |it: &Answered<'_>| json!({"role": "tool", "tool_call_id": it.call.id, "content": it.text()});
    answered.iter().map(result).collect()
}

pub fn open_calls(history: &[Value]) -> Vec<String> {
    let answers = history.iter().rev().take_while(|entry| entry["role"] == "tool");
    let answered: Vec<&Value> = answers.map(|entry| &entry["tool_call_id"]).collect();
    let asking = history.iter().rev().nth(answered.len()).map(|entry| &entry["tool_calls"]);
    let calls = asking.and_then(Value::as_array).into_iter().flatten().map(|call| &call["id"]);
    calls.filter(|id| !answered.contains(id)).filter_map(|id| id.as_str().map(str::to_string)).collect()
}

#[derive(Debug, Default)]
pub struct Folded {
    text: String,
    refusal: String,
    calls: Vec<Part>,
    finish: Option<String>,
    usage: Option<Value>,
    model: Option<String>,
}

/// A call that is still written.
#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Fold for Folded {
    fn event(&mut self, event: &Event) -> Result<Heard, Miss> {
        if event.data.trim() == "[DONE]" {
            return Ok(if self.finish.is_some() { Heard::Over } else { Heard::Quiet });
        }
        let data = parsed(event);
        if !data["error"].is_null() {
            return Err(trouble::midstream(&data));
        }
        if let Some(model) = data["model"].as_str() {
            self.model = Some(model.to_string());
        }
        if data["usage"].is_object() {
            self.usage = Some(data["usage"].clone());
        }
        let choice = &data["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_string());
        }
        let moved = self.grow(&choice["delta"]) || !choice["finish_reason"].is_null();
        Ok(if moved { Heard::Moved } else { Heard::Quiet })
    }

    fn usage(&self) -> Usage {
        let Some(usage) = &self.usage else { return Usage::default() };
        Usage { model: self.model.clone(), ..openai_usage(usage, "prompt_tokens", "completion_tokens") }
    }

    fn text(&self) -> String {
        if self.text.is_empty() { self.refusal.clone() } else { self.text.clone() }
    }

    /// Not every endpoint says `[DONE]`: a stream that ends well after its reason is whole, too.
    fn reply(&self) -> Option<Reply> {
        let stop = match self.finish.as_deref()? {
            _ if !self.refusal.is_empty() => Stop::Refused,
            "stop" | "tool_calls" | "function_call" => Stop::Whole,
            "length" => Stop::Length,
            "content_filter" => Stop::Refused,
            other => Stop::Unknown(other.to_string()),
        };
        let calls: Vec<Call> =
            self.calls.iter().map(|part| Call::new(&part.id, &part.name, &part.arguments)).collect();
        let mut entry = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let call = |part: &Part| {
                let function = json!({"name": part.name, "arguments": part.arguments});
                json!({"id": part.id, "type": "function", "function": function})
            };
            entry["tool_calls"] = self.calls.iter().map(call).collect();
        }
        let entries = if self.text.is_empty() && calls.is_empty() { Vec::new() } else { vec![entry] };
        Some(Reply { text: self.text(), calls, stop, entries, usage: self.usage() })
    }
}

impl Folded {
    /// Whether anything came of it.
    fn grow(&mut self, delta: &Value) -> bool {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        self.text.push_str(text("content"));
        self.refusal.push_str(text("refusal"));
        let calls = delta["tool_calls"].as_array().into_iter().flatten();
        calls.clone().for_each(|call| self.grow_call(call));
        let words = ["content", "refusal", "reasoning_content", "reasoning"];
        calls.count() > 0 || words.iter().any(|name| !text(name).is_empty())
    }

    fn grow_call(&mut self, more: &Value) {
        let index = more["index"].as_u64();
        let named = !more["id"].as_str().unwrap_or_default().is_empty();
        let at = match index {
            Some(_) => self.calls.iter().position(|part| part.index == index),
            // Without a number a new id is a new call, and everything else belongs to the last one.
            None if named => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| {
            let id = format!("call_{}", self.calls.len() + 1);
            self.calls.push(Part { index, id, ..Part::default() });
            self.calls.len() - 1
        });
        let part = &mut self.calls[at];
        if named {
            part.id = more["id"].as_str().unwrap_or_default().to_string();
        }
        part.name.push_str(more["function"]["name"].as_str().unwrap_or_default());
        part.arguments.push_str(more["function"]["arguments"].as_str().unwrap_or_default());
    }
}
