//! Any program as an agent: the prompt goes in on stdin, the answer comes out on stdout.
//!
//! The program is `params.command` (agent `command`) or a configured agent's. Besides the usual variables it
//! sees `SAGE_PROMPT` (the file that is its stdin), `SAGE_MODEL` if a model is asked for and `SAGE_SCHEMA`
//! (a file) if an answer in JSON is. The engine checks the answer against the schema.
//!
//! Exit code 75 (EX_TEMPFAIL) is a passing failure, every other one but 0 a plain one. The last line of
//! stderr can say more: why it failed, when to try again, and what was used (note.rs).

use std::ffi::OsString;
use std::path::PathBuf;

use sage_core::policy::FailureClass;
use sage_core::port::StepOutcome;
use serde_json::Value;

use crate::activity::Prompt;
use crate::agent::AgentConfig;
use crate::attempt::Attempt;
use crate::complaint::Complaint;
use crate::note::{self, Note};
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::Finished;
use crate::session::with_feedback;

/// `sysexits.h`: a temporary failure, the caller is invited to try again.
const EX_TEMPFAIL: i32 = 75;

pub async fn run(attempt: &Attempt<'_>, agent: Option<&AgentConfig>) -> StepOutcome {
    let mut finished = match start(attempt, agent).await {
        Ok(finished) => finished,
        Err(miss) => return miss.into(),
    };
    let Note { complaint, usage } = note::take(&mut finished.stderr);
    match answer(&finished, complaint, attempt.call.schema.is_some()) {
        Ok(result) => StepOutcome::Succeeded { result, usage },
        Err(miss) => {
            let said = Some(&finished.stdout.text).filter(|text| !text.is_empty());
            miss.into_outcome(said.map(|text| Value::String(text.clone())), usage)
        }
    }
}

async fn start(attempt: &Attempt<'_>, agent: Option<&AgentConfig>) -> Result<Finished, Miss> {
    let argv = match agent.filter(|agent| !agent.command.is_empty()) {
        Some(agent) => agent.command.iter().map(OsString::from).collect(),
        None => attempt.params().argv("command")?.ok_or_else(|| {
            Miss::invalid("agent `command` needs `command`: a list of a program and its arguments")
        })?,
    };
    let prompt = prompt(attempt)?;
    Prompt { system: None, prompt: attempt.config.redactor.text(&prompt).into_owned() }
        .write(&attempt.cx.scratch);
    let prompt = attempt.write("stdin.txt", prompt.as_bytes())?;
    let env = env(attempt, agent, &prompt)?;
    attempt.run(argv, env, Some(prompt), attempt.config.output_cap, &mut |_| {}).await
}

/// A program has one ear: what the system prompt says comes first, what was wrong with its last answer at the end.
fn prompt(attempt: &Attempt<'_>) -> Result<String, Miss> {
    let params = attempt.params();
    let prompt = params.text("prompt")?.ok_or_else(|| Miss::invalid("an agent needs a `prompt`"))?;
    let prompt = with_feedback(prompt, attempt.call);
    Ok(match params.text("system")? {
        Some(system) => format!("{system}\n\n{prompt}"),
        None => prompt,
    })
}

fn env(
    attempt: &Attempt<'_>,
    agent: Option<&AgentConfig>,
    prompt: &std::path::Path,
) -> Result<Vec<(OsString, OsString)>, Miss> {
    let mut env = agent.map_or(Ok(Vec::new()), AgentConfig::variables)?;
    env.extend(attempt.params().env("env")?);
    env.push(("SAGE_PROMPT".into(), prompt.into()));
    env.extend(attempt.call.model.iter().map(|model| ("SAGE_MODEL".into(), model.into())));
    if let Some(schema) = &attempt.call.schema {
        let path: PathBuf = attempt.write("schema.json", schema.to_string().as_bytes())?;
        env.push(("SAGE_SCHEMA".into(), path.into()));
    }
    Ok(env)
}

/// Exit 0 is not enough: an answer must be there, and whole, and the program must not say that it failed.
fn answer(finished: &Finished, complaint: Option<Complaint>, wants_json: bool) -> Result<Value, Miss> {
    let code = exit_code(&finished.end)?;
    let message = || exit_message(code, &finished.stdout, &finished.stderr);
    match complaint {
        Some(complaint) if complaint.message.is_empty() => {
            return Err(Complaint { message: message(), ..complaint }.to_miss());
        }
        Some(complaint) => return Err(complaint.to_miss()),
        None => {}
    }
    match code {
        0 => {}
        EX_TEMPFAIL => return Err(Miss::failed(FailureClass::Transient, message())),
        _ => return Err(Miss::failed(FailureClass::Failed, message())),
    }
    let text = finished.stdout.text.trim_end();
    if text.trim_start().is_empty() {
        return Err(Miss::failed(FailureClass::Lost, "ended without a result"));
    }
    if finished.stdout.truncated {
        let bytes = finished.stdout.total_bytes;
        return Err(Miss::unfit(format!("the answer is too long: {bytes} bytes")));
    }
    let parsed = if wants_json { serde_json::from_str(unfenced(text)).ok() } else { None };
    Ok(parsed.unwrap_or_else(|| Value::String(text.to_string())))
}

/// Models like to wrap JSON in a Markdown fence.
pub fn unfenced(text: &str) -> &str {
    let inner = text.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|rest| rest.split_once('\n')).map_or(text, |(_language, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Captured, End};

    fn finished(text: &str) -> Finished {
        let stdout = Captured { text: text.to_string(), ..Captured::default() };
        Finished { end: End::Exited(0), stdout, stderr: Captured::default() }
    }

    #[test]
    fn json_is_read_where_it_is_wanted_and_text_stays_text() {
        assert_eq!(answer(&finished("{\"a\":1}\n"), None, true), Ok(serde_json::json!({"a": 1})));
        assert_eq!(answer(&finished("```json\n[1]\n```\n"), None, true), Ok(serde_json::json!([1])));
        assert_eq!(answer(&finished("[1]\n"), None, false), Ok(serde_json::json!("[1]")));
        assert_eq!(answer(&finished("see above"), None, true), Ok(serde_json::json!("see above")));
        assert!(matches!(
            answer(&finished(" \n"), None, false),
            Err(Miss::Failed { class: FailureClass::Lost, .. })
        ));
    }
}
