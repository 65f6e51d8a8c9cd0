//! `sage_tools_search` and `sage_code_run`: the project's other MCP servers, used in code.
//!
//! Tools are neither listed nor called one by one: a model looks for what it needs, writes code that calls it, and
//! gets what the code returns.

use sage_script::code::FailureKind;
use sage_script::tools::Detail;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{Call, MAX_WAIT_MS};
use super::super::error::{Code, ToolError, cut};
use crate::code::{CodeFailure, CodeRun, Save, told_failure};

const DEFAULT_LIMIT: u64 = 10;
/// What a client that shows only text sees of a value.
const SHOWN_CHARS: usize = 8_000;

pub async fn search(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let query = args.needed("query")?;
    let detail = args.one_of("detail", &Detail::NAMES)?.and_then(Detail::parse).unwrap_or(Detail::Signatures);
    let limit = args.number("limit", 1, 100)?.unwrap_or(DEFAULT_LIMIT) as usize;
    args.finish()?;
    let mode = call.code_mode().await?;
    let found = mode.search(&query, detail, limit).await;
    let text = match found["tools"].as_str() {
        Some("") | None => format!("no tool fits; there are {}", found["total"]),
        Some(text) => text.to_string(),
    };
    Ok(Answer::new(found, text))
}

pub async fn run(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    let (code, session) = (args.needed("code")?, args.text("session")?);
    let timeout_ms = args.number("timeoutMs", 100, MAX_WAIT_MS)?;
    let save = read_save(args.inner("save", "save.")?)?;
    args.finish()?;
    let mode = call.code_mode().await?;
    let order = CodeRun { code, session, timeout_ms, save, ..CodeRun::default() };
    let answer = tokio::select! {
        answer = mode.run(order) => answer.map_err(failed)?,
        () = call.request.ct.cancelled() => {
            return Err(ToolError::new(Code::Timeout, "the client cancelled the call; the code was stopped"));
        }
    };
    let told = answer.told();
    let text = cut(&told.to_string(), SHOWN_CHARS);
    Ok(Answer::new(told, text))
}

fn read_save(mut args: Args) -> Result<Option<Save>, ToolError> {
    if args.is_empty() {
        return Ok(None);
    }
    let save = Save { name: args.needed("name")?, description: args.needed("description")? };
    args.finish()?;
    Ok(Some(save))
}

fn failed(failure: CodeFailure) -> ToolError {
    let code = match failure.kind {
        FailureKind::Timeout | FailureKind::Cpu | FailureKind::Stuck => Code::Timeout,
        FailureKind::Broken => Code::External,
        _ => Code::Validation,
    };
    let error = ToolError::new(code, failure.message.clone());
    let error = failure.hint.iter().cloned().fold(error, ToolError::hint);
    error.with(told_failure(&failure))
}
