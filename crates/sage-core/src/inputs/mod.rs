//! The inputs of a template: what each of them is, its default, and whether given values fit.
//!
//! ```yaml
//! inputs:
//!   channel: beta                                        # a plain value is the default
//!   version: { type: string, required: true, description: What to release }
//!   level: { type: integer, default: 1, enum: [1, 2, 3] }
//! ```

mod error;
mod known;

use serde_json::{Map, Value};

pub use error::InputError;
pub use known::Known;

/// In the order of the template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs(Vec<Input>);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    pub name: String,
    /// `None` takes anything.
    pub kind: Option<InputKind>,
    pub default: Option<Value>,
    /// Whoever starts a run must give it, unless there is a default.
    pub required: bool,
    pub description: Option<String>,
    /// The values that it can have; empty for any.
    pub choices: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

impl InputKind {
    pub const WORDS: [(&str, InputKind); 6] = [
        ("string", InputKind::String),
        ("number", InputKind::Number),
        ("integer", InputKind::Integer),
        ("boolean", InputKind::Boolean),
        ("array", InputKind::Array),
        ("object", InputKind::Object),
    ];

    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            InputKind::String => value.is_string(),
            InputKind::Number => value.is_number(),
            InputKind::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            InputKind::Boolean => value.is_boolean(),
            InputKind::Array => value.is_array(),
            InputKind::Object => value.is_object(),
        }
    }

    fn article(self) -> &'static str {
        match self {
            InputKind::String => "a string",
            InputKind::Number => "a number",
            InputKind::Integer => "a whole number",
            InputKind::Boolean => "true or false",
            InputKind::Array => "a list",
            InputKind::Object => "an object",
        }
    }

    /// What one looks like on a command line.
    fn example(self) -> &'static str {
        match self {
            InputKind::String => "TEXT",
            InputKind::Number => "1.5",
            InputKind::Integer => "1",
            InputKind::Boolean => "true",
            InputKind::Array => "'[\"a\", \"b\"]'",
            InputKind::Object => "'{\"a\": 1}'",
        }
    }
}

impl Input {
    /// An input that is given as its default. A switch stays a switch.
    pub fn plain(name: impl Into<String>, default: Value) -> Input {
        let kind = default.is_boolean().then_some(InputKind::Boolean);
        Input { name: name.into(), kind, default: Some(default), ..Input::default() }
    }

    /// Whether a value fits. An absent one is another question.
    pub fn check(&self, value: &Value) -> Result<(), InputError> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(kind) = self.kind.filter(|kind| !kind.fits(value)) {
            return Err(InputError::Kind { name: self.name.clone(), kind, found: value.clone() });
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let (name, choices) = (self.name.clone(), self.choices.clone());
            return Err(InputError::Choice { name, choices, found: value.clone() });
        }
        Ok(())
    }

    /// What text means for it: text where text is wanted, else JSON if it reads as such.
    fn parse(&self, text: &str) -> Value {
        let by_default = self.kind.is_none() && self.default.as_ref().is_some_and(Value::is_string);
        let chosen = self.kind.is_none() && self.choices.iter().any(|choice| choice == text);
        if self.kind == Some(InputKind::String) || by_default || chosen {
            return text.into();
        }
        parse(text)
    }

    /// `string, one of "a", "b", default "a"`
    pub fn about(&self) -> String {
        let mut parts: Vec<String> = self.kind.map(|kind| kind.name().to_string()).into_iter().collect();
        if !self.choices.is_empty() {
            parts.push(format!("one of {}", error::list(&self.choices)));
        }
        match &self.default {
            Some(default) => parts.push(format!("default {}", error::short(default))),
            None if self.required => parts.push("required".into()),
            None => parts.push("optional".into()),
        }
        parts.join(", ")
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

impl Inputs {
    pub fn push(&mut self, input: Input) {
        self.0.push(input);
    }

    pub fn get(&self, name: &str) -> Option<&Input> {
        self.0.iter().find(|input| input.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Input> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A value as somebody typed it.
    pub fn parse(&self, name: &str, text: &str) -> Value {
        self.get(name).map_or_else(|| parse(text), |input| input.parse(text))
    }

    /// What is given, over the defaults; else everything that is wrong with it. Expressions see an input that is
    /// neither given nor required as `null`.
    pub fn complete(&self, given: Map<String, Value>) -> Result<Map<String, Value>, Vec<InputError>> {
        let mut all = Map::new();
        let mut errors = Vec::new();
        for input in &self.0 {
            let value = given.get(&input.name).filter(|value| !value.is_null());
            errors.extend(value.and_then(|value| input.check(value).err()));
            if value.is_none() && input.required && input.default.is_none() {
                errors.push(InputError::Missing(Box::new(input.clone())));
            }
            all.insert(input.name.clone(), input.default.clone().unwrap_or(Value::Null));
        }
        all.extend(given);
        if errors.is_empty() { Ok(all) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(name: &str, kind: InputKind) -> Input {
        Input { name: name.into(), kind: Some(kind), ..Input::default() }
    }

    fn inputs() -> Inputs {
        let level = Input { choices: vec![json!(1), json!(2)], ..input("level", InputKind::Integer) };
        let version = Input { required: true, ..input("version", InputKind::String) };
        let color =
            Input { name: "color".into(), choices: vec![json!("1"), json!("red")], ..Input::default() };
        Inputs(vec![
            Input::plain("dry", json!(false)),
            Input::plain("tag", json!("x")),
            level,
            version,
            color,
        ])
    }

    // covers: R6
    #[test]
    fn text_is_read_as_the_input_wants_it() {
        let inputs = inputs();
        let table = [
            ("version", "1.10", json!("1.10")),
            ("tag", "7", json!("7")),
            ("dry", "true", json!(true)),
            ("level", "2", json!(2)),
            ("color", "1", json!("1")),
            ("other", "[1]", json!([1])),
            ("other", "text", json!("text")),
        ];
        for (name, text, value) in table {
            assert_eq!(inputs.parse(name, text), value, "{name}");
        }
    }

    // covers: R6
    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let given = json!({"dry": "maybe", "level": 9, "color": "blue"});
        let errors = inputs().complete(given.as_object().unwrap().clone()).unwrap_err();
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "input `dry` must be true or false, not \"maybe\"",
                "input `level` must be one of 1, 2, not 9",
                "missing input `version` (string)",
                "input `color` must be one of \"1\", \"red\", not \"blue\"",
            ]
        );
        assert_eq!(errors[2].hint().as_deref(), Some("-i version=TEXT"));
        let given = json!({"version": "2", "extra": [1]}).as_object().unwrap().clone();
        let all = inputs().complete(given).unwrap();
        let expected = json!({
            "dry": false, "tag": "x", "level": null, "version": "2", "color": null, "extra": [1],
        });
        assert_eq!(Value::Object(all), expected);
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        assert!(InputKind::Integer.fits(&json!(2.0)) && !InputKind::Integer.fits(&json!(2.5)));
        assert!(InputKind::Number.fits(&json!(2.5)) && !InputKind::Number.fits(&json!("2")));
    }
}
