//! JSON Schema of a step's result: compiled without fetching anything, with a regex engine that cannot blow up.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::ExprError;
use crate::diagnostic::printable;

/// A compiled `schema`. Cheap to share between threads.
#[derive(Debug)]
pub struct ResultSchema(Validator);

impl ResultSchema {
    pub fn compile(schema: &Value) -> Result<ResultSchema, ExprError> {
        // The linear engine: a pattern such as `(a+)+$` must not take exponential time on a result.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(schema);
        validator.map(ResultSchema).map_err(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { String::new() } else { format!(" at `{}`", printable(&place)) };
            ExprError::new(format!("not a valid JSON Schema{place}: {}", printable(&error.to_string())))
        })
    }

    /// What is wrong with a result, at most a handful of lines.
    pub fn check(&self, result: &Value) -> Result<(), Vec<String>> {
        self.check_named(result, "the result")
    }

    /// As `check`; `name` is what the whole value is called.
    pub fn check_named(&self, result: &Value, name: &str) -> Result<(), Vec<String>> {
        const SHOWN: usize = 5;
        let problems: Vec<String> = self
            .0
            .iter_errors(result)
            .take(SHOWN)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { name.to_owned() } else { format!("`{place}`") };
                printable(&format!("{place}: {error}"))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}
