//! One answer of a model, whatever the protocol, after its terminal event.

use sage_core::port::Usage;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Stop,
    /// What the conversation keeps of it, in the protocol's own words.
    pub entries: Vec<Value>,
    pub usage: Usage,
}

/// A tool that the model wants to use.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// Or why its arguments cannot be read.
    pub input: Result<Value, String>,
}

impl Call {
    pub fn new(id: &str, name: &str, arguments: &str) -> Call {
        Call { id: id.into(), name: name.into(), input: input(arguments) }
    }
}

/// Arguments as text. A tool without any is called with nothing at all by some.
fn input(arguments: &str) -> Result<Value, String> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str::<Value>(arguments) {
        Ok(input) if input.is_object() => Ok(input),
        Ok(_) => Err("the arguments are not a JSON object".into()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// Why it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is an answer, or it wants its tools.
    Whole,
    /// Not finished, but it shall simply be asked to go on.
    Paused,
    /// Cut off at the most tokens that an answer may have.
    Length,
    Refused,
    /// A word that nobody knows.
    Unknown(String),
}

/// What an event of the stream means for who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A sign of life, but nothing came of it.
    Quiet,
    Moved,
    /// The answer is there.
    Over,
}

/// What a tool said to a call.
#[derive(Clone, Debug)]
pub struct Answered<'a> {
    pub call: &'a Call,
    pub result: Result<String, String>,
}

impl Answered<'_> {
    /// What the model reads, where a protocol has no place of its own for failures.
    pub fn text(&self) -> String {
        match &self.result {
            Ok(text) => text.clone(),
            Err(message) => format!("error: {message}"),
        }
    }
}
