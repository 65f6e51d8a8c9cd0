//! Codex, over ACP.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, node, openai_usage, program};
use super::play::play;
use super::row::{Row, SOON, Tokens, is_denied, is_limited, killed, row, uses_tool};

const CODEX_ACP: Agent = Agent {
    name: "codex-acp",
    model: Some("gpt-5.4"),
    usage: openai_usage,
    shell,
    install,
    is: |_, line| line.contains("/codex-acp"),
    beside: &[],
    at_once: 2,
};

/// One that needs permission.
fn shell(command: &str) -> Value {
    json!({"tool": {"name": "exec_command", "input": {"cmd": command, "yield_time_ms": 5000,
        "sandbox_permissions": "require_escalated", "justification": "needed"}}})
}

fn install(home: &Home<'_>) -> Option<Setup> {
    let (program, node) = (program("codex-acp")?, node(20)?);
    let provider = json!({"name": "fake", "base_url": format!("{}/v1", home.url), "env_key": "FAKE_KEY",
        "wire_api": "responses", "request_max_retries": 0, "stream_max_retries": 0});
    let config = json!({"model_providers": {"fake": provider}, "model_provider": "fake", "model": "gpt-5.4"});
    Some(Setup {
        adapter: "acp",
        command: vec![node, program],
        env: vec![
            ("HOME", home.text()),
            ("CODEX_HOME", home.text()),
            ("FAKE_KEY", "none".into()),
            ("MODEL_PROVIDER", "fake".into()),
            ("CODEX_CONFIG", config.to_string()),
        ],
        more: String::new(),
    })
}

const ALLOWED: &str = "[approvals]\ntools = [\"execute\"]\n";

fn rows() -> Vec<Row> {
    vec![
        row("ok").long(),
        uses_tool(shell("echo ran > ran")).settings(ALLOWED),
        is_denied(shell("sh -c 'echo ran > ran'")).fails("failed").says("not allowed"),
        row("400").always(json!({"status": 400})).fails("invalid"),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1),
        is_limited()
            .attempts(2)
            // It may ask once more by itself before Sage has heard of the refusal, and tells nothing of that answer.
            .requests_in(2..=3)
            .tokens(Tokens::Responses(1)),
        row("500").once(json!({"status": 500})).fields(SOON).attempts(2).unattributed(1),
        row("dropped stream")
            .once(json!({"text": "half", "drop": true}))
            .fields(SOON)
            .attempts(2)
            .unattributed(1),
        row("hang, idleTimeout")
            .always(json!({"hang": true}))
            .fields("idleTimeout: 6s")
            .fails("timeout")
            .unattributed(1)
            .blamed(1),
        killed(&CODEX_ACP, "SIGKILL", Signal::KILL)
            .settings(ALLOWED)
            .tokens(Tokens::Responses(1))
            .unattributed(1),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn outcomes() {
    play(&CODEX_ACP, rows());
}
