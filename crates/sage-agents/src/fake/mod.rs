//! The scripted agent: a real process with real faults, for tests, demos and bug reports.
//!
//! ```text
//! run (this file) --script.json--> keeper -> `sage debug fake-agent` (agent.rs)
//!        <------------ JSON lines on stdout (line.rs, transcript.rs) ------+
//! ```
//! Success is exactly one `result` line and exit code 0; everything else is a failure with its reason.

mod agent;
mod line;
mod script;
mod server;
mod transcript;

use std::convert::Infallible;
use std::ffi::OsString;

use sage_core::policy::FailureClass;
use sage_core::port::{Message, Messages, Permission, Questions, StepOutcome};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

pub use agent::fake_agent_main;
pub use script::FAULTS;

use crate::activity::Writer;
use crate::agent::{Feed, describe};
use crate::attempt::Attempt;
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::Finished;
use crate::talk::{Mouth, Talk};
use crate::text_file;
use line::{Answer, Told};
use script::Script;
use transcript::Transcript;

/// `default` is the script of steps that bring none.
pub async fn run(attempt: &Attempt<'_>, default: Option<&Value>) -> StepOutcome {
    let mut transcript = Transcript::new(attempt.config.output_cap);
    Writer::begin(&attempt.cx.scratch);
    let feed = Feed::new(attempt.cx, &attempt.config.redactor, Box::new(|_| {}));
    let finished = match start(attempt, default, &feed, &mut transcript).await {
        Ok(finished) => finished,
        Err(miss) => return miss.into(),
    };
    attempt.cx.messages.close();
    transcript.end(&feed);
    match judge(&finished, &transcript) {
        Ok(result) => StepOutcome::Succeeded { result, usage: transcript.usage },
        Err(miss) => {
            let partial = partial(&transcript);
            miss.into_outcome(partial, transcript.usage)
        }
    }
}

async fn start(
    attempt: &Attempt<'_>,
    default: Option<&Value>,
    feed: &Feed,
    transcript: &mut Transcript,
) -> Result<Finished, Miss> {
    let prompt = attempt.params().text("prompt")?.unwrap_or_default();
    feed.sent(attempt.params().text("system")?, prompt);
    let script = Script::parse(&script(attempt, default)?).map_err(Miss::invalid)?;
    let script = script.for_prompt(prompt).map_err(Miss::invalid)?;
    let turn = script.turn(attempt.call.attempt);
    let talks = turn.ask.is_some() || turn.hear > 0;
    let script = attempt.write("script.json", script.text().as_bytes())?;
    let argv: Vec<OsString> = vec![
        attempt.config.keeper.clone().into(),
        "debug".into(),
        "fake-agent".into(),
        script.into(),
        "--attempt".into(),
        attempt.call.attempt.to_string().into(),
    ];
    let mut env = attempt.params().env("env")?;
    env.push((agent::PROJECT.into(), attempt.cx.project.clone().into()));
    if !talks {
        attempt.cx.messages.close();
        let mut on_stdout = |chunk: &[u8]| transcript.push(chunk, feed);
        // The transcript keeps what is needed; the raw output is in the log.
        return attempt.run(argv, env, None, 0, &mut on_stdout).await;
    }
    let (talk, mouth) = Talk::open(attempt)?;
    let mut answering = JoinSet::new();
    let mut on_stdout = |chunk: &[u8]| {
        transcript.push(chunk, feed);
        for ask in transcript.asks.drain(..) {
            answering.spawn(pass_on(attempt.cx.questions.clone(), ask, mouth.clone()));
        }
    };
    let mut passing = std::pin::pin!(pass_messages_on(&attempt.cx.messages, mouth.clone()));
    tokio::select! {
        finished = attempt.converse(argv, env, talk, &mut on_stdout) => finished,
        never = &mut passing => match never {},
    }
}

/// What people say to it, as long as it runs.
async fn pass_messages_on(messages: &Messages, mouth: Mouth) -> Infallible {
    loop {
        messages.come().await;
        for Message { text, .. } in messages.take() {
            mouth.say(serde_json::json!(Told { message: text }).to_string());
        }
    }
}

/// Asks in the agent's name and tells it the answer.
fn pass_on(questions: Questions, ask: Value, mouth: Mouth) -> impl Future<Output = ()> {
    let tool = ask.get("tool").and_then(Value::as_str).unwrap_or("tool").to_string();
    let input = ask.get("input").cloned().unwrap_or(Value::Null);
    let asked = questions.ask(describe(&ulid::Ulid::generate().to_string(), &tool, input));
    async move {
        let answer = match asked.await {
            Permission::Allow { input } => Answer { allow: true, input, message: None },
            Permission::Deny { message } => Answer { allow: false, input: None, message: Some(message) },
        };
        mouth.say(serde_json::json!(answer).to_string());
    }
}

/// A script is written by hand.
const MAX_SCRIPT_BYTES: u64 = 16 << 20;

/// The script as JSON text: inline as a list or as text, or from a file of the project.
fn script(attempt: &Attempt<'_>, default: Option<&Value>) -> Result<String, Miss> {
    let missing = || {
        let hint = "in the step's `params`, or for all steps as `[agents.fake] script = \"turns.json\"` in sage.toml";
        Miss::invalid(format!("the fake agent needs `script`: a list of turns, or a file, {hint}"))
    };
    match attempt.params().get("script").or(default).ok_or_else(missing)? {
        Value::String(text) if text.trim_start().starts_with('[') => Ok(text.clone()),
        Value::String(path) => text_file::read(&attempt.cx.project.join(path), MAX_SCRIPT_BYTES)
            .map_err(|error| Miss::invalid(format!("cannot read the script `{path}`: {error}"))),
        list => Ok(list.to_string()),
    }
}

fn judge(finished: &Finished, transcript: &Transcript) -> Result<Value, Miss> {
    let code = exit_code(&finished.end)?;
    if let Some(error) = &transcript.error {
        return Err(error.to_miss());
    }
    if code != 0 {
        let message = exit_message(code, &finished.stdout, &finished.stderr);
        return Err(Miss::failed(FailureClass::Failed, message));
    }
    match transcript.results.as_slice() {
        [result] => Ok(result.clone()),
        [] if transcript.garbage_lines > 0 => Err(Miss::failed(
            FailureClass::Lost,
            format!("ended without a result; {} lines were not understood", transcript.garbage_lines),
        )),
        [] => Err(Miss::failed(FailureClass::Lost, "ended without a result")),
        // Which one is meant is not for us to guess.
        _ => Err(Miss::unfit("two results")),
    }
}

/// What an agent that failed has left: its result, its text.
fn partial(transcript: &Transcript) -> Option<Value> {
    let mut left = Map::new();
    if let [result] = transcript.results.as_slice() {
        left.insert("result".into(), result.clone());
    }
    if !transcript.text.is_empty() {
        left.insert("text".into(), transcript.text.clone().into());
    }
    (!left.is_empty()).then_some(Value::Object(left))
}
