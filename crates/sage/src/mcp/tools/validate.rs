//! `sage_workflow_validate`: everything that is wrong with a template. It never fails: what cannot be read is not
//! valid.

use sage_core::diagnostic::{Severity, Shown};
use sage_core::event::Frozen;
use sage_core::source::Format;
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{ToolError, given};
use crate::cli::catalog::Catalog;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::validate::{self, Validation};

/// What its problems are told with.
const NAME: &str = "template";
const MAX_BYTES: usize = 4 << 20;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let template = args.take("template").unwrap_or_default();
    if let Err(error) = args.finish() {
        return Ok(answer(vec![problem("", error.message())], Vec::new(), None));
    }
    let checked = call.blocking(move |context| Ok(check(context, template))).await;
    Ok(checked.unwrap_or_else(|error| answer(vec![problem("", error.message())], Vec::new(), None)))
}

fn check(context: &Context, template: Value) -> Answer {
    let catalog = Catalog::of(context);
    let frozen = match frozen(&catalog, template) {
        Ok(frozen) => frozen,
        Err(message) => return answer(vec![problem(NAME, &message)], Vec::new(), None),
    };
    // What is wrong with templates that it uses.
    let mut inner = Vec::new();
    let file = frozen.file.clone().unwrap_or_else(|| NAME.into());
    let Validation { shown, warnings, plan, below } =
        validate::check(context, &catalog, &file, frozen, &mut |file, loaded, text| {
            inner.extend(loaded.show(file, text).iter().map(row));
        });
    let mut errors: Vec<Value> = shown.iter().map(row).chain(inner).collect();
    errors.extend(below.map(|failure| problem(NAME, &failure.message)));
    let warnings = warnings.into_iter().map(|warning| warning.message).collect();
    answer(errors, warnings, plan.as_ref().map(validate::graph))
}

/// A definition, its text, or the name of one that the project has.
fn frozen(catalog: &Catalog, template: Value) -> Result<Frozen, String> {
    let text = match template {
        Value::Object(_) => return Ok(Frozen::new(NAME, Format::Json, template.to_string())),
        Value::String(text) if text.len() > MAX_BYTES => {
            return Err(format!("it has {} bytes, more than 4 MiB", text.len()));
        }
        Value::String(text) => text,
        Value::Null => return Err("it is missing: the definition of a workflow".into()),
        other => return Err(format!("it must be an object or a text, not {}", given(&other))),
    };
    let is_name = !text.is_empty()
        && text.len() < 100
        && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if is_name {
        let known = catalog.all().contains_key(&text);
        let unknown = || format!("there is no template `{text}`");
        return if known {
            catalog.freeze(&text).map_err(|failure: Failure| failure.message)
        } else {
            Err(unknown())
        };
    }
    let format = if text.trim_start().starts_with('{') { Format::Json } else { Format::Yaml };
    Ok(Frozen::new(NAME, format, text))
}

fn row(shown: &Shown) -> Value {
    let hint = shown.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
    let mut row = problem(&shown.field, &format!("{}{hint}", shown.message));
    row["severity"] = if shown.severity == Severity::Error { "error" } else { "warning" }.into();
    row["line"] = shown.line.into();
    row
}

fn problem(field: &str, message: &str) -> Value {
    json!({"field": field, "message": message, "severity": "error"})
}

/// A template that is not valid has no graph: nothing of it is counted.
fn answer(errors: Vec<Value>, warnings: Vec<String>, graph: Option<Value>) -> Answer {
    let valid = graph.is_some();
    let text = match errors.iter().filter(|row| row["severity"] == "error").count() {
        0 => "valid".to_string(),
        1 => "not valid: 1 error".to_string(),
        count => format!("not valid: {count} errors"),
    };
    let graph = graph.unwrap_or_else(|| json!({"nodes": 0, "edges": 0, "depth": 0}));
    Answer::shown(json!({"valid": valid, "errors": errors, "warnings": warnings, "graph": graph}), text)
}
