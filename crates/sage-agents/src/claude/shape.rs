//! The shape of an answer: Claude Code takes only schemas of objects, so every other one becomes a field of one.

use serde_json::{Value, json};

const FIELD: &str = "answer";

#[derive(Debug)]
pub struct Shape {
    /// What the program is told.
    pub schema: Value,
    wrapped: bool,
}

impl Shape {
    pub fn of(schema: &Value) -> Shape {
        if schema["type"] == "object" {
            return Shape { schema: schema.clone(), wrapped: false };
        }
        let mut inner = schema.clone();
        // A schema with a name of its own is the root of its references, wherever it is.
        if inner.get("$id").is_none() {
            lead_into_field(&mut inner);
        }
        let schema = json!({"type": "object", "properties": {FIELD: inner}, "required": [FIELD]});
        Shape { schema, wrapped: true }
    }

    pub fn answer(&self, structured: &Value) -> Option<Value> {
        if self.wrapped { structured.get(FIELD).cloned() } else { Some(structured.clone()) }
    }
}

/// References to a place in the schema find it where it is now.
fn lead_into_field(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(place)) = fields.get_mut("$ref")
                && let Some(rest) =
                    place.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                *place = format!("#/properties/{FIELD}{rest}");
            }
            fields.values_mut().for_each(lead_into_field);
        }
        Value::Array(items) => items.iter_mut().for_each(lead_into_field),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_object_becomes_a_field_and_comes_out_again() {
        let object = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}});
        let shape = Shape::of(&object);
        assert_eq!((&shape.schema, shape.answer(&json!({"n": 1}))), (&object, Some(json!({"n": 1}))));
        let list =
            json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}});
        let shape = Shape::of(&list);
        assert_eq!(shape.schema["properties"]["answer"]["items"]["$ref"], "#/properties/answer/$defs/n");
        assert_eq!(shape.answer(&json!({"answer": [1]})), Some(json!([1])));
        assert_eq!(shape.answer(&json!([1])), None);
        let named = json!({"$id": "urn:x", "type": "array", "items": {"$ref": "#/$defs/n"}});
        assert_eq!(Shape::of(&named).schema["properties"]["answer"], named);
        assert_eq!(Shape::of(&json!(true)).schema["properties"]["answer"], true);
    }
}
