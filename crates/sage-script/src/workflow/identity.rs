//! What a call is known by: everything that determines its result, and nothing else.
//!
//! A label, a group, a timeout or a retry can change between two runs of a script without a finished call being
//! paid for again.

use sage_core::digest::{Digest, canonical};
use serde_json::Value;

/// Fields of an operation that determine its result, sorted as canonical JSON has them.
const DETERMINE: [&str; 13] = [
    "agent",
    "expect",
    "filter",
    "isolation",
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
