//! The `offline` agent: no model, no network, no money. What it does is in `sage-offline` and in the binary; here
//! it is a process like any other agent, so that it can be stopped and cannot take the engine with it.
//!
//! `sage __offline <operation>` reads `SAGE_INPUT` and prints one JSON object: `{"result": ...}`, or
//! `{"error": "...", "class": "failed" | "invalid", "partial": ...}`.

use std::ffi::OsString;

use sage_core::policy::FailureClass;
use sage_core::port::{StepOutcome, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt::Attempt;
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::Finished;

/// The first argument of the process that does the work.
pub const OFFLINE_ARG: &str = "__offline";

/// What the process prints.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Repeating does not help: the operation or its parameters are wrong.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
}

pub async fn run(attempt: &Attempt<'_>) -> StepOutcome {
    let finished = match start(attempt).await {
        Ok(finished) => finished,
        Err(miss) => return miss.into_outcome(None, nothing()),
    };
    match answer(&finished) {
        Ok(Answer { result: Some(result), .. }) => StepOutcome::Succeeded { result, usage: nothing() },
        Ok(Answer { error, invalid, partial, .. }) => {
            let class = if invalid { FailureClass::Invalid } else { FailureClass::Failed };
            let message = error.unwrap_or_else(|| "ended without a result".into());
            Miss::failed(class, message).into_outcome(partial, nothing())
        }
        Err(miss) => miss.into_outcome(None, nothing()),
    }
}

async fn start(attempt: &Attempt<'_>) -> Result<Finished, Miss> {
    let argv: Vec<OsString> = vec![
        attempt.config.keeper.clone().into(),
        OFFLINE_ARG.into(),
        attempt.call.operation.as_str().into(),
    ];
    let env = attempt.params().env("env")?;
    attempt.run(argv, env, None, attempt.config.output_cap, &mut |_| {}).await
}

fn answer(finished: &Finished) -> Result<Answer, Miss> {
    let code = exit_code(&finished.end)?;
    let told = serde_json::from_str(&finished.stdout.text);
    told.map_err(|_| Miss::failed(FailureClass::Lost, exit_message(code, &finished.stdout, &finished.stderr)))
}

/// Known to be nothing, which is not the same as unknown.
fn nothing() -> Usage {
    Usage { input: Some(0), output: Some(0), ..Usage::default() }
}
