//! Shell steps: `run` (a script for `sh -c`) or `argv` (a program and its arguments).
//!
//! The script is never rendered: data comes by `SAGE_INPUT` and `env`. Result: `{stdout, stderr, exitCode}`,
//! or the parsed stdout with `json: true`.

use sage_core::policy::FailureClass;
use sage_core::port::{StepOutcome, Usage};
use serde_json::{Map, Value};

use crate::attempt::Attempt;
use crate::outcome::{Miss, excerpt, exit_code, exit_message};
use crate::process::Finished;

pub async fn run(attempt: &Attempt<'_>) -> StepOutcome {
    let (finished, parse) = match start(attempt).await {
        Ok(started) => started,
        Err(miss) => return miss.into(),
    };
    let code = exit_code(&finished.end);
    let checked = code.clone().and_then(|code| check(code, &finished, parse));
    let result = |finished| result(finished, code.ok());
    match checked {
        Ok(Some(parsed)) => StepOutcome::Succeeded { result: parsed, usage: Usage::default() },
        Ok(None) => StepOutcome::Succeeded { result: result(finished), usage: Usage::default() },
        Err(miss) => miss.into_outcome(Some(result(finished)), Usage::default()),
    }
}

async fn start(attempt: &Attempt<'_>) -> Result<(Finished, bool), Miss> {
    let params = attempt.params();
    let argv = match (params.text("run")?, params.argv("argv")?) {
        (Some(script), None) => attempt.shell(script)?,
        (None, Some(argv)) => argv,
        _ => return Err(Miss::invalid("a shell step needs either `run` or `argv`")),
    };
    let parse = params.flag("json")?;
    let keep = attempt.config.output_cap;
    let finished = attempt.run(argv, params.env("env")?, None, keep, &mut |_| {}).await?;
    Ok((finished, parse))
}

/// The parsed output if it was asked for.
fn check(code: i32, finished: &Finished, parse: bool) -> Result<Option<Value>, Miss> {
    if code != 0 {
        let message = exit_message(code, &finished.stdout, &finished.stderr);
        return Err(Miss::failed(FailureClass::Failed, message));
    }
    if let Some(error) = finished.stdout.log_error.as_ref().filter(|_| finished.stdout.truncated) {
        let message = format!("the output cannot be kept: {error}");
        return Err(Miss::failed(FailureClass::Transient, message));
    }
    if !parse {
        return Ok(None);
    }
    if finished.stdout.truncated {
        let bytes = finished.stdout.total_bytes;
        let message = format!("the output is too long to be read as JSON: {bytes} bytes");
        return Err(Miss::failed(FailureClass::Invalid, message));
    }
    let text = &finished.stdout.text;
    serde_json::from_str(text)
        .map(Some)
        .map_err(|error| format!("the output is not JSON ({error}): `{}`", excerpt(text)))
        .map_err(|message| Miss::failed(FailureClass::Invalid, message))
}

/// Takes the output over: it can be large.
fn result(finished: Finished, code: Option<i32>) -> Value {
    let truncated = finished.stdout.truncated || finished.stderr.truncated;
    let mut result = Map::new();
    result.insert("stdout".into(), finished.stdout.text.into());
    result.insert("stderr".into(), finished.stderr.text.into());
    result.insert("exitCode".into(), code.into());
    if truncated {
        result.insert("truncated".into(), true.into());
    }
    if finished.stdout.truncated {
        result.insert("stdoutBytes".into(), finished.stdout.total_bytes.into());
    }
    Value::Object(result)
}
