//! `/v1beta/models/<model>:generateContent` and `:streamGenerateContent`: the protocol of Gemini.

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::piece::{Piece, breaks_off, parts, pause};
use super::turn::Spend;
use super::wire::{Exchange, openai_usage, rough};

/// How Gemini names a status.
const STATUSES: [(u16, &str); 6] = [
    (400, "INVALID_ARGUMENT"),
    (401, "UNAUTHENTICATED"),
    (403, "PERMISSION_DENIED"),
    (404, "NOT_FOUND"),
    (429, "RESOURCE_EXHAUSTED"),
    (503, "UNAVAILABLE"),
];

pub fn plain(exchange: &Exchange<'_>) -> (Value, Usage) {
    let spend = spend(exchange);
    let text = exchange.turn.text.iter().map(|text| json!({"text": text}));
    let content: Vec<Value> = text.chain(calls(exchange)).collect();
    let mut whole = chunk(content, Some("STOP"));
    whole["usageMetadata"] = wire_usage(&spend);
    (whole, openai_usage(&spend))
}

pub fn stream(exchange: &Exchange<'_>) -> Vec<Piece> {
    let (turn, mut pieces) = (exchange.turn, Vec::new());
    for part in parts(turn.text.as_deref().unwrap_or_default()) {
        pause(&mut pieces, turn.pace_ms);
        pieces.push(Piece::data(&chunk(vec![json!({"text": part})], None)));
    }
    let (stall, end) = breaks_off(turn, |kind| Piece::data(&error(500, kind, "scripted mid-stream error")));
    pieces.extend(stall);
    if let Some(end) = end {
        pieces.push(end);
        return pieces;
    }
    let spend = spend(exchange);
    let mut last = chunk(calls(exchange).collect(), Some("STOP"));
    last["usageMetadata"] = wire_usage(&spend);
    pieces.push(Piece::data(&last).sends(openai_usage(&spend)));
    pieces
}

pub fn error(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": kind}})
}

pub fn error_type(status: u16) -> &'static str {
    STATUSES.iter().find(|(known, _)| *known == status).map_or("INTERNAL", |(_, name)| name)
}

fn chunk(parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({"candidates": [candidate]})
}

fn calls<'a>(exchange: &Exchange<'a>) -> impl Iterator<Item = Value> + use<'a> {
    let tools = exchange.turn.tools.iter();
    tools.map(|tool| json!({"functionCall": {"name": tool.name, "args": tool.input}}))
}

fn spend(exchange: &Exchange<'_>) -> Spend {
    let said = exchange.turn.usage;
    Spend {
        input_tokens: said.input_tokens.or_else(|| Some(rough(&exchange.request["contents"]))),
        output_tokens: said.output_tokens.or_else(|| Some(rough(&json!(exchange.turn.text)))),
        ..said
    }
}

fn wire_usage(spend: &Spend) -> Value {
    let [input, output] = [spend.input_tokens, spend.output_tokens].map(Option::unwrap_or_default);
    let thought = spend.reasoning.unwrap_or_default();
    json!({
        "promptTokenCount": input, "candidatesTokenCount": output.saturating_sub(thought),
        "thoughtsTokenCount": thought, "totalTokenCount": input.saturating_add(output),
        "cachedContentTokenCount": spend.cache_read_input_tokens.unwrap_or_default(),
    })
}
