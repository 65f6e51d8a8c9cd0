//! A step's schema as models take it: an object at the top, and strict only where the schema allows it.

use serde_json::{Map, Value, json};

/// The tool that takes the answer where a protocol has no other way to ask for one.
pub const STRUCTURED: &str = "structured_output";
/// The field that holds an answer that is not an object.
const FIELD: &str = "value";
/// Named at the top of a schema and referred to from everywhere.
const SHARED: [&str; 2] = ["$defs", "definitions"];

#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub schema: Value,
    /// Every object is closed and all of its fields are required, which is what "strict" demands.
    pub strict: bool,
    wrapped: bool,
}

impl Shape {
    pub fn of(schema: &Value) -> Shape {
        let is_object =
            schema["type"] == "object" || (schema["type"].is_null() && schema["properties"].is_object());
        let schema = if is_object { typed(schema) } else { wrapped(schema) };
        Shape { strict: is_strict(&schema), schema, wrapped: !is_object }
    }

    /// What the model gave, as the schema means it.
    pub fn unwrap(&self, answer: Value) -> Value {
        match answer {
            Value::Object(mut fields) if self.wrapped => match fields.remove(FIELD) {
                Some(value) => value,
                None => Value::Object(fields),
            },
            answer => answer,
        }
    }
}

fn typed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["type"] = "object".into();
    schema
}

fn wrapped(schema: &Value) -> Value {
    let (mut inner, mut shared) = (schema.clone(), Map::new());
    if let Some(fields) = inner.as_object_mut() {
        fields.remove("$schema");
        shared.extend(SHARED.iter().filter_map(|name| Some((name.to_string(), fields.remove(*name)?))));
    }
    let mut outer = json!({
        "type": "object", "properties": {FIELD: inner}, "required": [FIELD], "additionalProperties": false,
    });
    if let Some(fields) = outer.as_object_mut() {
        fields.extend(shared);
    }
    outer
}

fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(is_strict),
        Value::Object(fields) => {
            let closed = match fields.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    let all = properties
                        .keys()
                        .all(|name| required.is_some_and(|names| names.iter().any(|it| it == name)));
                    all && fields.get("additionalProperties") == Some(&Value::Bool(false))
                }
                None => fields.get("type").is_none_or(|kind| kind != "object"),
            };
            closed && fields.values().all(is_strict)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_stay_and_others_are_wrapped() {
        let closed = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false,
        });
        let shape = Shape::of(&closed);
        assert_eq!((&shape.schema, shape.strict), (&closed, true));
        assert_eq!(shape.unwrap(json!({"value": 1})), json!({"value": 1}), "nothing to unwrap");

        let open = Shape::of(&json!({"properties": {"a": {}}}));
        assert_eq!((&open.schema["type"], open.strict), (&json!("object"), false));

        let list =
            json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "integer"}}});
        let shape = Shape::of(&list);
        assert_eq!(shape.schema["$defs"]["x"]["type"], "integer");
        assert_eq!(
            shape.schema["properties"]["value"],
            json!({"type": "array", "items": {"$ref": "#/$defs/x"}})
        );
        assert!(shape.strict);
        assert_eq!(shape.unwrap(json!({"value": [1]})), json!([1]));
        assert_eq!(shape.unwrap(json!([1])), json!([1]), "the model may have understood");
        assert!(!Shape::of(&json!({"type": "array", "items": {"type": "object"}})).strict);
    }
}
