//! What is wrong with the inputs that a run is given.

use std::fmt;

use serde_json::Value;

use super::{Input, InputKind};
use crate::diagnostic::{did_you_mean, printable};

/// More characters of a value say nothing new.
const LONGEST: usize = 60;

#[derive(Clone, Debug, PartialEq)]
pub enum InputError {
    Kind {
        name: String,
        kind: InputKind,
        found: Value,
    },
    Choice {
        name: String,
        choices: Vec<Value>,
        found: Value,
    },
    Missing(Box<Input>),
    /// With the names that the template has.
    Unknown {
        name: String,
        known: Vec<String>,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Kind { name, kind, found } => {
                write!(f, "input `{name}` must be {}, not {}", kind.article(), short(found))
            }
            InputError::Choice { name, choices, found } => {
                write!(f, "input `{name}` must be one of {}, not {}", list(choices), short(found))
            }
            InputError::Missing(input) => {
                let kind = input.kind.map(|kind| kind.name().to_string());
                let about: Vec<String> = kind.into_iter().chain(input.description.clone()).collect();
                write!(f, "missing input `{}`", input.name)?;
                if about.is_empty() { Ok(()) } else { write!(f, " ({})", about.join(": ")) }
            }
            InputError::Unknown { name, known } if known.is_empty() => {
                write!(f, "unknown input `{}`: the template takes no inputs", printable(name))
            }
            InputError::Unknown { name, .. } => write!(f, "unknown input `{}`", printable(name)),
        }
    }
}

impl InputError {
    /// What to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            InputError::Kind { name, kind, .. } => Some(format!("-i {name}={}", kind.example())),
            InputError::Choice { name, choices, .. } => choices.first().map(|choice| match choice {
                Value::String(text) => format!("-i {name}={text}"),
                other => format!("-i {name}={other}"),
            }),
            InputError::Missing(input) => {
                let chosen = input.choices.first().map(|choice| match choice {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                let usual = || input.kind.map_or("VALUE", InputKind::example).to_string();
                Some(format!("-i {}={}", input.name, chosen.unwrap_or_else(usual)))
            }
            InputError::Unknown { name, known } => {
                let names = || Some(format!("inputs: {}", known.join(", "))).filter(|_| !known.is_empty());
                let declare =
                    || format!("declare it in the template: `inputs: {{ {}: null }}`", printable(name));
                let near = did_you_mean(name, known.iter().map(String::as_str));
                Some(near.or_else(names).unwrap_or_else(declare))
            }
        }
    }
}

/// A value on a line, cut and free of control characters.
pub fn short(value: &Value) -> String {
    let text = printable(&value.to_string());
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

pub fn list(values: &[Value]) -> String {
    values.iter().map(short).collect::<Vec<_>>().join(", ")
}
