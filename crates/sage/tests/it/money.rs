//! Money with the real agents: what they use, what that costs, and where a budget stops them.
//!
//! A scripted endpoint answers the real Claude Code, the real Codex and models behind HTTP. It knows what it sent, so
//! every figure is compared with that; and all views must show the same one.

mod rows;
mod stops;
mod views;

use std::path::PathBuf;

use sage_agents::fake_llm::FakeLlm;
use sage_core::port::Usage;
use sage_core::price::PriceTable;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::real_agents::programs;

/// What Codex uses where nobody names a model.
const CODEX_MODEL: &str = "gpt-6.1-sol";
/// What Claude Code uses where nobody names a model.
const CLAUDE_MODEL: &str = "claude-opus-5-5";

/// A project whose agents talk to `model` only: `claude`, `codex` (both without a model), and one model behind HTTP for
/// each protocol: `messages`, `responses`, `chat`.
fn project(model: &FakeLlm, template: &str) -> Option<Sage> {
    let programs = programs()?;
    let sage = Sage::new().template("t", template);
    // Codex finds its sandbox only outside of the temporary directory.
    let homes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(sage.outside().file_name().unwrap());
    for name in ["claude", "codex"] {
        std::fs::create_dir_all(homes.join(name)).unwrap();
    }
    let (url, homes) = (model.url(), homes.display().to_string());
    let provider = format!(
        r#"model_providers.fake={{name="fake",base_url="{url}/v1",env_key="FAKE_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}}"#
    );
    let llm = |name: &str, api: &str, model: &str| {
        format!("[agents.{name}]\nadapter = \"llm\"\napi = \"{api}\"\nurl = \"{url}\"\nmodel = \"{model}\"\n")
    };
    let config = format!(
        r#"
parallel = 9
[agents.claude]
adapter = "claude"
command = ["{claude}"]
[agents.claude.env]
HOME = "{homes}/claude"
ANTHROPIC_BASE_URL = "{url}"
ANTHROPIC_API_KEY = "dummy"
[agents.codex]
adapter = "codex"
command = ["{codex}", "-c", '{provider}', "-c", "model_provider=fake"]
[agents.codex.env]
HOME = "{homes}/codex"
CODEX_HOME = "{homes}/codex"
FAKE_KEY = "dummy"
{messages}{responses}{chat}
[targets."provider:anthropic"]
concurrent = 9
[targets."provider:openai"]
concurrent = 9
[approvals]
tools = ["Bash"]
"#,
        claude = programs.join("claude").display(),
        codex = programs.join("codex").display(),
        messages = llm("messages", "anthropic", "claude-sonnet-5-5"),
        responses = llm("responses", "responses", "gpt-5.4"),
        chat = llm("chat", "chat", "gpt-5.4-mini"),
    );
    sage.write("sage.toml", config);
    Some(sage)
}

/// What one response of `model` with this usage costs, in dollars, as Anthropic's endpoint tells it.
fn price(model: &str, usage: &Usage) -> f64 {
    PriceTable::built_in().cost_micro_usd(model, usage).unwrap() as f64 / 1e6
}

/// As the script states it.
fn spend(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Value {
    json!({"input_tokens": input, "cache_read_input_tokens": cache_read,
        "cache_creation_input_tokens": cache_write, "output_tokens": output})
}

/// A tool of each agent that does nothing and costs no time.
fn tool(agent: &str) -> Value {
    match agent {
        "claude" => json!({"name": "Bash", "input": {"command": "true", "description": "nothing"}}),
        "codex" => json!({"name": "exec_command", "input": {"cmd": "true"}}),
        _ => json!({"name": "list_files", "input": {}}),
    }
}
