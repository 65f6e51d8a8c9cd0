//! Schemas that no value can satisfy, found before anybody is paid to try.
//!
//! Checked: the root is an object; `required` names that `properties` with `additionalProperties: false` leaves
//! out, or whose schema is `false`; more `required` than `maxProperties`; an empty `enum` or `type`, an `enum`
//! without a value of the `type`; a least above a most. In `properties`, `items`, `allOf`, `$defs`; of `anyOf`
//! and `oneOf` one alternative must be left.

use serde_json::{Map, Value};

const MAX_DEPTH: u32 = 64;

/// Pairs of a least and a most.
const RANGES: [(&str, &str); 4] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
];

/// What is wrong with the schema of a whole result, if anything.
pub(super) fn contradiction(schema: &Value) -> Option<String> {
    let Some(root) = schema.as_object() else { return Some("it must be an object".to_owned()) };
    let object = match root.get("type") {
        None => root.contains_key("properties"),
        Some(kind) => has_type(kind, "object"),
    };
    if !object {
        return Some("its root must have `type: \"object\"`".to_owned());
    }
    check(schema, "the root", 0)
}

fn check(schema: &Value, at: &str, depth: u32) -> Option<String> {
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return (*schema == Value::Bool(false)).then(|| format!("{at} is `false`"));
    };
    values(map, at)
        .or_else(|| ranges(map, at))
        .or_else(|| required(map, at))
        .or_else(|| parts(map, at, depth))
}

fn has_type(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

fn fits(value: &Value, kind: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0) => {
            return has_type(kind, "number") || has_type(kind, "integer");
        }
        Value::Number(_) => "number",
    };
    has_type(kind, name)
}

fn values(map: &Map<String, Value>, at: &str) -> Option<String> {
    let kind = map.get("type");
    if kind.and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Some(format!("`type` of {at} is empty"));
    }
    let listed = map.get("enum").and_then(Value::as_array)?;
    if listed.is_empty() {
        return Some(format!("`enum` of {at} is empty"));
    }
    let kind = kind?;
    let none = !listed.iter().any(|value| fits(value, kind));
    none.then(|| format!("no value of `enum` of {at} has its `type`"))
}

fn ranges(map: &Map<String, Value>, at: &str) -> Option<String> {
    let number = |name: &str| map.get(name).and_then(Value::as_f64);
    for (least, most) in RANGES {
        if number(least).zip(number(most)).is_some_and(|(least, most)| least > most) {
            return Some(format!("`{least}` of {at} is above `{most}`"));
        }
    }
    let above = number("exclusiveMinimum").or(number("minimum"));
    let below = number("exclusiveMaximum").or(number("maximum"));
    let open = map.contains_key("exclusiveMinimum") || map.contains_key("exclusiveMaximum");
    let empty = open && above.zip(below).is_some_and(|(above, below)| above >= below);
    empty.then(|| format!("no number is between the limits of {at}"))
}

fn required(map: &Map<String, Value>, at: &str) -> Option<String> {
    let names: Vec<&str> = map.get("required")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let properties = map.get("properties").and_then(Value::as_object);
    let closed = map.get("additionalProperties") == Some(&Value::Bool(false))
        && !map.contains_key("patternProperties");
    for name in &names {
        match properties.and_then(|properties| properties.get(*name)) {
            None if closed => return Some(format!("{at} requires `{name}` and allows no such property")),
            Some(Value::Bool(false)) => {
                return Some(format!("{at} requires `{name}`, whose schema is `false`"));
            }
            _ => {}
        }
    }
    let most = map.get("maxProperties").and_then(Value::as_u64)?;
    (names.len() as u64 > most).then(|| format!("{at} requires more than its `maxProperties`"))
}

fn parts(map: &Map<String, Value>, at: &str, depth: u32) -> Option<String> {
    let named =
        ["properties", "$defs", "definitions"].into_iter().filter_map(|name| map.get(name)?.as_object());
    for (name, schema) in named.flatten().filter(|(_, schema)| schema.is_object()) {
        if let Some(wrong) = check(schema, &format!("`{name}`"), depth + 1) {
            return Some(wrong);
        }
    }
    let inner = map.get("items").filter(|items| items.is_object()).into_iter();
    let all = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
    if let Some(wrong) =
        inner.chain(all).find_map(|schema| check(schema, &format!("a part of {at}"), depth + 1))
    {
        return Some(wrong);
    }
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|name| map.get(name)?.as_array());
    for choice in choices {
        let wrong: Vec<String> = choice.iter().filter_map(|schema| check(schema, at, depth + 1)).collect();
        if wrong.len() == choice.len() {
            return Some(wrong.into_iter().next().unwrap_or_else(|| format!("{at} has no alternative")));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // covers: R16
    #[test]
    fn what_nothing_can_satisfy_is_found() {
        let object = |more: Value| {
            let mut schema = json!({"type": "object"});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            contradiction(&schema)
        };
        for wrong in [
            json!({"type": "array"}),
            json!({"required": ["a"], "properties": {}, "additionalProperties": false}),
            json!({"required": ["a"], "properties": {"a": false}}),
            json!({"required": ["a", "b"], "maxProperties": 1}),
            json!({"properties": {"a": {"enum": []}}}),
            json!({"properties": {"a": {"type": "string", "enum": [1]}}}),
            json!({"properties": {"a": {"type": []}}}),
            json!({"properties": {"a": {"minimum": 2, "maximum": 1}}}),
            json!({"properties": {"a": {"items": {"minLength": 2, "maxLength": 1}}}}),
            json!({"properties": {"a": {"exclusiveMinimum": 1, "maximum": 1}}}),
            json!({"properties": {"a": {"anyOf": [{"enum": []}, false]}}}),
        ] {
            assert!(object(wrong.clone()).is_some(), "{wrong}");
        }
        for right in [
            json!({}),
            json!({"required": ["a"], "properties": {"a": {"type": "integer", "enum": [1, "x"]}}, "additionalProperties": false}),
            json!({"required": ["ab"], "patternProperties": {"a": {}}, "additionalProperties": false}),
            json!({"properties": {"a": {"anyOf": [{"enum": []}, {"type": "string"}]}, "b": {"minimum": 1, "maximum": 1}}}),
        ] {
            assert_eq!(object(right.clone()), None, "{right}");
        }
        assert!(contradiction(&json!([])).is_some() && contradiction(&json!({"anyOf": []})).is_some());
        assert_eq!(contradiction(&json!({"properties": {}})), None);
    }
}
