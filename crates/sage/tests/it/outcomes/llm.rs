//! Models behind HTTP, in each of the three protocols.

use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, anthropic_usage, openai_usage};
use super::play::play;
use super::row::{DONE, NO_EVENT, PAGE, Row, SCHEMA, SOON, row};

const ANTHROPIC: Agent = Agent {
    name: "messages",
    model: Some("claude-sonnet-5-5"),
    usage: anthropic_usage,
    shell: |_| json!({"tool": {"name": "list_files", "input": {}}}),
    install: |home| setup(home, "anthropic", "claude-sonnet-5-5"),
    is: |_, _| false,
    beside: &[],
    at_once: 2,
};
const RESPONSES: Agent = Agent {
    name: "responses",
    model: Some("gpt-5.4"),
    usage: openai_usage,
    install: |home| setup(home, "responses", "gpt-5.4"),
    ..ANTHROPIC
};
const CHAT: Agent = Agent {
    name: "chat",
    model: Some("gpt-5.4-mini"),
    usage: openai_usage,
    install: |home| setup(home, "chat", "gpt-5.4-mini"),
    ..ANTHROPIC
};

fn setup(home: &Home<'_>, api: &str, model: &str) -> Option<Setup> {
    let more = format!("api = \"{api}\"\nurl = \"{}\"\nmodel = \"{model}\"\n", home.url);
    Some(Setup { adapter: "llm", more, ..Setup::default() })
}

/// `untold`: attempts whose usage nobody knows when a stream breaks off, because it would have come at its end.
fn rows(untold: u64) -> Vec<Row> {
    let busy = json!({"status": 429, "headers": {"retry-after": "1"}});
    let half = "half an answer";
    vec![
        row("ok"),
        row("tool").turns(json!([{"tool": {"name": "list_files", "input": {}}}, {"text": DONE}])).requests(2),
        row("400").always(json!({"status": 400})).fails("invalid"),
        row("400, `retry: 1`").always(json!({"status": 400})).fields("retry: 1").fails("invalid"),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1),
        row("403").always(json!({"status": 403})).fails("auth").blamed(1),
        row("404 model").always(json!({"status": 404})).fails("invalid"),
        row("413").always(json!({"status": 413})).fails("invalid"),
        row("422").always(json!({"status": 422})).fails("invalid"),
        row("429 with retry-after 1").once(busy).attempts(2).not_before_ms(&[0, 1_000]),
        row("429 without").once(json!({"status": 429})).attempts(2),
        row("insufficient_quota").always(json!({"status": 429, "error": "insufficient_quota", "message": "You exceeded your current quota"})).pauses("quota").until_s(200..=330),
        row("500").once(json!({"status": 500})).fields(SOON).attempts(2),
        row("529").once(json!({"status": 529})).fields(SOON).attempts(2),
        row("529 always").always(json!({"status": 529})).fields(SOON).fails("transient").attempts(3).requests(3).blamed(3),
        row("error mid-stream").once(json!({"text": half, "midstreamError": "overloaded_error"})).fields(SOON).attempts(2).unattributed(untold),
        row("dropped stream").once(json!({"text": half, "drop": true})).fields(SOON).attempts(2).unattributed(untold),
        row("connection reset").once(json!({"close": true})).fields(SOON).attempts(2).unattributed(1),
        row("malformed stream").once(json!({"raw": NO_EVENT})).fields(SOON).attempts(2).unattributed(1),
        row("a page of HTML").once(json!({"raw": PAGE, "headers": {"content-type": "text/html"}})).fails("invalid").requests(1).unattributed(1).says("check `url`"),
        row("hang, idleTimeout").always(json!({"hang": true})).fields("idleTimeout: 1s").fails("timeout").blamed(1).unattributed(1),
        row("hang, timeout").always(json!({"hang": true})).fields("timeout: 1s, retry: 1").fails("timeout").blamed(1).unattributed(1),
        row("schema").always(in_text(json!({"n": 3}))).fields(SCHEMA).succeeds(json!({"n": 3})),
        row("schema missed").always(in_text(json!({"n": "three"}))).fields(SCHEMA).fails("invalid").attempts(2).requests(2),
        row("refusal").always(json!({"text": "no", "stopReason": "refusal"})).fails("failed").says("refused"),
        row("empty answer").always(json!({"text": ""})).fields(SOON).fails("failed").attempts(3).requests(3),
    ]
}

fn in_text(answer: Value) -> Value {
    json!({"text": answer.to_string()})
}

// covers: R7, R13, R18, S4
#[test]
fn anthropic() {
    play(&ANTHROPIC, rows(0));
}

// covers: R7, R13, R18, S4
#[test]
fn responses() {
    play(&RESPONSES, rows(1));
}

// covers: R7, R13, R18, S4
#[test]
fn chat() {
    play(&CHAT, rows(1));
}
