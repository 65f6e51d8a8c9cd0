//! Anthropic's Messages: the request with its cache marks, and the answer from its blocks.

use std::collections::BTreeMap;

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::reply::{Answered, Call, Heard, Reply, Stop};
use super::sse::Event;
use super::structured::STRUCTURED;
use super::trouble;
use super::wire::{Ask, Fold, parsed};
use crate::outcome::Miss;

/// The protocol wants a number; what every current model can give.
const MAX_TOKENS: u32 = 32_000;

pub fn body(ask: &Ask<'_>) -> Value {
    let mut messages = ask.history.to_vec();
    if let Some(block) = messages.last_mut().and_then(|last| last["content"].as_array_mut()?.last_mut()) {
        block["cache_control"] = cached();
    }
    let mut tools: Vec<Value> = ask
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
        })
        .collect();
    let mut body = json!({
        "model": ask.model, "max_tokens": ask.max_tokens.unwrap_or(MAX_TOKENS), "stream": true,
        "messages": messages,
    });
    if let Some(effort) = ask.effort {
        body["output_config"] = json!({"effort": effort});
    }
    if let Some(system) = ask.system {
        body["system"] = json!([{"type": "text", "text": system, "cache_control": cached()}]);
    }
    if let Some(shape) = ask.shape {
        // With other tools it may use them first; in the end it must use this one, as there is no other way.
        body["tool_choice"] = if tools.is_empty() {
            json!({"type": "tool", "name": STRUCTURED})
        } else {
            json!({"type": "any"})
        };
        let description = "Give the final answer. Use it exactly once, when everything else is done.";
        tools.push(json!({"name": STRUCTURED, "description": description, "input_schema": shape.schema}));
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    body
}

fn cached() -> Value {
    json!({"type": "ephemeral"})
}

pub fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    let result = |it: &Answered<'_>| {
        let (text, is_error) = match &it.result {
            Ok(text) => (text, false),
            Err(message) => (message, true),
        };
        json!({"type": "tool_result", "tool_use_id": it.call.id, "content": text, "is_error": is_error})
    };
    vec![json!({"role": "user", "content": answered.iter().map(result).collect::<Vec<_>>()})]
}

pub fn open_calls(history: &[Value]) -> Vec<String> {
    let Some(last) = history.last().filter(|last| last["role"] == "assistant") else {
        return Vec::new();
    };
    let blocks = last["content"].as_array().into_iter().flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    calls.filter_map(|block| block["id"].as_str().map(str::to_string)).collect()
}

#[derive(Debug, Default)]
pub struct Folded {
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    usage: Option<Value>,
    model: Option<String>,
    over: bool,
}

/// A block as it began, and the text of its input so far.
#[derive(Debug)]
struct Block {
    content: Value,
    input: String,
}

impl Fold for Folded {
    fn event(&mut self, event: &Event) -> Result<Heard, Miss> {
        let data = parsed(event);
        match data["type"].as_str() {
            Some("message_start") => {
                self.model = data["message"]["model"].as_str().map(str::to_string);
                self.count(&data["message"]["usage"]);
            }
            Some("content_block_start") => {
                let block = Block { content: data["content_block"].clone(), input: String::new() };
                self.blocks.insert(data["index"].as_u64().unwrap_or_default(), block);
            }
            Some("content_block_delta") => {
                if let Some(block) = self.blocks.get_mut(&data["index"].as_u64().unwrap_or_default()) {
                    block.grow(&data["delta"]);
                }
            }
            Some("message_delta") => {
                self.count(&data["usage"]);
                self.stop = data["delta"]["stop_reason"].as_str().map(str::to_string).or(self.stop.take());
            }
            Some("message_stop") => {
                self.over = true;
                return Ok(Heard::Over);
            }
            Some("error") => return Err(trouble::midstream(&data)),
            // Pings, and what is to come.
            _ => return Ok(Heard::Quiet),
        }
        Ok(Heard::Moved)
    }

    fn usage(&self) -> Usage {
        let Some(usage) = &self.usage else { return Usage::default() };
        let tokens = |name: &str| usage[name].as_u64();
        let reasoning = usage["output_tokens_details"]["thinking_tokens"].as_u64();
        Usage {
            input: tokens("input_tokens"),
            cache_read: tokens("cache_read_input_tokens"),
            cache_write: tokens("cache_creation_input_tokens"),
            output: tokens("output_tokens").map(|all| all.saturating_sub(reasoning.unwrap_or_default())),
            reasoning,
            model: self.model.clone(),
            ..Usage::default()
        }
    }

    fn text(&self) -> String {
        let texts = self.blocks.values().filter(|block| block.content["type"] == "text");
        texts.filter_map(|block| block.content["text"].as_str()).collect()
    }

    fn reply(&self) -> Option<Reply> {
        let stop = match self.stop.as_deref().filter(|_| self.over)? {
            "end_turn" | "stop_sequence" | "tool_use" => Stop::Whole,
            "pause_turn" => Stop::Paused,
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Refused,
            other => Stop::Unknown(other.to_string()),
        };
        let calls: Vec<Call> = self.blocks.values().filter_map(Block::call).collect();
        let content: Vec<Value> = self.blocks.values().filter_map(Block::kept).collect();
        let entry = json!({"role": "assistant", "content": content});
        let entries = if content.is_empty() { Vec::new() } else { vec![entry] };
        Some(Reply { text: self.text(), calls, stop, entries, usage: self.usage() })
    }
}

impl Folded {
    /// Later figures are totals, too; what they leave out stays.
    fn count(&mut self, usage: &Value) {
        let fields = usage.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let known = self.usage.get_or_insert_with(|| json!({}));
        fields.for_each(|(name, value)| known[name] = value.clone());
    }
}

impl Block {
    fn grow(&mut self, delta: &Value) {
        let field = match delta["type"].as_str() {
            Some("text_delta") => "text",
            Some("thinking_delta") => "thinking",
            Some("signature_delta") => "signature",
            Some("input_json_delta") => {
                self.input.push_str(delta["partial_json"].as_str().unwrap_or_default());
                return;
            }
            _ => return,
        };
        let more = delta[field].as_str().unwrap_or_default();
        match &mut self.content[field] {
            Value::String(text) => text.push_str(more),
            other => *other = more.into(),
        }
    }

    fn call(&self) -> Option<Call> {
        let text = |name: &str| self.content[name].as_str().unwrap_or_default();
        let is_call = self.content["type"] == "tool_use";
        let begun = self.content["input"].as_object().filter(|input| !input.is_empty());
        match begun.filter(|_| self.input.is_empty()) {
            _ if !is_call => None,
            Some(input) => Some(Call {
                id: text("id").into(),
                name: text("name").into(),
                input: Ok(Value::Object(input.clone())),
            }),
            None => Some(Call::new(text("id"), text("name"), &self.input)),
        }
    }

    /// As the conversation keeps it. Empty text is refused by the endpoint when it comes back.
    fn kept(&self) -> Option<Value> {
        if self.content["type"] == "text"
            && self.content["text"].as_str().is_none_or(|text| text.trim().is_empty())
        {
            return None;
        }
        let mut block = self.content.clone();
        if let Some(call) = self.call() {
            block["input"] = call.input.unwrap_or_else(|_| json!({}));
        }
        Some(block)
    }
}
