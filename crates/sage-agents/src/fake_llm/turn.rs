//! One turn of a script: what the endpoint answers to one request, and how it misbehaves.
//!
//! Fields are read one by one, so that a mistake is told with its name. `delayMs` and `delay_ms` are the same.

use std::collections::BTreeMap;

use sage_core::diagnostic::did_you_mean;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// In this order: delay, hang, status or answer. In an answer: thinking, text, then stall, drop or
/// mid-stream error, then tools.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub text: Option<String>,
    /// `reasoning` is the same: Anthropic and OpenAI have different words for it.
    pub thinking: Option<String>,
    /// `tool` and `tools`, in this order.
    pub tools: Vec<Tool>,
    pub custom_tool: Option<CustomTool>,
    /// In the words of Anthropic or of OpenAI; each protocol gets its own.
    pub stop_reason: Option<String>,
    /// As the protocol sends it: Anthropic's input is without what came from the cache, OpenAI's is with it.
    pub usage: Spend,
    pub times: Option<u64>,
    /// Used for every request whose last user message holds this, before all others, in no order.
    pub matching: Option<String>,
    pub status: Option<u16>,
    pub error: Problem,
    /// The whole body of an error, for what `error` has no place for.
    pub body: Option<Value>,
    /// Of any answer, also of a good one.
    pub headers: BTreeMap<String, String>,
    /// The whole body of an answer with status 200, as it is: no event, half of one, or none of this protocol.
    pub raw: Option<String>,
    /// The connection is closed without an answer.
    pub close: bool,
    pub midstream_error: Option<String>,
    pub failed: Option<String>,
    pub drop: bool,
    pub hang: Option<Hang>,
    /// Like `hang`, but after the text.
    pub stall: Option<Hang>,
    pub delay_ms: u64,
    /// Before each piece of the text.
    pub pace_ms: u64,
    pub exhausted: Option<Exhausted>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    #[serde(default = "no_input")]
    pub input: Value,
    pub id: Option<String>,
    /// Codex finds the tools of an MCP server by this.
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomTool {
    pub name: String,
    pub input: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spend {
    #[serde(alias = "inputTokens")]
    pub input_tokens: Option<u64>,
    #[serde(alias = "outputTokens")]
    pub output_tokens: Option<u64>,
    #[serde(alias = "cacheReadInputTokens", alias = "cached")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(alias = "cacheCreationInputTokens")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Part of `output_tokens`.
    pub reasoning: Option<u64>,
}

/// `error: "type"`, or all parts of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub code: Option<String>,
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hang {
    Seconds(f64),
    UntilTheClientGoes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhausted {
    Repeat,
    Error,
}

const FIELDS: [&str; 26] = [
    "text",
    "thinking",
    "reasoning",
    "tool",
    "tools",
    "customTool",
    "stopReason",
    "finishReason",
    "usage",
    "times",
    "match",
    "status",
    "error",
    "message",
    "code",
    "body",
    "headers",
    "raw",
    "close",
    "midstreamError",
    "failed",
    "drop",
    "hang",
    "stall",
    "delayMs",
    "paceMs",
];

impl Turn {
    pub fn parse(value: &Value) -> Result<Turn, String> {
        let fields = value.as_object().ok_or_else(|| format!("expected an object, found {value}"))?;
        let mut turn = Turn::default();
        for (name, value) in fields {
            turn.set(name, value).map_err(|error| format!("`{name}`: {error}"))?;
        }
        turn.check(fields)?;
        Ok(turn)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match snake_case(name).as_str() {
            "text" => self.text = read(value)?,
            "thinking" | "reasoning" => self.thinking = read(value)?,
            "tool" => self.tools.insert(0, read(value)?),
            "tools" => self.tools.extend(read::<Vec<Tool>>(value)?),
            "custom_tool" => self.custom_tool = read(value)?,
            "stop_reason" | "finish_reason" => self.stop_reason = read(value)?,
            "usage" => self.usage = read(value)?,
            "times" => self.times = Some(read(value)?),
            "match" => self.matching = read(value)?,
            "status" => self.status = read(value)?,
            "error" => self.error.add(problem(value)?),
            "message" => self.error.message = read(value)?,
            "code" => self.error.code = read(value)?,
            "body" => self.body = Some(value.clone()),
            "headers" => self.headers = headers(value)?,
            "raw" => self.raw = read(value)?,
            "close" => self.close = read(value)?,
            "midstream_error" => self.midstream_error = read(value)?,
            "failed" => self.failed = read(value)?,
            "drop" => self.drop = read(value)?,
            "hang" => self.hang = hang(value)?,
            "stall" => self.stall = hang(value)?,
            "delay_ms" => self.delay_ms = read(value)?,
            "pace_ms" => self.pace_ms = read(value)?,
            "exhausted" => self.exhausted = read(value)?,
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// What is well formed and still makes no sense.
    fn check(&self, fields: &Map<String, Value>) -> Result<(), String> {
        if self.times == Some(0) {
            return Err("`times`: a turn that is never played; leave it out".into());
        }
        if let Some(status) = self.status
            && !(400..=599).contains(&status)
        {
            return Err(format!("`status`: {status} is not an error; expected 400 to 599"));
        }
        let says_error =
            ["error", "message", "code", "body"].into_iter().find(|name| fields.contains_key(*name));
        if let (Some(name), None) = (says_error, self.status) {
            return Err(format!("`{name}`: needs `status`, or use `midstreamError` or `failed`"));
        }
        Ok(())
    }
}

impl Problem {
    fn add(&mut self, other: Problem) {
        self.kind = other.kind.or(self.kind.take());
        self.code = other.code.or(self.code.take());
        self.message = other.message.or(self.message.take());
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn problem(value: &Value) -> Result<Problem, String> {
    match value {
        Value::String(kind) => Ok(Problem { kind: Some(kind.clone()), ..Problem::default() }),
        parts => read(parts),
    }
}

fn headers(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let fields = value.as_object().ok_or("expected an object of names and values")?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let headers: BTreeMap<String, String> =
        fields.iter().map(|(name, value)| (name.to_lowercase(), text(value))).collect();
    for (name, value) in &headers {
        hyper::header::HeaderName::try_from(name).map_err(|error| format!("`{name}`: {error}"))?;
        hyper::header::HeaderValue::try_from(value).map_err(|error| format!("`{name}`: {error}"))?;
    }
    Ok(headers)
}

fn hang(value: &Value) -> Result<Option<Hang>, String> {
    match value {
        Value::Bool(true) => Ok(Some(Hang::UntilTheClientGoes)),
        Value::Bool(false) | Value::Null => Ok(None),
        Value::Number(number) => match number.as_f64() {
            Some(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(Some(Hang::Seconds(seconds))),
            _ => Err(format!("{number} is not between 0 and 86400 seconds")),
        },
        other => Err(format!("expected seconds or true, found {other}")),
    }
}

fn unknown(name: &str) -> String {
    let known = did_you_mean(name, FIELDS.into_iter().chain(["exhausted"]));
    format!("no such field; {}", known.unwrap_or_else(|| format!("known are {}", FIELDS.join(", "))))
}

fn no_input() -> Value {
    Value::Object(Map::new())
}

/// `delayMs` as `delay_ms`; what is so already stays.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
