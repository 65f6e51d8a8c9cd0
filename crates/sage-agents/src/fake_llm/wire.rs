//! The four protocols, and what an answer in one of them is made from.

use sage_core::port::Usage;
use serde_json::{Value, json};

use super::number::Numbers;
use super::piece::Piece;
use super::turn::{Problem, Spend, Turn};
use super::{anthropic, chat, gemini, responses};

/// How the path ends where Gemini streams.
const STREAM: &str = ":streamGenerateContent";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// One request and the turn that answers it.
#[derive(Debug)]
pub struct Exchange<'a> {
    pub request: &'a Value,
    pub turn: &'a Turn,
    pub numbers: &'a Numbers,
    /// Seconds since the epoch.
    pub now_s: u64,
}

impl Wire {
    /// By the end of the path: a client's base address may be with or without `/v1`.
    pub fn of(path: &str) -> Option<Wire> {
        match path.trim_end_matches('/') {
            path if path.ends_with("/messages") => Some(Wire::Anthropic),
            path if path.ends_with("/responses") => Some(Wire::Responses),
            path if path.ends_with("/chat/completions") => Some(Wire::Chat),
            path if path.ends_with(":generateContent") || path.ends_with(STREAM) => Some(Wire::Gemini),
            _ => None,
        }
    }

    /// Gemini says by the path whether it wants a stream, all others in the request.
    pub fn is_streamed(path: &str, request: &Value) -> bool {
        request["stream"] == true || path.ends_with(STREAM)
    }

    pub fn plain(self, exchange: &Exchange<'_>) -> (Value, Usage) {
        match self {
            Wire::Anthropic => anthropic::plain(exchange),
            Wire::Responses => responses::plain(exchange),
            Wire::Chat => chat::plain(exchange),
            Wire::Gemini => gemini::plain(exchange),
        }
    }

    pub fn stream(self, exchange: &Exchange<'_>) -> Vec<Piece> {
        match self {
            Wire::Anthropic => anthropic::stream(exchange),
            Wire::Responses => responses::stream(exchange),
            Wire::Chat => chat::stream(exchange),
            Wire::Gemini => gemini::stream(exchange),
        }
    }

    pub fn error(self, status: u16, problem: &Problem) -> Value {
        let message = problem.message.clone().unwrap_or_else(|| format!("scripted {status}"));
        match self {
            Wire::Anthropic => {
                let kind = problem.kind.as_deref().or(problem.code.as_deref());
                anthropic::error(kind.unwrap_or(anthropic::error_type(status)), &message)
            }
            Wire::Responses | Wire::Chat => openai_error(status, problem, &message),
            Wire::Gemini => {
                let kind = problem.kind.as_deref().unwrap_or(gemini::error_type(status));
                gemini::error(status, kind, &message)
            }
        }
    }
}

/// A single name stands for type and code, as `insufficient_quota` does in earnest.
fn openai_error(status: u16, problem: &Problem, message: &str) -> Value {
    let usual = match status {
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let kind = problem.kind.as_deref().or(problem.code.as_deref()).unwrap_or(usual);
    let code = problem.code.as_deref().or(problem.kind.as_deref());
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Tokens of a text, roughly, for turns that state no usage.
pub fn rough(value: &Value) -> u64 {
    (value.to_string().len() as u64 / 4).max(1)
}

/// Classes that do not overlap, of usage as OpenAI sends it: input with what came from and went to the cache,
/// output with reasoning.
pub fn openai_usage(spend: &Spend) -> Usage {
    let [read, write, reasoning] =
        [spend.cache_read_input_tokens, spend.cache_creation_input_tokens, spend.reasoning]
            .map(Option::unwrap_or_default);
    let without = |all: Option<u64>, part: u64| Some(all.unwrap_or_default().saturating_sub(part));
    Usage {
        input: without(spend.input_tokens, read.saturating_add(write)),
        cache_read: Some(read),
        cache_write: Some(write),
        output: without(spend.output_tokens, reasoning),
        reasoning: Some(reasoning),
        ..Usage::default()
    }
}
