//! The protocols of models: how to ask in each, and how to put an answer together from its events.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use sage_core::port::{FileKind, PromptFile, Usage};
use serde_json::{Value, json};

use super::reply::{Answered, Heard, Reply};
use super::sse::Event;
use super::structured::Shape;
use super::tools::ToolSpec;
use super::{anthropic, chat, responses};
use crate::agent::effort;
use crate::outcome::Miss;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Anthropic,
    Responses,
    Chat,
}

/// Everything that one request says.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub model: &'a str,
    pub system: Option<&'a str>,
    pub history: &'a [Value],
    pub tools: &'a [ToolSpec],
    /// The answer shall be JSON of this shape.
    pub shape: Option<&'a Shape>,
    pub max_tokens: Option<u32>,
    /// How much it thinks, in the words of the protocol.
    pub effort: Option<&'a str>,
}

/// An answer that grows event by event.
pub trait Fold: Send {
    fn event(&mut self, event: &Event) -> Result<Heard, Miss>;

    /// What the endpoint has said about usage so far, and which model it says it is.
    fn usage(&self) -> Usage;

    /// What the model has said so far.
    fn text(&self) -> String;

    /// The whole answer, once its end was heard; `None` before.
    fn reply(&self) -> Option<Reply>;
}

impl Api {
    pub fn named(name: &str) -> Option<Api> {
        match name {
            "anthropic" => Some(Api::Anthropic),
            "responses" => Some(Api::Responses),
            "chat" => Some(Api::Chat),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::Responses => "responses",
            Api::Chat => "chat",
        }
    }

    /// Levels of thinking that its models know.
    pub fn efforts(self) -> &'static [&'static str] {
        match self {
            Api::Anthropic => effort::ANTHROPIC,
            Api::Responses | Api::Chat => effort::OPENAI,
        }
    }

    /// What comes after the address and its `/v1`.
    pub fn path(self) -> &'static str {
        match self {
            Api::Anthropic => "/messages",
            Api::Responses => "/responses",
            Api::Chat => "/chat/completions",
        }
    }

    /// `None` if the key cannot be sent at all.
    pub fn headers(self, key: Option<&str>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let (name, value) = match self {
            Api::Anthropic => {
                let version =
                    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
                headers.extend([version]);
                (HeaderName::from_static("x-api-key"), key.map(str::to_string))
            }
            Api::Responses | Api::Chat => (AUTHORIZATION, key.map(|key| format!("Bearer {key}"))),
        };
        if let Some(value) = value {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Some(headers)
    }

    pub fn body(self, ask: &Ask<'_>) -> Value {
        match self {
            Api::Anthropic => anthropic::body(ask),
            Api::Responses => responses::body(ask),
            Api::Chat => chat::body(ask),
        }
    }

    pub fn fold(self) -> Box<dyn Fold> {
        match self {
            Api::Anthropic => Box::new(anthropic::Folded::default()),
            Api::Responses => Box::new(responses::Folded::default()),
            Api::Chat => Box::new(chat::Folded::default()),
        }
    }

    /// What a person says, as an entry of the conversation; `files` are images and PDFs.
    pub fn said(self, text: &str, files: &[PromptFile]) -> Value {
        let first = match self {
            Api::Anthropic | Api::Chat => json!({"type": "text", "text": text}),
            Api::Responses => json!({"type": "input_text", "text": text}),
        };
        if self == Api::Chat && files.is_empty() {
            return json!({"role": "user", "content": text});
        }
        let content: Vec<Value> =
            [first].into_iter().chain(files.iter().map(|file| self.file(file))).collect();
        json!({"role": "user", "content": content})
    }

    fn file(self, file: &PromptFile) -> Value {
        let (media, data) = (file.media_type(), file.base64());
        let is_image = file.kind == FileKind::Image;
        let url = format!("data:{media};base64,{data}");
        match (self, is_image) {
            (Api::Anthropic, _) => {
                let source = json!({"type": "base64", "media_type": media, "data": data});
                json!({"type": if is_image { "image" } else { "document" }, "source": source})
            }
            (Api::Responses, true) => json!({"type": "input_image", "image_url": url}),
            (Api::Responses, false) => json!({"type": "input_file", "filename": file.path, "file_data": url}),
            (Api::Chat, true) => json!({"type": "image_url", "image_url": {"url": url}}),
            (Api::Chat, false) => json!({"type": "file", "file": {"filename": file.path, "file_data": url}}),
        }
    }

    /// The text of an entry that `said` made.
    pub fn said_text(self, entry: &Value) -> Option<&str> {
        if entry["role"] != "user" {
            return None;
        }
        match self {
            Api::Anthropic | Api::Responses => entry["content"][0]["text"].as_str(),
            Api::Chat => entry["content"].as_str().or_else(|| entry["content"][0]["text"].as_str()),
        }
    }

    /// What tools said, as entries of the conversation.
    pub fn results(self, answered: &[Answered<'_>]) -> Vec<Value> {
        match self {
            Api::Anthropic => anthropic::results(answered),
            Api::Responses => responses::results(answered),
            Api::Chat => chat::results(answered),
        }
    }

    /// Ids of calls at the end of a conversation that nothing was said to.
    pub fn open_calls(self, history: &[Value]) -> Vec<String> {
        match self {
            Api::Anthropic => anthropic::open_calls(history),
            Api::Responses => responses::open_calls(history),
            Api::Chat => chat::open_calls(history),
        }
    }
}

/// The data of an event; what is no JSON is left out by who reads on.
pub fn parsed(event: &Event) -> Value {
    serde_json::from_str(&event.data).unwrap_or(Value::Null)
}

/// Classes that do not overlap, of figures as OpenAI sends them: input with what came from and went to the
/// cache, output with reasoning.
pub fn openai_usage(usage: &Value, input: &str, output: &str) -> Usage {
    let details = |name: &str, part: &str| usage[format!("{name}_details")][part].as_u64();
    let (cache_read, cache_write) = (details(input, "cached_tokens"), details(input, "cache_write_tokens"));
    let reasoning = details(output, "reasoning_tokens");
    let without = |all: &str, parts: &[Option<u64>]| {
        let parts = parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part));
        usage[all].as_u64().map(|all| all.saturating_sub(parts))
    };
    Usage {
        input: without(input, &[cache_read, cache_write]),
        cache_read,
        cache_write,
        output: without(output, &[reasoning]),
        reasoning,
        ..Usage::default()
    }
}
