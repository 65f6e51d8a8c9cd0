//! Gemini CLI, over ACP. It takes seconds to start: few rows, and more of them with `SAGE_LONG`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, node, program};
use super::play::play;
use super::row::{DONE, NOBODY, Row, SOON, Tokens, killed, row};

const GEMINI: Agent = Agent {
    name: "gemini",
    model: Some("gemini-2.5-flash"),
    // It tells neither cached tokens nor thoughts.
    usage: || json!({"input_tokens": 1000, "output_tokens": 50}),
    shell,
    install,
    is: |_, line| line.contains("/gemini ") && line.contains("--acp"),
    beside: &[],
    at_once: 2,
};

fn shell(command: &str) -> Value {
    json!({"tool": {"name": "run_shell_command", "input": {"command": command}}})
}

fn install(home: &Home<'_>) -> Option<Setup> {
    let (program, node) = (program("gemini")?, node(20)?);
    home.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#);
    let words = [&node, &program, "--acp", "--skip-trust"];
    Some(Setup {
        adapter: "acp",
        command: words.map(String::from).to_vec(),
        env: vec![
            ("HOME", home.text()),
            ("GEMINI_API_KEY", "none".into()),
            ("GOOGLE_GEMINI_BASE_URL", home.url.into()),
            ("GEMINI_TELEMETRY_ENABLED", "false".into()),
        ],
        // Without one, another model is asked which model to take, and uses up the script.
        more: "model = \"gemini-2.5-flash\"\n".into(),
    })
}

fn rows() -> Vec<Row> {
    let write =
        json!({"tool": {"name": "write_file", "input": {"file_path": "new/made.txt", "content": "made"}}});
    let daily = json!({"status": 429, "body": {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
            {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}});
    vec![
        row("ok").long(),
        row("tool and file")
            .turns(json!([write, shell("echo ran > ran"), {"text": DONE}]))
            .param("tools", json!(["Write", "Bash"]))
            .requests(3)
            .afterwards(|it| {
                assert_eq!(
                    (it.sage.lines("new/made.txt"), it.sage.lines("ran")),
                    (vec!["made".into()], vec!["ran".into()])
                );
            }),
        row("asks, denied")
            .turns(json!([shell("sh -c 'echo ran > ran'"), {"text": DONE}]))
            .settings(NOBODY)
            .requests_in(1..=2)
            .afterwards(|it| assert!(!it.sage.path("ran").exists())),
        row("400").always(json!({"status": 400})).fails("invalid"),
        row("daily quota").always(daily).pauses("quota").until_s(200..=86_500),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1).long(),
        row("404 model")
            .always(json!({"status": 404, "message": "models/gemini-x is not found for API version v1beta"}))
            .fails("invalid")
            .long(),
        row("429 with retry-after 2")
            .once(json!({"status": 429, "headers": {"retry-after": "2"}}))
            .requests(2)
            .long(),
        row("500").once(json!({"status": 500})).fields(SOON).requests(2).long(),
        row("hang, idleTimeout")
            .always(json!({"hang": true}))
            .fields("idleTimeout: 20s")
            .fails("timeout")
            .unattributed(1)
            .blamed(1)
            .long(),
        killed(&GEMINI, "SIGKILL", Signal::KILL).tokens(Tokens::Responses(1)).unattributed(1),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn outcomes() {
    play(&GEMINI, rows());
}
