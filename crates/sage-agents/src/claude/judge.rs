//! How a turn ended: the outcome table.
//!
//! | what came                                       | outcome                            |
//! |-------------------------------------------------|------------------------------------|
//! | result without error, with what was asked for   | the answer                         |
//! | result without error, schema asked, none there  | invalid                            |
//! | result that says `usage limit reached|<epoch>`  | quota, until then                  |
//! | result with an error                            | by subtype, else by the API's word |
//! | aborted after a stop                            | stopped                            |
//! | no result                                       | by how the process ended           |

use sage_core::policy::FailureClass;
use sage_core::port::Refusal;
use serde_json::Value;

use super::event::Fault;
use super::shape::Shape;
use super::transcript::{Ending, Transcript};
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::{End, Finished};
use crate::told_time;

const LOG_IN: &str = "run `claude` and type `/login`, or set ANTHROPIC_API_KEY";

pub fn judge(
    transcript: &Transcript,
    finished: &Finished,
    stopped: bool,
    shape: Option<&Shape>,
) -> Result<Value, Miss> {
    match transcript.ending() {
        // Another agent did the work.
        Some(_) if transcript.unknown_agent.is_some() => {
            Err(Miss::invalid(transcript.unknown_agent.clone().unwrap_or_default()))
        }
        Some(ending) if ending.ok && limit_reached(ending).is_some() => {
            Err(api(&fault(ending, transcript), None, transcript))
        }
        Some(ending) if ending.ok => answer(ending, shape),
        Some(ending) if stopped && ending.is_aborted() => Err(Miss::Stopped),
        _ if !transcript.lost_servers.is_empty() => Err(lost_servers(transcript)),
        Some(ending) => Err(failure(ending, transcript)),
        None => Err(without_result(transcript, &finished.end, finished, stopped)),
    }
}

/// The endpoint does not take what was said so far: too long, or broken.
pub fn is_spoiled(answer: &Result<Value, Miss>, transcript: &Transcript) -> bool {
    let status = transcript.ending().and_then(|ending| fault(ending, transcript).status);
    matches!(answer, Err(Miss::Failed { class: FailureClass::Invalid, .. }))
        && matches!(status, Some(400 | 413))
}

fn answer(ending: &Ending, shape: Option<&Shape>) -> Result<Value, Miss> {
    if let Some(shape) = shape {
        let answer = ending.structured.as_ref().and_then(|structured| shape.answer(structured));
        return answer.ok_or_else(|| {
            Miss::unfit("claude answered without the structured output that `schema` asks for")
        });
    }
    if ending.text.trim().is_empty() {
        return Err(Miss::of_answer(FailureClass::Lost, "claude ended with an empty answer"));
    }
    Ok(ending.text.clone().into())
}

fn failure(ending: &Ending, transcript: &Transcript) -> Miss {
    let errors = ending.errors.join("; ");
    match ending.subtype.as_str() {
        "error_max_turns" => Miss::of_answer(
            FailureClass::Failed,
            format!("stopped at its max turns: {errors}; raise `maxTurns`, its session can go on"),
        ),
        "error_max_budget_usd" => Miss::of_answer(
            FailureClass::Budget,
            format!("stopped at its budget: {errors}; raise `maxBudgetUsd`, its session can go on"),
        ),
        "error_max_structured_output_retries" => Miss::unfit(errors),
        _ if ending.stop_reason == "refusal" => {
            Miss::of_answer(FailureClass::Failed, format!("the model refused: {}", ending.text))
        }
        _ => match &transcript.retry {
            Some((fault, delay_ms)) if ending.is_aborted() => api(fault, Some(*delay_ms), transcript),
            _ if ending.is_aborted() => {
                Miss::failed(FailureClass::Lost, format!("the turn was broken off ({})", ending.reason))
            }
            _ if told_time::epoch_ms(&errors).is_some() => {
                api(&Fault { text: errors, ..Fault::default() }, None, transcript)
            }
            _ if !ending.errors.is_empty() => Miss::failed(FailureClass::Failed, errors),
            _ => api(&fault(ending, transcript), None, transcript),
        },
    }
}

/// The result has the words and mostly the status; what kind it is, only the message before it tells.
fn fault(ending: &Ending, transcript: &Transcript) -> Fault {
    let told = transcript.fault.clone().unwrap_or_default();
    Fault { kind: told.kind, status: ending.status.or(told.status), text: ending.text.clone() }
}

