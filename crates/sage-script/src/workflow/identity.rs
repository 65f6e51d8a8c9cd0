//! What a call is known by: everything that determines its result, and nothing else.
//!
//! A label, a group, a timeout or a retry can change between two runs of a script without a finished call being
//! paid for again.

use std::borrow::Cow;

use sage_core::digest::{Digest, canonical};
use serde_json::Value;

/// Fields of an operation that determine its result, sorted as canonical JSON has them.
const DETERMINE: [&str; 15] = [
    "agent",
    "expect",
    "files",
    "filter",
    "isolation",
    "mcp",
    "model",
    "output",
    "params",
    "prompt",
    "role",
    "schema",
    "session",
    "steps",
    "type",
];

/// `key` is the script's own: equal calls with different keys are different.
pub(super) fn identity(operation: &Value, key: &str) -> Digest {
    // Canonical JSON of the fields that count, without a copy of them: `[key, {..}]`.
    let mut text = format!("[{},{{", Value::from(key));
    for name in DETERMINE {
        if let Some(value) = operation.get(name) {
            text.push('"');
            text.push_str(name);
            text.push_str("\":");
            text.push_str(&canonical(value));
            text.push(',');
        }
    }
    text.push_str("}]");
    Digest::of(text.as_bytes())
}

/// JSON as others read it: half of a pair of surrogates, which JavaScript's texts may hold, becomes U+FFFD.
/// `JSON.stringify` escapes only such halves.
pub(super) fn well_formed(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = if escape.starts_with("\\ud") { 6 } else { 2 }.min(escape.len());
        let half =
            escape.get(3..4).is_some_and(|digit| ('8'..='f').contains(&digit.chars().next().unwrap_or('0')));
        match escape.get(..length) {
            Some(text) if length == 6 && half => out.push_str(if text.len() == 6 { "\\ufffd" } else { text }),
            Some(text) => out.push_str(text),
            None => return Cow::Owned(out + escape),
        }
        rest = &escape[length..];
    }
    Cow::Owned(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn halves_of_pairs_are_replaced_and_nothing_else() {
        assert_eq!(well_formed(r#"["a\ud83d","\\ud83d","\n"]"#), r#"["a\ufffd","\\ud83d","\n"]"#);
        assert_eq!(well_formed("[1]"), "[1]");
        assert_eq!(well_formed(r#""\ud"#), r#""\ud"#);
    }

    // covers: R21
    #[test]
    fn only_what_determines_the_result_counts() {
        let call = json!({"type": "agent", "prompt": "p", "model": "m"});
        let same = json!({"model": "m", "prompt": "p", "type": "agent", "timeout": 5, "retry": {}, "priority": "P0", "budget": 1});
        assert_eq!(identity(&call, ""), identity(&same, ""));
        assert_ne!(identity(&call, ""), identity(&call, "\"k\""));
        for name in DETERMINE {
            let mut other = call.clone();
            other[name] = json!({"x": 1});
            assert_ne!(identity(&call, ""), identity(&other, ""), "{name}");
        }
    }
}
