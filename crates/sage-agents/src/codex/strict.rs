//! Whether a schema can be given to the model's own decoder.
//!
//! OpenAI's structured output knows a part of JSON Schema: every object lists all its fields as required and
//! allows no others. A schema that wants more is refused with a 400 before anything is answered; such a one is
//! told to the agent in words instead (prompt.rs), and the engine checks the answer in both cases.

use serde_json::{Map, Value};

/// Words that the decoder does not know, or not everywhere.
const UNKNOWN: [&str; 13] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "prefixItems",
    "contains",
    "unevaluatedProperties",
];

pub fn is_strict(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("anyOf").is_none() && fits(schema)
}

fn fits(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    if UNKNOWN.iter().any(|word| fields.contains_key(*word)) || !object_is_closed(fields) {
        return false;
    }
    let each =
        |name: &str| fields.get(name).and_then(Value::as_object).is_none_or(|all| all.values().all(fits));
    let any_of = fields.get("anyOf").is_none_or(|all| all.as_array().is_some_and(|all| all.iter().all(fits)));
    let items = fields.get("items").is_none_or(fits);
    let says_something =
        ["type", "enum", "const", "anyOf", "$ref"].iter().any(|name| fields.contains_key(*name));
    each("properties") && each("$defs") && each("definitions") && any_of && items && says_something
}

fn object_is_closed(fields: &Map<String, Value>) -> bool {
    let is_object = match fields.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => fields.contains_key("properties"),
    };
    if !is_object {
        return true;
    }
    let required: Vec<&str> = fields
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = fields.get("properties").and_then(Value::as_object);
    properties.is_some_and(|all| all.keys().all(|name| required.contains(&name.as_str())))
        && fields.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_objects_go_to_the_decoder() {
        let closed = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let text = json!({"type": "string"});
        assert!(is_strict(&closed(
            json!({"a": text, "b": {"type": "array", "items": text}}),
            json!(["a", "b"])
        )));
        let inner = closed(json!({"c": {"type": ["string", "null"]}}), json!(["c"]));
        assert!(is_strict(&closed(json!({"a": {"anyOf": [inner, {"type": "null"}]}}), json!(["a"]))));
        for wide in [
            json!({"type": "object"}),
            json!({"type": "array", "items": text}),
            json!(true),
            closed(json!({"a": text, "b": text}), json!(["a"])),
            closed(json!({"a": {"type": "object"}}), json!(["a"])),
            closed(json!({"a": {}}), json!(["a"])),
            closed(json!({"a": {"oneOf": [text]}}), json!(["a"])),
            closed(json!({"a": {"type": "array", "items": {"type": "object"}}}), json!(["a"])),
            json!({"type": "object", "properties": {"a": text}, "required": ["a"]}),
        ] {
            assert!(!is_strict(&wide), "{wide}");
        }
    }
}
