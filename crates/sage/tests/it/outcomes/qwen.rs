//! Qwen Code, over ACP.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, acp_program, node, openai_usage};
use super::play::play;
use super::row::{Row, is_denied, is_limited, killed, row, uses_tool};

const QWEN: Agent = Agent {
    name: "qwen",
    model: Some("gpt-5.4"),
    usage: openai_usage,
    shell,
    install,
    is: |_, line| line.contains("/qwen") && line.contains("--acp"),
    beside: &[],
    at_once: 2,
};

fn shell(command: &str) -> Value {
    json!({"tool": {"name": "run_shell_command", "input": {"command": command, "description": "work", "is_background": false}}})
}

/// Without the requests that it makes beside its work: what to remember, what to ask next.
fn install(home: &Home<'_>) -> Option<Setup> {
    let (program, node) = (acp_program("qwen")?, node(22)?);
    let settings = json!({"security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true},
        "privacy": {"usageStatisticsEnabled": false}, "ui": {"enableFollowupSuggestions": false},
        "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false}});
    home.write(".qwen/settings.json", &settings.to_string());
    Some(Setup {
        adapter: "acp",
        command: vec![node, program, "--acp".into()],
        env: vec![
            ("HOME", home.text()),
            ("OPENAI_API_KEY", "none".into()),
            ("OPENAI_BASE_URL", format!("{}/v1", home.url)),
            ("OPENAI_MODEL", "gpt-5.4".into()),
        ],
        more: String::new(),
    })
}

fn rows() -> Vec<Row> {
    vec![
        row("ok").long(),
        uses_tool(shell("echo ran > ran")).param("tools", json!(["Bash"])),
        is_denied(shell("sh -c 'echo ran > ran'")).fails("failed").says("not allowed"),
        row("400").always(json!({"status": 400})).fails("invalid"),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1).long(),
        is_limited().requests(2).not_before_ms(&[0, 2_000]).long(),
        killed(&QWEN, "SIGKILL", Signal::KILL),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn outcomes() {
    play(&QWEN, rows());
}
