//! What came of a turn: the answer, or why there is none and whether trying again can help.
//!
//! | what is there                          | what it is                                                |
//! |----------------------------------------|-----------------------------------------------------------|
//! | `turn.completed`                       | the last message is the answer                            |
//! | `turn.failed`                          | by its status, its kind in the rollout, its words         |
//! | a refusal that codex would have tried  | the same                                                  |
//! | no event, `thread/resume failed`       | the thread is gone: a new one is told everything          |
//! | no event, exit code                    | 2, a bad setting: invalid; no login: auth; else a failure |
//! | no event, a signal, a timeout, a stop  | lost, timeout, stopped                                    |

use sage_core::policy::{Cause, FailureClass};
use sage_core::port::{Refusal, Usage};
use serde_json::Value;

use super::fold::{End, Fold};
use super::trouble::{blames_model, class_of, complaint};
use super::wall;
use crate::agent::{Conversation, Order, Turn};
use crate::command::unfenced;
use crate::outcome::{Miss, excerpt, exit_code, exit_message};
use crate::process::{Captured, Finished, signal_name};

/// What codex's argument parser exits with.
const BAD_USAGE: i32 = 2;

/// Codex is started by a script, which tells a signal like a shell does.
const KILLED: i32 = 128;

const BUSY: &str = "already has an active writer";

pub fn turn(fold: Fold<'_>, finished: &Finished, order: &Order, is_stopped: bool) -> Turn {
    let unknown_conversation = fold.end.is_none() && is_unknown(order, &finished.stderr);
    let answer = match (&fold.end, fold.refusal.clone()) {
        (Some(End::Completed(_)), _) => answer(fold.answer.as_deref(), order.schema.is_some()),
        (Some(End::Failed(message)), _) => {
            Err(complaint(message, fold.rollout.error(), fold.rollout.reset_at_ms(), &wall(order)))
        }
        (None, Some(refusal)) if !is_stopped => Err(refusal),
        (None, _) => Err(without_end(&fold, finished)),
    };
    let nothing_used = !fold.answered && is_refused(&answer);
    let (usage, counters) = match fold.usage() {
        Some((usage, total)) => (usage, Some(total)),
        None if nothing_used => (nothing(), None),
        None => (Usage::default(), None),
    };
    let context_tokens = fold.rollout.context_tokens();
    // Another model can go on with the conversation; no model can if it is too long or broken.
    let spoiled = matches!(&answer, Err(Miss::Failed { cause: Some(Cause::Endpoint), message, .. })
        if !blames_model(message, fold.rollout.error()));
    Turn { answer, usage, counters, context_tokens, unknown_conversation, spoiled }
}

fn answer(text: Option<&str>, wants_json: bool) -> Result<Value, Miss> {
    let text = text.filter(|text| !text.trim().is_empty());
    let text =
        text.ok_or_else(|| Miss::of_answer(FailureClass::Failed, "the turn ended without an answer"))?;
    if !wants_json {
        return Ok(text.into());
    }
    serde_json::from_str(unfenced(text))
        .map_err(|_| Miss::unfit(format!("the answer is not JSON: {}", excerpt(text))))
}

/// A request that was refused as a whole used nothing.
fn is_refused(answer: &Result<Value, Miss>) -> bool {
    use FailureClass::{Auth, Invalid, Quota, RateLimit};
    matches!(answer, Err(Miss::Failed { class: Auth | Invalid | Quota | RateLimit, .. }))
}

fn nothing() -> Usage {
    super::usage::Counts::default().classes()
}

/// Nothing was asked yet. A thread that another process still writes is not gone.
fn is_unknown(order: &Order, stderr: &Captured) -> bool {
    let refused =
        ["thread/resume failed", "thread/fork failed"].iter().any(|words| stderr.tail.contains(words));
    let goes_on = !matches!(order.conversation, Conversation::New { .. });
    goes_on && refused && !stderr.tail.contains(BUSY)
}

fn without_end(fold: &Fold<'_>, finished: &Finished) -> Miss {
    let code = match exit_code(&finished.end) {
        Ok(code) => code,
        Err(miss) => return miss,
    };
    if (KILLED..KILLED + 64).contains(&code) {
        return Miss::failed(FailureClass::Lost, format!("killed by {}", signal_name(code - KILLED)));
    }
    let told = without_backtrace(&finished.stderr);
    let message = exit_message(code, &finished.stdout, &told);
    if told.tail.contains(BUSY) {
        return Miss::failed(FailureClass::Transient, message);
    }
    if code == BAD_USAGE || told.tail.contains("Error loading config") {
        return Miss::invalid(message);
    }
    let class = match &fold.complaint {
        Some(complaint) => class_of(complaint, None),
        None => class_of(&told.tail, None),
    };
    if code == 0 && class == FailureClass::Failed {
        return Miss::failed(FailureClass::Lost, "ended without a result");
    }
    let message =
        fold.complaint.as_ref().map_or(message, |complaint| format!("exit code {code}: {complaint}"));
    Miss::of_endpoint(class, message, Refusal::default())
}

/// With RUST_BACKTRACE in the environment the reason stands before many lines of nothing.
fn without_backtrace(stderr: &Captured) -> Captured {
    let told = stderr.tail.split("Stack backtrace:").next().unwrap_or_default();
    Captured { tail: told.trim_end().to_string(), ..stderr.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_text_or_the_json_that_was_asked_for() {
        assert_eq!(answer(Some("[1]"), false), Ok(json!("[1]")));
        assert_eq!(answer(Some("```json\n[1]\n```"), true), Ok(json!([1])));
        let Err(Miss::Failed { class, message, .. }) = answer(Some("see above"), true) else { panic!() };
        assert_eq!((class, message.as_str()), (FailureClass::Invalid, "the answer is not JSON: see above"));
        for nothing in [None, Some(" \n")] {
            let missed = answer(nothing, false);
            assert!(matches!(missed, Err(Miss::Failed { class: FailureClass::Failed, .. })), "{missed:?}");
        }
    }
}
