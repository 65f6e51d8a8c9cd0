//! What a call is known by: everything that determines its result, and nothing else.
//!
//! A label, a group, a timeout or a retry can change between two runs of a script without a finished call being
//! paid for again.

use sage_core::digest::Digest;
use serde_json::{Map, Value};

/// Fields of an operation that determine its result.
const DETERMINE: [&str; 13] = [
    "type",
    "params",
    "prompt",
    "agent",
    "model",
    "schema",
    "isolation",
    "session",
    "role",
    "expect",
    "output",
    "filter",
    "steps",
];

/// `key` is the script's own: equal calls with different keys are different.
pub(super) fn identity(operation: &Value, key: &str) -> Digest {
    let mut known = Map::new();
    for name in DETERMINE {
        if let Some(value) = operation.get(name) {
            known.insert(name.to_owned(), value.clone());
        }
    }
    if !key.is_empty() {
        known.insert("key".to_owned(), Value::String(key.to_owned()));
    }
    Digest::of_json(&Value::Object(known))
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
