//! `/v1/responses`: OpenAI's protocol with items, as one object or as its stream of numbered events.

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::piece::{Piece, breaks_off, parts, pause};
use super::stop_reason;
use super::turn::{Spend, Turn};
use super::wire::{Exchange, openai_usage, rough};

pub fn plain(exchange: &Exchange<'_>) -> (Value, Usage) {
    let items = items(exchange);
    let spend = spend(exchange, &items);
    let mut response = response(exchange, &spend);
    response["output"] = items.into();
    if let Some(code) = &exchange.turn.failed {
        fail(&mut response, code);
    }
    (response, openai_usage(&spend))
}

pub fn stream(exchange: &Exchange<'_>) -> Vec<Piece> {
    let (turn, items) = (exchange.turn, items(exchange));
    let spend = spend(exchange, &items);
    let mut whole = response(exchange, &spend);
    let mut begun = whole.clone();
    (begun["status"], begun["usage"], begun["incomplete_details"]) =
        ("in_progress".into(), Value::Null, Value::Null);
    let mut events = Events::default();
    events.push("response.created", json!({"response": begun}));
    events.push("response.in_progress", json!({"response": begun}));
    if let Some(code) = &turn.failed {
        fail(&mut whole, code);
        events.push("response.failed", json!({"response": whole}));
        return events.sends(openai_usage(&spend));
    }
    let before_tools = items.iter().take_while(|item| !is_call(item)).count();
    for (index, item) in items[..before_tools].iter().enumerate() {
        events.item(index, item, turn.pace_ms);
    }
    let (stall, end) = breaks_off(turn, |code| broken(code, events.number));
    events.pieces.extend(stall);
    if let Some(end) = end {
        events.pieces.push(end);
        return events.pieces;
    }
    for (index, item) in items.iter().enumerate().skip(before_tools) {
        events.item(index, item, turn.pace_ms);
    }
    let name = if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    whole["output"] = items.into();
    events.push(name, json!({"response": whole}));
    events.sends(openai_usage(&spend))
}

fn fail(response: &mut Value, code: &str) {
    response["status"] = "failed".into();
    response["output"] = json!([]);
    response["error"] = json!({"code": code, "message": "scripted failure"});
}

fn broken(code: &str, number: u64) -> Piece {
    let message = "scripted mid-stream error";
    let data =
        json!({"type": "error", "sequence_number": number, "code": code, "message": message, "param": null});
    Piece::named("error", &data)
}

fn response(exchange: &Exchange<'_>, spend: &Spend) -> Value {
    let incomplete = stop_reason::incomplete(exchange.turn);
    let [input, output] = [spend.input_tokens, spend.output_tokens].map(Option::unwrap_or_default);
    json!({
        "id": exchange.numbers.id("resp"), "object": "response", "created_at": exchange.now_s,
        "status": if incomplete.is_some() { "incomplete" } else { "completed" },
        "incomplete_details": incomplete.map(|reason| json!({"reason": reason})),
        "error": null, "model": exchange.request["model"], "output": [],
        "usage": {
            "input_tokens": input,
            "input_tokens_details": {
                "cached_tokens": spend.cache_read_input_tokens.unwrap_or_default(),
                "cache_write_tokens": spend.cache_creation_input_tokens.unwrap_or_default(),
            },
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": spend.reasoning.unwrap_or_default()},
            "total_tokens": input.saturating_add(output),
        },
    })
}

fn items(exchange: &Exchange<'_>) -> Vec<Value> {
    let (turn, id) = (exchange.turn, |kind: &str| exchange.numbers.id(kind));
    let Turn { text, thinking, tools, custom_tool, .. } = turn;
    let mut items = Vec::new();
    items.extend(thinking.iter().map(|text| {
        json!({"type": "reasoning", "id": id("rs"), "summary": [{"type": "summary_text", "text": text}]})
    }));
    items.extend(text.iter().map(|text| {
        let content = if stop_reason::refuses(turn) {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": []})
        };
        json!({"type": "message", "id": id("msg"), "role": "assistant", "status": "completed", "content": [content]})
    }));
    items.extend(tools.iter().map(|tool| {
        let mut call = json!({
            "type": "function_call", "id": id("fc"), "call_id": tool.id.clone().unwrap_or_else(|| id("call")),
            "name": tool.name, "arguments": tool.input.to_string(), "status": "completed",
        });
        if let Some(namespace) = &tool.namespace {
            call["namespace"] = namespace.as_str().into();
        }
        call
    }));
    items.extend(custom_tool.iter().map(|tool| {
        json!({
            "type": "custom_tool_call", "id": id("ctc"), "call_id": id("call"),
            "name": tool.name, "input": tool.input, "status": "completed",
        })
    }));
    items
}

fn is_call(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("function_call" | "custom_tool_call"))
}

fn spend(exchange: &Exchange<'_>, items: &[Value]) -> Spend {
    let said = exchange.turn.usage;
    Spend {
        input_tokens: said.input_tokens.or_else(|| Some(rough(&exchange.request["input"]))),
        output_tokens: said.output_tokens.or_else(|| Some(rough(&items.to_vec().into()))),
        ..said
    }
}

/// Each event has its number.
#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
    number: u64,
}

impl Events {
    fn push(&mut self, name: &str, fields: Value) {
        let mut data = json!({"type": name, "sequence_number": self.number});
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        self.number += 1;
        self.pieces.push(Piece::named(name, &data));
    }

    /// With the last event.
    fn sends(mut self, usage: Usage) -> Vec<Piece> {
        let last = self.pieces.pop().map(|piece| piece.sends(usage));
        self.pieces.extend(last);
        self.pieces
    }

    fn item(&mut self, index: usize, item: &Value, pace_ms: u64) {
        let (begun, kind, text) = unfold(item);
        self.push("response.output_item.added", json!({"output_index": index, "item": begun}));
        let place =
            json!({"item_id": item["id"], "output_index": index, "content_index": 0, "summary_index": 0});
        for part in parts(&text) {
            pause(&mut self.pieces, pace_ms);
            let mut delta = place.clone();
            delta["delta"] = part.into();
            self.push(&format!("response.{kind}.delta"), delta);
        }
        let mut done = place;
        let name = match kind {
            "refusal" => "refusal",
            "function_call_arguments" => "arguments",
            "custom_tool_call_input" => "input",
            _ => "text",
        };
        done[name] = text.into();
        self.push(&format!("response.{kind}.done"), done);
        self.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
}

/// The item as it begins, and the kind and text of what is added to it.
fn unfold(item: &Value) -> (Value, &'static str, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut begun = item.clone();
    match item["type"].as_str() {
        Some("reasoning") => {
            begun["summary"] = json!([]);
            (begun, "reasoning_summary_text", text(&item["summary"][0]["text"]))
        }
        Some("message") => {
            (begun["content"], begun["status"]) = (json!([]), "in_progress".into());
            let content = &item["content"][0];
            match content["refusal"].as_str() {
                Some(refusal) => (begun, "refusal", refusal.to_string()),
                None => (begun, "output_text", text(&content["text"])),
            }
        }
        Some("custom_tool_call") => {
            (begun["input"], begun["status"]) = ("".into(), "in_progress".into());
            (begun, "custom_tool_call_input", text(&item["input"]))
        }
        _ => {
            (begun["arguments"], begun["status"]) = ("".into(), "in_progress".into());
            (begun, "function_call_arguments", text(&item["arguments"]))
        }
    }
}
