//! Which token stands for which value, for one session.

use std::collections::HashMap;

use sage_core::skill::scan::looks_secret;
use serde_json::{Map, Value};

use super::account::{issued, luhn};
use super::find::{Kind, find, token_end};

/// Values that are remembered; what comes after them is hidden for good.
const MAX_ENTRIES: usize = 100_000;
/// Shorter values of a field with a secret's name are words.
const LEAST_SECRET: usize = 6;

#[derive(Default)]
pub struct Vault {
    tokens: HashMap<(Kind, String), String>,
    /// A number comes back as a number.
    originals: HashMap<String, Value>,
    counts: HashMap<Kind, u32>,
}

impl std::fmt::Debug for Vault {
    /// Never what it holds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("values", &self.originals.len()).finish_non_exhaustive()
    }
}

impl Vault {
    /// How many values are hidden.
    pub fn len(&self) -> usize {
        self.originals.len()
    }

    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The same with tokens, in texts and in names of fields.
    pub fn hide(&mut self, value: Value) -> Value {
        self.hide_field("", value)
    }

    fn hide_field(&mut self, field: &str, value: Value) -> Value {
        match value {
            Value::String(text) => match named(field, &text) {
                Some(kind) => Value::String(self.token(kind, &text, || Value::String(text.clone()))),
                None => Value::String(self.hide_text(text)),
            },
            Value::Number(number) => match named_number(field, &number.to_string()) {
                Some(kind) => {
                    let text = number.to_string();
                    // Apart from a text with the same digits: what goes out must be a number again.
                    Value::String(self.token(kind, &format!("#{text}"), || Value::Number(number)))
                }
                None => Value::Number(number),
            },
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.hide_field(field, item)).collect())
            }
            Value::Object(map) => {
                let hidden = map.into_iter().map(|(name, value)| {
                    let value = self.hide_field(&name, value);
                    (self.hide_text(name), value)
                });
                Value::Object(hidden.collect::<Map<String, Value>>())
            }
            other => other,
        }
    }

    pub fn hide_text(&mut self, text: String) -> String {
        let found = find(&text);
        if found.is_empty() {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for (range, kind) in found {
            out.push_str(&text[from..range.start]);
            from = range.end;
            let part = &text[range];
            out.push_str(&self.token(kind, part, || Value::String(part.to_string())));
        }
        out.push_str(&text[from..]);
        out
    }

    fn token(&mut self, kind: Kind, text: &str, original: impl FnOnce() -> Value) -> String {
        let key = (kind, text.to_string());
        if let Some(token) = self.tokens.get(&key) {
            return token.clone();
        }
        if self.originals.len() >= MAX_ENTRIES {
            return format!("[{}]", kind.name());
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let token = format!("[{}_{count}]", kind.name());
        self.tokens.insert(key, token.clone());
        self.originals.insert(token.clone(), original());
        token
    }

    /// The same with values: for what goes to a tool, and nowhere else.
    pub fn show(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.originals.get(&text) {
                Some(original) => original.clone(),
                None => Value::String(self.show_text(text)),
            },
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.show(item)).collect()),
            Value::Object(map) => {
                let shown = map.into_iter().map(|(name, value)| (self.show_text(name), self.show(value)));
                Value::Object(shown.collect::<Map<String, Value>>())
            }
            other => other,
        }
    }

    pub fn show_text(&self, text: String) -> String {
        if self.is_empty() || !text.contains('[') {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for (at, _) in text.match_indices('[') {
            let Some(end) = token_end(&text, at) else { continue };
            let Some(original) = self.originals.get(&text[at..end]) else { continue };
            out.push_str(&text[from..at]);
            match original {
                Value::String(original) => out.push_str(original),
                number => out.push_str(&number.to_string()),
            }
            from = end;
        }
        out.push_str(&text[from..]);
        out
    }
}

/// What the name of a field says about a whole text.
fn named(field: &str, text: &str) -> Option<Kind> {
    let plain = text.len() >= LEAST_SECRET && !text.contains(char::is_whitespace);
    if field.len() <= 64 && looks_secret(field) && plain {
        return Some(Kind::Secret);
    }
    named_number(field, text)
}

/// Digits alone could be anything, but not under such a name.
fn named_number(field: &str, text: &str) -> Option<Kind> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || b" -".contains(&byte));
    if field.is_empty() || field.len() > 64 || !bare || digits.len() < 7 {
        return None;
    }
    let field = field.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| field.contains(word));
    match digits.len() {
        7..=15 if says(&["phone", "mobile", "telephone", "fax", "whatsapp"]) => Some(Kind::Phone),
        9 if field == "ssn" || says(&["socialsecurity", "social_security"]) => Some(Kind::Ssn),
        14..=19 if says(&["card", "pan"]) && issued(&digits) && luhn(&digits) => Some(Kind::Card),
        _ => None,
    }
}
