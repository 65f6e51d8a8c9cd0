//! Claude Code and Codex with Sage as their tool, and a scripted model that calls each tool once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use super::story::{Expected, Step, check, project, steps};
use crate::dsl::Sage;
use crate::installed::finished;
use crate::real_agents::programs;

const LIMIT: Duration = Duration::from_secs(240);
/// How long the agents wait for a tool, in seconds; more than any other call of the story takes.
const PATIENCE_S: u64 = 5;
/// A model does not ask until it is done: it asks this often.
const ASKS: usize = 6;

/// The story as a model tells it: one call a turn, then a last word.
fn turns(name: impl Fn(&str) -> Value) -> (Vec<Step>, Value) {
    let times = |step: &Step| if step.until.is_some() { ASKS } else { 1 };
    let played: Vec<Step> =
        steps().iter().flat_map(|step| std::iter::repeat_n(step.clone(), times(step))).collect();
    let call = |step: &Step| {
        let mut tool = name(step.tool);
        tool["input"] = step.arguments.clone();
        json!({"tool": tool})
    };
    let turns: Vec<Value> = played.iter().map(call).chain([json!({"text": "all called"})]).collect();
    (played, turns.into())
}

/// What the model was told about each call, in order.
fn results(prompt: &Value) -> Vec<String> {
    let entries = prompt["messages"].as_array().or(prompt["input"].as_array()).unwrap();
    let mut found = Vec::new();
    for entry in entries {
        if entry["type"] == "function_call_output" {
            found.push(entry["output"].to_string());
        }
        let blocks = entry["content"].as_array().into_iter().flatten();
        found.extend(
            blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()),
        );
    }
    found
}

/// Lets the slow run go as soon as the model has heard of the time-out.
fn play(sage: &Sage, model: &FakeLlm, played: &[Step], agent: Command) {
    let impatient = played.iter().position(|step| matches!(step.expected, Expected::TimesOut)).unwrap();
    let (succeeded, stdout, stderr) = std::thread::scope(|scope| {
        let agent = scope.spawn(|| finished(agent, LIMIT));
        while !agent.is_finished() {
            let heard = model.prompts().last().map_or(0, |prompt| results(prompt).len());
            if heard > impatient && !sage.path("go").exists() {
                sage.write("go", "");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        agent.join().unwrap()
    });
    let prompts = model.prompts();
    let told = prompts.last().map(results).unwrap_or_default();
    assert!(succeeded && told.len() == played.len(), "{told:#?}\n{stdout}\n{stderr}");
    for (nth, (step, answer)) in played.iter().zip(&told).enumerate() {
        // Only the last time that it asks has to bring the end.
        let asks_again =
            played.get(nth + 1).is_some_and(|next| next.until.is_some() && next.arguments == step.arguments);
        if !asks_again {
            check(step, &answer.replace("\\\"", "\"").replace("\\\\", "\\"));
        }
    }
}

fn home(sage: &Sage) -> PathBuf {
    // Codex finds its sandbox only outside of the temporary directory.
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(sage.outside().file_name().unwrap());
    std::fs::create_dir_all(&home).unwrap();
    home
}

fn agent(sage: &Sage, program: PathBuf, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(sage.root()).env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", home).env("XDG_STATE_HOME", sage.user_state());
    command
}

// covers: R16, S3
#[test]
fn claude_code_calls_every_tool() {
    let Some(programs) = programs() else { return };
    let (played, script) = turns(|tool| json!({"name": format!("mcp__sage__{tool}")}));
    let (sage, model) = (project(), FakeLlm::start(script).unwrap());
    let home = home(&sage);
    let server =
        json!({"type": "stdio", "command": env!("CARGO_BIN_EXE_sage"), "args": ["-C", sage.root(), "mcp"]});
    let mut claude = agent(&sage, programs.join("claude"), &home);
    claude.args([
        "-p",
        "call them all",
        "--output-format",
        "stream-json",
        "--verbose",
        "--strict-mcp-config",
    ]);
    claude.arg("--mcp-config").arg(json!({"mcpServers": {"sage": server}}).to_string());
    claude.args(["--allowedTools", "mcp__sage"]);
    claude.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "dummy");
    claude.env("MCP_TOOL_TIMEOUT", (PATIENCE_S * 1000).to_string());
    for quiet in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
        claude.env(quiet, "1");
    }
    play(&sage, &model, &played, claude);
    let _ = std::fs::remove_dir_all(home);
}

// covers: R16, S3
#[test]
fn codex_calls_every_tool() {
    let Some(programs) = programs() else { return };
    let (played, script) = turns(|tool| json!({"name": tool, "namespace": "mcp__sage"}));
    let (sage, model) = (project(), FakeLlm::start(script).unwrap());
    let home = home(&sage);
    let provider = format!(
        r#"model_providers.fake={{name="fake",base_url="{}/v1",env_key="FAKE_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}}"#,
        model.url()
    );
    let server = format!(
        r#"mcp_servers.sage={{command={:?},args=["-C",{:?},"mcp"],env={{XDG_STATE_HOME={:?}}},startup_timeout_sec=60,tool_timeout_sec={PATIENCE_S}}}"#,
        env!("CARGO_BIN_EXE_sage"),
        sage.root().display().to_string(),
        sage.user_state().display().to_string(),
    );
    let mut codex = agent(&sage, programs.join("codex"), &home);
    codex.args(["exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", "-m", "fake-1"]);
    codex.args(["-c", &provider, "-c", "model_provider=fake", "-c", &server, "call them all"]);
    codex.env("CODEX_HOME", &home).env("FAKE_KEY", "dummy");
    play(&sage, &model, &played, codex);
    let _ = std::fs::remove_dir_all(home);
}
