//! `/v1/chat/completions`: the protocol that every OpenAI-compatible endpoint speaks.

use bytes::Bytes;
use sage_core::port::Usage;
use serde_json::{Value, json};

use super::piece::{Piece, breaks_off, parts, pause};
use super::stop_reason;
use super::turn::Spend;
use super::wire::{Exchange, openai_usage, rough};

pub fn plain(exchange: &Exchange<'_>) -> (Value, Usage) {
    let (turn, calls) = (exchange.turn, calls(exchange));
    let spend = spend(exchange, &calls);
    let mut message = json!({"role": "assistant", "content": turn.text, "refusal": null});
    if stop_reason::refuses(turn) {
        (message["content"], message["refusal"]) = (Value::Null, turn.text.clone().into());
    }
    if let Some(thinking) = &turn.thinking {
        message["reasoning_content"] = thinking.as_str().into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": stop_reason::chat(turn)});
    let mut whole = head(exchange, "chat.completion");
    (whole["choices"], whole["usage"]) = (json!([choice]), wire_usage(&spend));
    (whole, openai_usage(&spend))
}

pub fn stream(exchange: &Exchange<'_>) -> Vec<Piece> {
    let (turn, calls) = (exchange.turn, calls(exchange));
    let chunks = Chunks(head(exchange, "chat.completion.chunk"));
    let mut pieces = vec![chunks.delta(json!({"role": "assistant", "content": ""}))];
    if let Some(code) = &turn.failed {
        pieces.push(broken(code));
        return pieces;
    }
    let field = if stop_reason::refuses(turn) { "refusal" } else { "content" };
    for (field, text) in [("reasoning_content", &turn.thinking), (field, &turn.text)] {
        for part in parts(text.as_deref().unwrap_or_default()) {
            pause(&mut pieces, turn.pace_ms);
            pieces.push(chunks.delta(json!({field: part})));
        }
    }
    let (stall, end) = breaks_off(turn, broken);
    pieces.extend(stall);
    if let Some(end) = end {
        pieces.push(end);
        return pieces;
    }
    calls.iter().enumerate().for_each(|(index, call)| pieces.extend(chunks.call(index, call)));
    pieces.push(chunks.end(stop_reason::chat(turn)));
    if exchange.request["stream_options"]["include_usage"] == true {
        let spend = spend(exchange, &calls);
        pieces.push(chunks.usage(wire_usage(&spend)).sends(openai_usage(&spend)));
    }
    pieces.push(Piece::Event { bytes: Bytes::from_static(b"data: [DONE]\n\n"), sent: None });
    pieces
}

fn broken(code: &str) -> Piece {
    let message = "scripted mid-stream error";
    Piece::data(&json!({"error": {"message": message, "type": code, "param": null, "code": code}}))
}

fn head(exchange: &Exchange<'_>, object: &str) -> Value {
    let id = exchange.numbers.id("chatcmpl");
    json!({"id": id, "object": object, "created": exchange.now_s, "model": exchange.request["model"]})
}

fn calls(exchange: &Exchange<'_>) -> Vec<Value> {
    let functions = exchange.turn.tools.iter().map(|tool| {
        let id = tool.id.clone().unwrap_or_else(|| exchange.numbers.id("call"));
        let function = json!({"name": tool.name, "arguments": tool.input.to_string()});
        json!({"id": id, "type": "function", "function": function})
    });
    let custom = exchange.turn.custom_tool.iter().map(|tool| {
        let custom = json!({"name": tool.name, "input": tool.input});
        json!({"id": exchange.numbers.id("call"), "type": "custom", "custom": custom})
    });
    functions.chain(custom).collect()
}

fn spend(exchange: &Exchange<'_>, calls: &[Value]) -> Spend {
    let said = exchange.turn.usage;
    let text = || rough(&json!([exchange.turn.text, calls]));
    Spend {
        input_tokens: said.input_tokens.or_else(|| Some(rough(&exchange.request["messages"]))),
        output_tokens: said.output_tokens.or_else(|| Some(text())),
        ..said
    }
}

fn wire_usage(spend: &Spend) -> Value {
    let [input, output] = [spend.input_tokens, spend.output_tokens].map(Option::unwrap_or_default);
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {
            "cached_tokens": spend.cache_read_input_tokens.unwrap_or_default(),
            "cache_write_tokens": spend.cache_creation_input_tokens.unwrap_or_default(),
        },
        "completion_tokens_details": {"reasoning_tokens": spend.reasoning.unwrap_or_default()},
    })
}

/// Every chunk begins with the same head.
struct Chunks(Value);

impl Chunks {
    fn chunk(&self, choices: Value, usage: Option<Value>) -> Piece {
        let mut chunk = self.0.clone();
        chunk["choices"] = choices;
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        Piece::data(&chunk)
    }

    fn delta(&self, delta: Value) -> Piece {
        self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), None)
    }

    fn end(&self, reason: &str) -> Piece {
        self.chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), None)
    }

    fn usage(&self, usage: Value) -> Piece {
        self.chunk(json!([]), Some(usage))
    }

    /// First the name, then the arguments in parts.
    fn call(&self, index: usize, call: &Value) -> Vec<Piece> {
        let (kind, field) =
            if call["type"] == "custom" { ("custom", "input") } else { ("function", "arguments") };
        let mut begun = call.clone();
        begun["index"] = index.into();
        begun[kind][field] = "".into();
        let text = call[kind][field].as_str().unwrap_or_default();
        let more = parts(text).map(|part| json!({"index": index, kind: {field: part}}));
        [begun].into_iter().chain(more).map(|call| self.delta(json!({"tool_calls": [call]}))).collect()
    }
}
