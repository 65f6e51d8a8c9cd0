//! `sage_result`: what a run or a step gave, in pages that fit a model's context.

use sage_core::digest::Digest;
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError, given};
use crate::cli::context::Context;
use crate::cli::result;

const DEFAULT_CHARS: u64 = 20_000;
const MOST_CHARS: u64 = 100_000;

struct Wanted {
    feature: String,
    step: Option<String>,
    full: bool,
    cursor: Option<String>,
    chars: usize,
}

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let wanted = Wanted {
        feature: args.feature()?.slug().to_string(),
        step: args.text("step")?,
        full: args.flag("full", false)?,
        cursor: args.text("cursor")?,
        chars: args.number("maxChars", 200, MOST_CHARS)?.unwrap_or(DEFAULT_CHARS) as usize,
    };
    args.finish()?;
    call.blocking(move |context| page(context, &wanted)).await
}

fn page(context: &Context, wanted: &Wanted) -> Result<Answer, ToolError> {
    let engine = context.engine();
    let run = engine.read(&wanted.feature)?.run;
    let is_unknown = |step: &&str| run.find(step).is_none() && run.kept_output(step).is_none();
    if let Some(step) = wanted.step.as_deref().filter(is_unknown) {
        let near = sage_core::diagnostic::did_you_mean(step, run.live_steps().map(|step| step.path.as_ref()));
        let message = format!("no step {} in `{}`", given(&step.into()), run.feature);
        let hint =
            near.unwrap_or_else(|| super::super::error::call_text("sage_workflow_status", &run.feature));
        return Err(ToolError::new(Code::NotFound, message).hint(hint));
    }
    let value = result::value(&engine, &run, wanted.step.as_deref(), wanted.full)
        .map_err(|failure| ToolError::from(failure).code(Code::NotFound))?;
    cut_page(value, wanted.cursor.as_deref(), wanted.chars)
}

/// A small value as it is; of a large one the text of its JSON, piece by piece. A text is paged as it is.
fn cut_page(value: Value, cursor: Option<&str>, chars: usize) -> Result<Answer, ToolError> {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).map_err(crate::cli::failure::Failure::from)?,
    };
    let total = text.chars().count();
    if total <= chars && cursor.is_none() {
        return Ok(Answer::new(json!({"value": value, "next": null, "totalChars": total}), text));
    }
    let mark = Digest::of(text.as_bytes()).to_string()[..12].to_string();
    let from = cursor.map_or(Ok(0), |cursor| offset(cursor, &mark, total))?;
    let piece: String = text.chars().skip(from).take(chars).collect();
    let end = from + piece.chars().count();
    let next = (end < total).then(|| format!("{end}-{mark}"));
    Ok(Answer::new(json!({"text": piece, "next": next, "totalChars": total}), piece))
}

/// `<chars>-<the beginning of the text's hash>`: pages of another result must not be put together.
fn offset(cursor: &str, mark: &str, total: usize) -> Result<usize, ToolError> {
    let wrong = |why: &str| {
        ToolError::new(Code::Validation, format!("`cursor` {} {why}", given(&cursor.into())))
            .hint("leave `cursor` out to begin again; else it is the `next` of the page before")
    };
    let (at, of) = cursor.split_once('-').ok_or_else(|| wrong("is none that was given"))?;
    if of != mark {
        return Err(wrong("belongs to a result that has changed since"));
    }
    at.parse().ok().filter(|at| *at <= total).ok_or_else(|| wrong("is none that was given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answer: Result<Answer, ToolError>) -> Value {
        match answer {
            Ok(Answer::Done { value, .. }) => value,
            Ok(Answer::Needs(needed)) => panic!("it needs {needed:?}"),
            Err(error) => error.into_result().structured_content.unwrap(),
        }
    }

    // covers: R16
    #[test]
    fn pages_put_together_are_the_whole() {
        let whole = "äöü€😀".repeat(100);
        let mut cursor = None;
        let mut read = String::new();
        for _ in 0..10 {
            let page = body(cut_page(whole.clone().into(), cursor.as_deref(), 77));
            read.push_str(page["text"].as_str().unwrap());
            cursor = page["next"].as_str().map(str::to_string);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(read, whole);
        assert_eq!(body(cut_page(json!({"a": 1}), None, 200))["value"], json!({"a": 1}));
    }

    #[test]
    fn a_page_of_something_else_is_refused() {
        let first = body(cut_page("a".repeat(500).into(), None, 200));
        let next = first["next"].as_str().unwrap();
        let other = body(cut_page("b".repeat(500).into(), Some(next), 200));
        assert!(other["message"].as_str().unwrap().contains("has changed since"), "{other}");
        for odd in ["", "x", "-", "9999999-", "18446744073709551616-abc"] {
            assert_eq!(
                body(cut_page("a".repeat(500).into(), Some(odd), 200))["code"],
                "WORKFLOW_VALIDATION_ERROR"
            );
        }
    }
}
