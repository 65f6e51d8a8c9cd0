//! `sage_tools_search` and `sage_code_run`: the project's other MCP servers, used in code.

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::{Call, MAX_WAIT_MS};
use super::super::error::{Code, ToolError};

pub async fn search(_: &Call, mut args: Args) -> Result<Answer, ToolError> {
    args.needed("query")?;
    args.one_of("detail", &["names", "signatures", "full"])?;
    args.number("limit", 1, 100)?;
    args.finish()?;
    Err(missing())
}

pub async fn run(_: &Call, mut args: Args) -> Result<Answer, ToolError> {
    args.needed("code")?;
    args.text("session")?;
    args.number("timeoutMs", 100, MAX_WAIT_MS)?;
    args.object("save")?;
    args.finish()?;
    Err(missing())
}

fn missing() -> ToolError {
    ToolError::new(Code::External, "code mode is not part of this version of sage")
}
