//! Values that are too big for a model: they stay with the session, and later code takes them up by name.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Of all values of a session; the oldest go first.
const MAX_BYTES: usize = 64 << 20;
const MAX_HANDLES: usize = 100;
/// Of a preview.
const PREVIEW_ITEMS: usize = 3;
const PREVIEW_FIELDS: usize = 20;
const PREVIEW_CHARS: usize = 80;

#[derive(Debug, Default)]
pub struct Handles {
    kept: VecDeque<(u32, Arc<RawValue>)>,
    bytes: usize,
    last: u32,
}

impl Handles {
    /// Keeps a value and says what stands for it.
    pub fn keep(&mut self, text: Box<RawValue>) -> (String, Value) {
        self.last += 1;
        let name = format!("h{}", self.last);
        let told = described(&name, &text);
        self.bytes += text.get().len();
        self.kept.push_back((self.last, Arc::from(text)));
        while (self.bytes > MAX_BYTES || self.kept.len() > MAX_HANDLES)
            && self.kept.len() > 1
            && let Some((_, oldest)) = self.kept.pop_front()
        {
            self.bytes -= oldest.get().len();
        }
        (name, told)
    }

    pub fn get(&self, name: &str) -> Result<Arc<RawValue>, String> {
        let number = name.strip_prefix('h').and_then(|number| number.parse::<u32>().ok());
        let found = self.kept.iter().find(|(kept, _)| Some(*kept) == number);
        found.map(|(_, text)| Arc::clone(text)).ok_or_else(|| self.missing(name, number))
    }

    fn missing(&self, name: &str, number: Option<u32>) -> String {
        let names: Vec<String> =
            self.kept.iter().rev().take(10).map(|(number, _)| format!("h{number}")).collect();
        let there = if names.is_empty() {
            "there are none yet".into()
        } else {
            format!("there are {}", names.join(", "))
        };
        match number.is_some_and(|number| (1..=self.last).contains(&number)) {
            true => format!("the handle `{name}` was dropped to make room for later ones; {there}"),
            false => format!("there is no handle `{}`; {there}", name.escape_debug()),
        }
    }
}

/// `{"handle":"h1","type":"array","length":5000,"bytes":91234,"preview":[..]}`
fn described(name: &str, text: &RawValue) -> Value {
    let bytes = text.get().len();
    let value: Value = serde_json::from_str(text.get()).unwrap_or_default();
    let mut told = json!({"handle": name, "type": kind(&value), "bytes": bytes});
    let (length, preview) = match &value {
        Value::Array(items) => {
            (items.len(), Value::Array(items.iter().take(PREVIEW_ITEMS).map(|item| short(item, 2)).collect()))
        }
        Value::Object(map) => (map.len(), short(&value, 2)),
        Value::String(text) => (text.chars().count(), short(&value, 0)),
        _ => (1, Value::Null),
    };
    told["length"] = length.into();
    told["preview"] = preview;
    told
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    }
}

/// Enough of a value to see its shape.
fn short(value: &Value, depth: u32) -> Value {
    match value {
        Value::String(text) if text.chars().nth(PREVIEW_CHARS).is_some() => {
            format!("{}…", text.chars().take(PREVIEW_CHARS).collect::<String>()).into()
        }
        Value::Array(items) if depth == 0 => format!("array of {}", items.len()).into(),
        Value::Object(map) if depth == 0 => format!("object with {} fields", map.len()).into(),
        Value::Array(items) => items.iter().take(PREVIEW_ITEMS).map(|item| short(item, depth - 1)).collect(),
        Value::Object(map) => {
            let few = map.iter().take(PREVIEW_FIELDS);
            let mut told: Map<String, Value> = few
                .map(|(name, value)| (name.chars().take(PREVIEW_CHARS).collect(), short(value, depth - 1)))
                .collect();
            if map.len() > PREVIEW_FIELDS {
                told.insert("…".into(), format!("{} more fields", map.len() - PREVIEW_FIELDS).into());
            }
            told.into()
        }
        simple => simple.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::raw;
    use super::*;

    // covers: R21
    #[test]
    fn a_big_value_is_told_by_its_shape() {
        let rows: Vec<Value> =
            (0..5_000).map(|id| json!({"id": id, "name": "x".repeat(200), "tags": [1, 2]})).collect();
        let mut handles = Handles::default();
        let (name, told) = handles.keep(raw(&rows));
        assert_eq!((name.as_str(), &told["type"], &told["length"]), ("h1", &json!("array"), &json!(5_000)));
        assert_eq!(told["preview"].as_array().unwrap().len(), 3);
        assert!(told.to_string().len() < 1_000, "{told}");
        assert!(handles.get("h1").is_ok());
        assert_eq!(handles.get("h2").unwrap_err(), "there is no handle `h2`; there are h1");
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut handles = Handles::default();
        for _ in 0..150 {
            handles.keep(raw(&"x"));
        }
        assert!(handles.get("h1").unwrap_err().starts_with("the handle `h1` was dropped"));
        assert!(handles.get("h150").is_ok() && handles.kept.len() == MAX_HANDLES);
    }
}
