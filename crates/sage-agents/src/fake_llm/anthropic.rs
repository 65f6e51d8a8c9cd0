//! `/v1/messages`: Anthropic's protocol, as one object or as its stream of events.

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::piece::{Piece, breaks_off, parts, pause};
use super::stop_reason;
use super::turn::{Spend, Turn};
use super::wire::{Exchange, rough};

pub fn plain(exchange: &Exchange<'_>) -> (Value, Usage) {
    let blocks = blocks(exchange);
    let spend = spend(exchange, &blocks);
    let mut message = message(exchange, &spend);
    message["content"] = blocks.into();
    message["stop_reason"] = stop_reason::anthropic(exchange.turn).into();
    (message, usage(&spend))
}

pub fn stream(exchange: &Exchange<'_>) -> Vec<Piece> {
    let (turn, blocks) = (exchange.turn, blocks(exchange));
    let spend = spend(exchange, &blocks);
    // The first event has the input and hardly any output; the last one has the output.
    let output = spend.output_tokens.unwrap_or_default();
    let first = output.saturating_sub(spend.reasoning.unwrap_or_default()).min(1);
    let begun = Spend { output_tokens: Some(first), reasoning: None, ..spend };
    let start = event("message_start", json!({"message": message(exchange, &begun)}));
    let mut pieces = vec![start.sends(usage(&begun)), event("ping", json!({}))];
    if let Some(kind) = &turn.failed {
        pieces.push(broken(kind));
        return pieces;
    }
    let before_tools = blocks.iter().take_while(|block| block["type"] != "tool_use").count();
    for (index, block) in blocks[..before_tools].iter().enumerate() {
        push_block(&mut pieces, index, block, turn.pace_ms);
    }
    let (stall, end) = breaks_off(turn, broken);
    pieces.extend(stall);
    if let Some(end) = end {
        pieces.push(end);
        return pieces;
    }
    for (index, block) in blocks.iter().enumerate().skip(before_tools) {
        push_block(&mut pieces, index, block, turn.pace_ms);
    }
    let delta = json!({"stop_reason": stop_reason::anthropic(turn), "stop_sequence": null});
    let all = usage(&spend);
    let rest = Usage {
        output: all.output.map(|output| output - first),
        reasoning: all.reasoning,
        ..Usage::default()
    };
    let end = event("message_delta", json!({"delta": delta, "usage": output_usage(&spend)}));
    pieces.extend([end.sends(rest), event("message_stop", json!({}))]);
    pieces
}

pub fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub fn error_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

fn broken(kind: &str) -> Piece {
    Piece::named("error", &error(kind, "scripted mid-stream error"))
}

fn message(exchange: &Exchange<'_>, spend: &Spend) -> Value {
    let mut usage = json!({
        "input_tokens": spend.input_tokens,
        "cache_creation_input_tokens": spend.cache_creation_input_tokens,
        "cache_read_input_tokens": spend.cache_read_input_tokens,
    });
    if let (Some(usage), Value::Object(output)) = (usage.as_object_mut(), output_usage(spend)) {
        usage.extend(output);
    }
    json!({
        "id": exchange.numbers.id("msg"), "type": "message", "role": "assistant",
        "model": exchange.request["model"], "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage,
    })
}

fn output_usage(spend: &Spend) -> Value {
    let mut usage = json!({"output_tokens": spend.output_tokens});
    if let Some(reasoning) = spend.reasoning {
        usage["output_tokens_details"] = json!({"thinking_tokens": reasoning});
    }
    usage
}

fn blocks(exchange: &Exchange<'_>) -> Vec<Value> {
    let Turn { text, thinking, tools, custom_tool, .. } = exchange.turn;
    let id = |id: Option<&String>| id.cloned().unwrap_or_else(|| exchange.numbers.id("toolu"));
    let mut blocks = Vec::new();
    blocks.extend(
        thinking.iter().map(|text| json!({"type": "thinking", "thinking": text, "signature": "c2ln"})),
    );
    blocks.extend(text.iter().map(|text| json!({"type": "text", "text": text})));
    blocks.extend(tools.iter().map(|tool| {
        json!({"type": "tool_use", "id": id(tool.id.as_ref()), "name": tool.name, "input": tool.input})
    }));
    // There are no tools with plain text as input here.
    blocks.extend(custom_tool.iter().map(
        |tool| json!({"type": "tool_use", "id": id(None), "name": tool.name, "input": {"input": tool.input}}),
    ));
    blocks
}

fn spend(exchange: &Exchange<'_>, blocks: &[Value]) -> Spend {
    let said = exchange.turn.usage;
    Spend {
        input_tokens: said.input_tokens.or_else(|| Some(rough(&exchange.request["messages"]))),
        output_tokens: said.output_tokens.or_else(|| Some(rough(&blocks.to_vec().into()))),
        cache_read_input_tokens: said.cache_read_input_tokens.or(Some(0)),
        cache_creation_input_tokens: said.cache_creation_input_tokens.or(Some(0)),
        reasoning: said.reasoning,
    }
}

fn usage(spend: &Spend) -> Usage {
    Usage {
        input: spend.input_tokens,
        cache_read: spend.cache_read_input_tokens,
        cache_write: spend.cache_creation_input_tokens,
        output: spend.output_tokens.map(|all| all.saturating_sub(spend.reasoning.unwrap_or_default())),
        reasoning: spend.reasoning,
        ..Usage::default()
    }
}

fn push_block(pieces: &mut Vec<Piece>, index: usize, block: &Value, pace_ms: u64) {
    let (empty, deltas) = unfold(block);
    pieces.push(event("content_block_start", json!({"index": index, "content_block": empty})));
    for delta in deltas {
        pause(pieces, pace_ms);
        pieces.push(event("content_block_delta", json!({"index": index, "delta": delta})));
    }
    pieces.push(event("content_block_stop", json!({"index": index})));
}

/// The block as it begins, and what is added to it.
fn unfold(block: &Value) -> (Value, Vec<Value>) {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_string();
    match block["type"].as_str() {
        Some("text") => {
            let deltas = parts(&text("text")).map(|part| json!({"type": "text_delta", "text": part}));
            (json!({"type": "text", "text": ""}), deltas.collect())
        }
        Some("thinking") => {
            let thinking =
                parts(&text("thinking")).map(|part| json!({"type": "thinking_delta", "thinking": part}));
            let signature = json!({"type": "signature_delta", "signature": block["signature"]});
            (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                thinking.chain([signature]).collect(),
            )
        }
        _ => {
            let mut empty = block.clone();
            empty["input"] = json!({});
            let input = block["input"].to_string();
            let deltas = parts(&input).map(|part| json!({"type": "input_json_delta", "partial_json": part}));
            (empty, deltas.collect())
        }
    }
}

fn event(name: &str, fields: Value) -> Piece {
    let mut data = json!({"type": name});
    if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
        data.extend(fields);
    }
    Piece::named(name, &data)
}
