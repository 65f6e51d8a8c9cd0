//! Reads the rendered `params` of a step; what has the wrong shape is an error that names the parameter.

use std::ffi::OsString;

use serde_json::{Map, Value};

use crate::outcome::Miss;

#[derive(Clone, Copy, Debug)]
pub struct Params<'a>(pub &'a Map<String, Value>);

impl<'a> Params<'a> {
    /// Null counts as not given.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(self, name: &str) -> Result<Option<&'a str>, Miss> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong(name, "text"))).transpose()
    }

    pub fn texts(self, name: &str) -> Result<Vec<String>, Miss> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let list = value.as_array().ok_or_else(|| wrong(name, "a list of texts"))?;
        list.iter().map(|item| word(item).ok_or_else(|| wrong(name, "a list of texts"))).collect()
    }

    /// As `texts`; a single one may stand without brackets.
    pub fn words(self, name: &str) -> Result<Vec<String>, Miss> {
        match self.get(name) {
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            _ => self.texts(name),
        }
    }

    pub fn count(self, name: &str) -> Result<Option<u32>, Miss> {
        let count = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        self.get(name).map(|value| count(value).ok_or_else(|| wrong(name, "a whole number"))).transpose()
    }

    pub fn number(self, name: &str) -> Result<Option<f64>, Miss> {
        self.get(name).map(|value| value.as_f64().ok_or_else(|| wrong(name, "a number"))).transpose()
    }

    pub fn flag(self, name: &str) -> Result<bool, Miss> {
        self.get(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(|| wrong(name, "true or false")))
    }

    /// A program and its arguments: a list with at least the program.
    pub fn argv(self, name: &str) -> Result<Option<Vec<OsString>>, Miss> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let list = value.as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| wrong(name, "a list: a program and its arguments"))?;
        let words: Option<Vec<OsString>> = list.iter().map(|item| word(item).map(OsString::from)).collect();
        let words = words.ok_or_else(|| wrong(name, "a list of texts"))?;
        if words[0].is_empty() {
            return Err(wrong(name, "a list that starts with a program"));
        }
        Ok(Some(words))
    }

    pub fn env(self, name: &str) -> Result<Vec<(OsString, OsString)>, Miss> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let map = value.as_object().ok_or_else(|| wrong(name, "an object of names and texts"))?;
        map.iter().map(|(key, value)| variable(key, value)).collect()
    }
}

/// One environment variable; a name that no program could read back is refused.
pub fn variable(name: &str, value: &Value) -> Result<(OsString, OsString), Miss> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Miss::invalid(format!("`{name}` is not a name of an environment variable")));
    }
    let value = word(value).ok_or_else(|| wrong(&format!("env.{name}"), "text without NUL"))?;
    Ok((name.into(), value.into()))
}

/// Texts, numbers and booleans can be arguments; NUL can't.
fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

fn wrong(name: &str, wanted: &str) -> Miss {
    Miss::invalid(format!("`{name}` must be {wanted}"))
}