/// What older versions say of a used-up subscription, as an error or as the answer itself; an answer that only
/// mentions it is one.
fn limit_reached(ending: &Ending) -> Option<u64> {
    let said = ending.text.trim();
    let whole = said.split_once('|').is_some_and(|(words, epoch)| {
        words.starts_with("Claude") && epoch.bytes().all(|byte| byte.is_ascii_digit())
    });
    told_time::epoch_ms(said).filter(|_| whole)
}

/// A request that the endpoint refused, or that did not get there.
fn api(fault: &Fault, delay_ms: Option<u64>, transcript: &Transcript) -> Miss {
    let mut refusal = Refusal::default();
    let mut hint = None;
    let told = told_time::epoch_ms(&fault.text);
    let class = match (fault.kind.as_str(), fault.status) {
        _ if told.is_some() => {
            refusal.reset_at_ms = told;
            FailureClass::Quota
        }
        ("billing_error", _) => {
            hint = Some("the account has no credit");
            FailureClass::Quota
        }
        (_, Some(429)) | ("rate_limit", _) => match transcript.limit {
            Some(reset_at_ms) => {
                refusal.reset_at_ms = reset_at_ms;
                FailureClass::Quota
            }
            None => {
                // Endpoints name whole seconds. Anything else is the program's own guess, and ours is as good.
                refusal.retry_after_ms = delay_ms.filter(|ms| *ms > 0 && ms % 1_000 == 0);
                FailureClass::RateLimit
            }
        },
        (_, Some(401 | 403)) | ("authentication_failed", _) => {
            hint = Some(LOG_IN);
            FailureClass::Auth
        }
        (_, Some(408 | 409 | 500..)) | ("server_error" | "overloaded", None) => FailureClass::Transient,
        (_, Some(_)) | ("invalid_request" | "model_not_found", None) => FailureClass::Invalid,
        // A connection that broke has neither.
        (_, None) => FailureClass::Transient,
    };
    let mut message = match (&fault.text, fault.status) {
        (text, _) if !text.is_empty() => text.clone(),
        (_, Some(status)) => format!("the request to the model failed: {} ({status})", fault.kind),
        (_, None) => "the connection to the model broke or could not be made".into(),
    };
    if let Some(hint) = hint {
        message.push_str(&format!("; {hint}"));
    }
    Miss::of_endpoint(class, message, refusal)
}

/// What a server that may be there again in a moment says, or what is said of it.
const PASSING: &[&str] =
    &["econnrefused", "econnreset", "etimedout", "timed out", "timeout", "fetch failed", "502", "503", "504"];

/// One that is missing, disabled or not logged in does not come back by itself.
fn lost_servers(transcript: &Transcript) -> Miss {
    let passing = transcript.lost_servers.iter().all(|server| {
        let error = server.error.as_deref().unwrap_or_default().to_lowercase();
        server.status == "failed" && PASSING.iter().any(|word| error.contains(word))
    });
    let servers = transcript.lost_servers.iter().map(|server| {
        let why = server.error.as_deref().unwrap_or("no reason given");
        format!("MCP server `{}` is {}: {why}", server.name, server.status)
    });
    let servers = servers.collect::<Vec<_>>().join("; ");
    let message = format!("{servers}; see `mcpServers` of the agent");
    if passing { Miss::failed(FailureClass::Transient, message) } else { Miss::invalid(message) }
}

fn without_result(transcript: &Transcript, end: &End, finished: &Finished, stopped: bool) -> Miss {
    let code = match exit_code(end) {
        Ok(code) => code,
        Err(Miss::Stopped) if !stopped => {
            return Miss::failed(FailureClass::Lost, "claude did not end, and was ended without a result");
        }
        Err(Miss::Failed { class: FailureClass::Invalid, message, .. }) => {
            let hint = "install Claude Code (`npm install -g @anthropic-ai/claude-code`), or set the agent's `command`";
            return Miss::invalid(format!("{message}; {hint}"));
        }
        Err(miss) => return miss,
    };
    if stopped {
        return Miss::Stopped;
    }
    let said = exit_message(code, &finished.stdout, &finished.stderr);
    if told_time::epoch_ms(&said).is_some() {
        return api(&Fault { text: said, ..Fault::default() }, None, transcript);
    }
    // It complains about its flags before it says anything else.
    if !transcript.spoke && code == 1 {
        return Miss::invalid(format!("claude did not start: {said}"));
    }
    let garbage = match transcript.garbage_lines {
        0 => String::new(),
        count => format!("; {count} lines were not understood"),
    };
    Miss::failed(FailureClass::Lost, format!("claude ended without a result: {said}{garbage}"))
}
