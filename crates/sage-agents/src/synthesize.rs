//! `synthesize` steps: the claims of several steps, compared (`sage_core::synthesis`). No process, no model.

use sage_core::port::{StepOutcome, Stop, Usage};
use sage_core::synthesis::{self, Source, THRESHOLD};
use serde_json::Value;

use crate::attempt::Attempt;
use crate::outcome::Miss;

pub async fn run(attempt: &Attempt<'_>) -> StepOutcome {
    let work = match prepared(attempt) {
        Ok((sources, threshold)) => tokio::task::spawn_blocking(move || put_together(&sources, threshold)),
        Err(miss) => return miss.into(),
    };
    let done = tokio::select! {
        done = work => done,
        () = attempt.cx.stop.reached(Stop::Graceful) => return Miss::Stopped.into(),
    };
    match done {
        Ok(Ok(result)) => StepOutcome::Succeeded { result, usage: Usage::default() },
        Ok(Err(miss)) => miss.into(),
        Err(error) => Miss::invalid(format!("internal: the synthesis broke off: {error}")).into(),
    }
}

fn prepared(attempt: &Attempt<'_>) -> Result<(Vec<Source>, f64), Miss> {
    let threshold = attempt.params().number("threshold")?.unwrap_or(THRESHOLD);
    let sources = attempt.call.input.get("sources").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    let sources = serde_json::from_value(sources)
        .map_err(|error| Miss::invalid(format!("the sources of the synthesis cannot be read: {error}")))?;
    Ok((sources, threshold))
}

fn put_together(sources: &[Source], threshold: f64) -> Result<Value, Miss> {
    let result = serde_json::to_value(synthesis::synthesize(sources, threshold));
    result.map_err(|error| Miss::invalid(format!("the synthesis is not JSON: {error}")))
}
