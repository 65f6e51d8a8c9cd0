//! The arguments of a call, read one by one. What is wrong is told with the field, what was given and what is
//! allowed; a field that nobody reads is a mistake, too.

use sage_core::diagnostic::did_you_mean;
use sage_core::slug::Feature;
use serde_json::{Map, Value};

use super::error::{Code, ToolError, given};

/// Of one text; code and templates are smaller, and whatever is larger belongs into a file.
const MAX_TEXT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Args {
    /// `options.` inside of it, nothing at the top.
    place: &'static str,
    fields: Map<String, Value>,
    /// Names that were asked for, for the hint about one that was not.
    known: Vec<&'static str>,
}

impl Args {
    pub fn new(fields: Map<String, Value>) -> Args {
        Args { place: "", fields, known: Vec::new() }
    }

    /// `null` is as good as nothing.
    pub fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn wrong(&self, name: &str, value: &Value, allowed: &str) -> ToolError {
        let place = self.place;
        ToolError::new(Code::Validation, format!("`{place}{name}` must be {allowed}, not {}", given(value)))
    }

    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, ToolError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= MAX_TEXT_BYTES => Ok(Some(text)),
            Some(Value::String(text)) => Err(ToolError::new(
                Code::Validation,
                format!(
                    "`{}{name}` has {} bytes; at most {MAX_TEXT_BYTES} are allowed",
                    self.place,
                    text.len()
                ),
            )),
            Some(other) => Err(self.wrong(name, &other, "a text")),
        }
    }

    pub fn needed(&mut self, name: &'static str) -> Result<String, ToolError> {
        let missing = ToolError::new(Code::Validation, format!("`{}{name}` is missing: a text", self.place));
        self.text(name)?.ok_or(missing)
    }

    /// The title or slug of a feature.
    pub fn feature(&mut self) -> Result<Feature, ToolError> {
        Ok(Feature::from_title(&self.needed("feature")?)?)
    }

    pub fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, ToolError> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(value),
            Some(other) => Err(self.wrong(name, &other, "true or false")),
        }
    }

    /// A whole number in a range. 5.0 is one, as JavaScript writes it.
    pub fn number(
        &mut self,
        name: &'static str,
        lowest: u64,
        highest: u64,
    ) -> Result<Option<u64>, ToolError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match whole(&value) {
            Some(number) if (lowest..=highest).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(name, &value, &format!("a whole number from {lowest} to {highest}"))),
        }
    }

    /// How long to wait; more than we may is as long as we may.
    pub fn wait_ms(&mut self, default: u64, most: u64) -> Result<u64, ToolError> {
        Ok(self.number("waitMs", 0, u64::MAX)?.unwrap_or(default).min(most))
    }

    pub fn one_of(
        &mut self,
        name: &'static str,
        allowed: &[&'static str],
    ) -> Result<Option<&'static str>, ToolError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = value.as_str().and_then(|text| allowed.iter().find(|it| **it == text));
        match found {
            Some(found) => Ok(Some(*found)),
            None => Err(self.wrong(name, &value, &format!("one of {}", allowed.join(", ")))),
        }
    }

    pub fn object(&mut self, name: &'static str) -> Result<Option<Map<String, Value>>, ToolError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(self.wrong(name, &other, "an object")),
        }
    }

    /// The fields of an object, to be read like these.
    pub fn inner(&mut self, name: &'static str, place: &'static str) -> Result<Args, ToolError> {
        Ok(Args { place, ..Args::new(self.object(name)?.unwrap_or_default()) })
    }

    pub fn texts(&mut self, name: &'static str) -> Result<Vec<String>, ToolError> {
        let Some(value) = self.take(name) else { return Ok(Vec::new()) };
        let list = value.as_array().and_then(|list| {
            list.iter().map(|text| text.as_str().map(str::to_string)).collect::<Option<Vec<String>>>()
        });
        list.ok_or_else(|| self.wrong(name, &value, "a list of texts"))
    }

    /// What is left over was written wrong, or is meant for another tool.
    pub fn finish(self) -> Result<(), ToolError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let shown = given(&Value::String(name.clone()));
        let known = self.known.iter().copied();
        let error = ToolError::new(
            Code::Validation,
            format!("unknown argument {}{shown}; there are: {}", self.place, self.known.join(", ")),
        );
        Err(match did_you_mean(name, known) {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }
}

fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|it| it.fract() == 0.0 && (0.0..1e15).contains(it));
    value.as_u64().or_else(|| float().map(|it| it as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(value: Value) -> Args {
        Args::new(value.as_object().unwrap().clone())
    }

    fn message(error: ToolError) -> String {
        let body = error.into_result().structured_content.unwrap();
        format!("{} | {}", body["message"].as_str().unwrap(), body["hint"].as_str().unwrap())
    }

    // covers: R16
    #[test]
    fn what_is_wrong_is_named() {
        let mut it =
            args(json!({"feature": 5, "waitMs": -1, "full": "yes", "files": ["a", 1], "filter": "done"}));
        assert_eq!(message(it.needed("feature").unwrap_err()), "`feature` must be a text, not 5 | ");
        let said = message(it.number("waitMs", 0, 9).unwrap_err());
        assert_eq!(said, "`waitMs` must be a whole number from 0 to 9, not -1 | ");
        assert_eq!(
            message(it.flag("full", true).unwrap_err()),
            "`full` must be true or false, not \"yes\" | "
        );
        assert_eq!(message(it.texts("files").unwrap_err()), "`files` must be a list of texts, not a list | ");
        let said = message(it.one_of("filter", &["running", "failed"]).unwrap_err());
        assert_eq!(said, "`filter` must be one of running, failed, not \"done\" | ");
        assert!(message(it.needed("step").unwrap_err()).starts_with("`step` is missing"));
        assert!(it.finish().is_ok());
    }

    #[test]
    fn numbers_are_whole_and_too_much_waiting_is_less() {
        let mut it = args(json!({"a": 5.0, "b": 5.5, "waitMs": 10_000_000}));
        assert_eq!(it.number("a", 0, 9).unwrap(), Some(5));
        assert!(it.number("b", 0, 9).is_err());
        assert_eq!(it.wait_ms(7, 40_000).unwrap(), 40_000);
        assert_eq!(it.wait_ms(7, 40_000).unwrap(), 7, "without it the default");
    }

    #[test]
    fn nobody_gets_ten_megabytes_back() {
        let long = "x".repeat(10 << 20);
        let mut it = args(json!({"a": long, "b": {"c": 1}, "fature": 1}));
        assert!(message(it.text("a").unwrap_err()).contains("10485760 bytes"));
        assert!(it.one_of("b", &["x"]).is_err());
        assert!(it.text("feature").unwrap().is_none());
        assert!(message(it.finish().unwrap_err()).contains("did you mean `feature`"));
    }
}
