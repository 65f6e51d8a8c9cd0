//! Code mode for the `llm` agent: two tools instead of the definitions of all servers.

use std::sync::Arc;

use sage_agents::llm::{ToolBox, ToolSpec};
use sage_core::port::BoxFuture;
use sage_script::tools::Detail;
use serde_json::{Value, json};

use super::{CodeMode, CodeRun, told_failure};

const SEARCH: &str = "tools_search";
const RUN: &str = "code_run";
const MAX_LIMIT: u64 = 100;

/// One conversation's way to the servers; its code shares a session.
#[derive(Debug)]
pub struct CodeTools {
    mode: Arc<CodeMode>,
    session: String,
}

impl CodeTools {
    pub fn new(mode: Arc<CodeMode>) -> CodeTools {
        let (_, session) = mode.session(None);
        CodeTools { mode, session }
    }

    async fn search(&self, input: &Value) -> Result<Value, String> {
        let query = input.get("query").and_then(Value::as_str).unwrap_or_default();
        let detail = match input.get("detail").and_then(Value::as_str) {
            None => Detail::Names,
            Some(text) => Detail::parse(text)
                .ok_or_else(|| format!("`detail` is one of {}", Detail::NAMES.join(", ")))?,
        };
        let limit = input.get("limit").and_then(Value::as_u64).unwrap_or(20).clamp(1, MAX_LIMIT);
        Ok(self.mode.search(query, detail, limit as usize).await)
    }

    async fn run(&self, input: &Value) -> Result<Value, String> {
        let code =
            input.get("code").and_then(Value::as_str).ok_or("`code` is missing: TypeScript as a text")?;
        let timeout_ms = input.get("timeoutMs").and_then(Value::as_u64);
        let session = Some(self.session.clone());
        let run = CodeRun { code: code.to_string(), session, timeout_ms, ..CodeRun::default() };
        match self.mode.run(run).await {
            Ok(answer) => Ok(answer.told()),
            Err(failure) => Err(told_failure(&failure).to_string()),
        }
    }
}

impl ToolBox for CodeTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let search = ToolSpec {
            name: SEARCH.into(),
            description: "Find tools of the connected servers. Start with names, then ask for signatures of the few you need.".into(),
            input_schema: json!({"type": "object", "required": ["query"], "additionalProperties": false, "properties": {
                "query": {"type": "string"}, "detail": {"enum": Detail::NAMES}, "limit": {"type": "integer"}}}),
        };
        let run = ToolSpec {
            name: RUN.into(),
            description: GUIDE.into(),
            input_schema: json!({"type": "object", "required": ["code"], "additionalProperties": false, "properties": {
                "code": {"type": "string"}, "timeoutMs": {"type": "integer"}}}),
        };
        vec![search, run]
    }

    fn call<'a>(&'a self, name: &'a str, input: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            match name {
                SEARCH => self.search(input).await,
                _ => self.run(input).await,
            }
        })
    }
}

/// What a model must know to write code that works at once.
pub const GUIDE: &str = "Run TypeScript in a sandbox. Tools are functions: `import { search } from \"servers/github\"`. \
Call several at once with Promise.all, filter and combine in code, and `return` only what you need: everything else stays \
in the sandbox. A returned value over 8 KB becomes a handle: `import { handles } from \"sage\"; await handles.get(\"h1\")`. \
`import { tools } from \"sage\"; await tools.search(\"words\")` finds tools. E-mail addresses and the like appear as tokens such as \
[EMAIL_1]; pass them on as they are. No files, no network, no packages, no timers.";
