//! What a claim says, in a form that can be compared: `yes`, `true` and `enabled` are one value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::number::Number;
use super::{date, words};

/// A value and whether it is denied.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub body: Body,
    pub negated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Bool(bool),
    Number(Number),
    Date(String),
    Text(String),
    /// Keys of its members: order and repetition say nothing.
    Set(BTreeSet<String>),
    Object(String),
}

/// They say that there is nothing to say.
const SILENT: [&str; 14] = [
    "unknown",
    "none",
    "n/a",
    "na",
    "null",
    "nil",
    "notapplicable",
    "notavailable",
    "notknown",
    "unclear",
    "undetermined",
    "notdetermined",
    "tbd",
    "undefined",
];
const YES: [&str; 7] = ["yes", "true", "enabled", "on", "present", "passed", "supported"];
const NO: [&str; 4] = ["false", "off", "failed", "fail"];

/// `None` means that the value says nothing. Numbers in a version are not amounts.
pub fn meaning(value: &Value, version: bool) -> Option<Meaning> {
    let plain = |body| Some(Meaning { body, negated: false });
    match value {
        Value::Null => None,
        Value::Bool(value) => plain(Body::Bool(*value)),
        Value::Number(number) if version => plain(Body::Text(words::name(&number.to_string()))),
        Value::Number(number) => plain(Body::Number(Number::bare(number.as_f64()?))),
        Value::String(text) => text_meaning(text, version),
        Value::Array(items) => {
            let mut meanings: Vec<Meaning> = items.iter().filter_map(|item| meaning(item, version)).collect();
            match meanings.len() {
                // An empty list says that there are none of them, which is an answer.
                0 if !items.is_empty() => None,
                1 => meanings.pop(),
                _ => plain(Body::Set(meanings.iter().map(Meaning::key).collect())),
            }
        }
        Value::Object(map) => {
            let mut parts: Vec<String> = map
                .iter()
                .filter_map(|(name, value)| Some((name, meaning(value, version)?)))
                .map(|(name, meaning)| format!("{}={}", words::name(name), meaning.key()))
                .collect();
            parts.sort();
            if parts.is_empty() { None } else { plain(Body::Object(parts.join(";"))) }
        }
    }
}

fn text_meaning(text: &str, version: bool) -> Option<Meaning> {
    let name = words::name(text);
    // Only signs: a dash or a question mark is no answer.
    if name.is_empty() || SILENT.contains(&name.as_str()) {
        return None;
    }
    let plain = |body| Some(Meaning { body, negated: false });
    if version {
        let bare = name.strip_prefix("version").unwrap_or(&name);
        let bare = bare
            .strip_prefix('v')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or(bare);
        return plain(Body::Text(bare.to_owned()));
    }
    if let Some(date) = date::parse(text) {
        return plain(Body::Date(date));
    }
    if let Some(number) = Number::parse(text) {
        return plain(Body::Number(number));
    }
    let phrase = words::phrase(text);
    let body = match phrase.key.as_str() {
        "" => return plain(Body::Bool(!phrase.negated)),
        key if YES.contains(&key) => return plain(Body::Bool(!phrase.negated)),
        key if NO.contains(&key) => return plain(Body::Bool(phrase.negated)),
        key => Body::Text(key.to_owned()),
    };
    Some(Meaning { body, negated: phrase.negated })
}

impl Meaning {
    /// The same said by a predicate that denies it: `is not: safe` is `is: not safe`.
    pub fn denied(self) -> Meaning {
        match self.body {
            Body::Bool(value) => Meaning { body: Body::Bool(!value), ..self },
            body => Meaning { body, negated: !self.negated },
        }
    }

    /// Equal for equal meanings, but for numbers that are only near each other.
    pub fn key(&self) -> String {
        let key = match &self.body {
            Body::Bool(value) => format!("b {value}"),
            Body::Number(number) => format!("n {}", number.key()),
            Body::Date(date) => format!("d {date}"),
            Body::Text(text) => format!("t {text}"),
            Body::Set(members) => {
                let members: Vec<&str> = members.iter().map(String::as_str).collect();
                format!("s [{}]", members.join(","))
            }
            Body::Object(parts) => format!("o {{{parts}}}"),
        };
        if self.negated { format!("not {key}") } else { key }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(value: Value) -> Option<String> {
        meaning(&value, false).map(|meaning| meaning.key())
    }

    // covers: S5
    #[test]
    fn equal_values_are_equal_in_any_wording() {
        for (one, other) in [
            (json!("Yes"), json!(true)),
            (json!("enabled"), json!(true)),
            (json!("not enabled"), json!("disabled")),
            (json!("no"), json!(false)),
            (json!("never"), json!("off")),
            (json!("not supported"), json!("unsupported")),
            (json!(["b", "A", "a"]), json!(["a", "b"])),
            (json!(["Rust"]), json!("rust")),
            (json!({"Max Size": "2 KB", "x": null}), json!({"max-size": "2000 bytes"})),
            (json!("The PostgreSQL database."), json!("postgresql databases")),
            (json!("2026-03-05"), json!("March 5, 2026")),
            (json!("1.2k"), json!(1200)),
        ] {
            assert_eq!(key(one.clone()), key(other), "{one}");
            assert_ne!(key(one), None);
        }
        for (one, other) in [
            (json!("safe"), json!("not safe")),
            (json!(true), json!(1)),
            (json!(["a"]), json!(["a", "b"])),
            (json!([]), json!(false)),
            (json!("REST"), json!("GraphQL")),
        ] {
            assert_ne!(key(one.clone()), key(other), "{one}");
        }
        for silent in
            [json!(null), json!(""), json!("N/A"), json!("unknown"), json!("?"), json!("-"), json!([null])]
        {
            assert_eq!(key(silent.clone()), None, "{silent}");
        }
    }

    #[test]
    fn versions_are_no_amounts() {
        let key = |text: &str| meaning(&json!(text), true).unwrap().key();
        assert_ne!(key("1.10"), key("1.1"));
        assert_eq!(key("v1.10"), key("1.10"));
    }
}
