//! Claude Code, over ACP.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, acp_program, anthropic_usage, node};
use super::play::play;
use super::row::{Row, SOON, Tokens, is_denied, is_limited, killed, row, uses_tool};

const CLAUDE_ACP: Agent = Agent {
    name: "claude-acp",
    model: Some("claude-opus-5-5"),
    usage: anthropic_usage,
    shell,
    install,
    is: |_, line| line.contains("claude-agent-acp"),
    beside: &["Write the title", "[SUGGESTION MODE"],
    at_once: 2,
};

fn shell(command: &str) -> Value {
    json!({"tool": {"name": "Bash", "input": {"command": command, "description": "work"}}})
}

fn install(home: &Home<'_>) -> Option<Setup> {
    let (program, node) = (acp_program("claude-agent-acp")?, node(22)?);
    Some(Setup {
        adapter: "acp",
        command: vec![node, program],
        env: vec![
            ("HOME", home.text()),
            ("ANTHROPIC_BASE_URL", home.url.into()),
            ("ANTHROPIC_API_KEY", "none".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
        ],
        more: String::new(),
    })
}

const ALLOWED: &str = "[approvals]\ntools = [\"Bash\"]\n";

fn rows() -> Vec<Row> {
    vec![
        row("ok").long(),
        uses_tool(shell("echo ran > ran")).settings(ALLOWED),
        is_denied(shell("sh -c 'echo ran > ran'")).requests(2),
        row("400").always(json!({"status": 413})).fails("invalid"),
        row("401").always(json!({"status": 401})).fails("auth").requests_in(1..=2).blamed(1),
        is_limited().requests(2),
        row("529").once(json!({"status": 529})).fields(SOON).requests(2).long(),
        row("hang, idleTimeout")
            .always(json!({"hang": true}))
            .fields("idleTimeout: 6s")
            .fails("timeout")
            .unattributed(1)
            .blamed(1),
        killed(&CLAUDE_ACP, "SIGKILL", Signal::KILL)
            .settings(ALLOWED)
            .tokens(Tokens::Responses(1))
            .unattributed(1),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn outcomes() {
    play(&CLAUDE_ACP, rows());
}
