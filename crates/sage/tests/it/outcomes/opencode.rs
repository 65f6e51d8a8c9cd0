//! opencode, over ACP.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, acp_program, openai_usage};
use super::play::play;
use super::row::{Row, Tokens, is_denied, is_limited, killed, row, uses_tool};

const OPENCODE: Agent = Agent {
    name: "opencode",
    model: Some("gpt-5.4"),
    usage: openai_usage,
    shell,
    install,
    is: |program, _| program.ends_with("opencode.exe") || program.ends_with("opencode"),
    beside: &[],
    at_once: 2,
};

fn shell(command: &str) -> Value {
    json!({"tool": {"name": "bash", "input": {"command": command, "description": "work"}}})
}

/// It asks only where its own configuration says so, and has the model think of a title unless that is disabled.
fn install(home: &Home<'_>) -> Option<Setup> {
    let program = acp_program("opencode")?;
    let options = json!({"baseURL": format!("{}/v1", home.url), "apiKey": "none"});
    let models = json!({"gpt-5.4": {"name": "Fake", "limit": {"context": 200_000, "output": 8_000}}});
    let provider =
        json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": models});
    let config = json!({"autoupdate": false, "share": "disabled", "provider": {"fake": provider},
        "model": "fake/gpt-5.4", "small_model": "fake/gpt-5.4", "agent": {"title": {"disable": true}},
        "permission": {"bash": "ask", "edit": "ask"}});
    home.write(".config/opencode/opencode.json", &config.to_string());
    Some(Setup {
        adapter: "acp",
        command: vec![program, "acp".into()],
        env: vec![
            ("HOME", home.text()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".into()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".into()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
        ],
        more: String::new(),
    })
}

const ALLOWED: &str = "[approvals]\ntools = [\"bash\"]\n";

fn rows() -> Vec<Row> {
    vec![
        row("ok").long(),
        // It tells only what its last response used: the attempt counts as one that did not tell all.
        uses_tool(shell("echo ran > ran")).settings(ALLOWED).tokens(Tokens::Responses(1)).unattributed(1),
        is_denied(shell("sh -c 'echo ran > ran'")).fails("failed").says("not allowed").unattributed(1),
        row("400").always(json!({"status": 400})).fails("invalid"),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1).long(),
        is_limited().requests(2).not_before_ms(&[0, 2_000]),
        killed(&OPENCODE, "SIGKILL", Signal::KILL)
            .settings(ALLOWED)
            .tokens(Tokens::Responses(1))
            .unattributed(1),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn outcomes() {
    play(&OPENCODE, rows());
}
