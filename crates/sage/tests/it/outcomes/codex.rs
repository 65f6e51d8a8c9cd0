//! Codex.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, openai_usage, program};
use super::play::{play, play_at_once};
use super::row::{DAYS_S, DONE, NO_EVENT, PAGE, Row, SCHEMA, SOON, Tokens, killed, row};

pub const CODEX: Agent = Agent {
    name: "codex",
    // What it uses where nobody names a model.
    model: Some("gpt-6.1-sol"),
    usage: openai_usage,
    shell: exec,
    install,
    is: |program, _| program.ends_with("bin/codex"),
    beside: &[],
    at_once: 2,
};

fn exec(command: &str) -> Value {
    json!({"tool": {"name": "exec_command", "input": {"cmd": command}}})
}

/// How often it tries again is left to Codex.
fn install(home: &Home<'_>) -> Option<Setup> {
    let provider = format!(
        r#"model_providers.fake={{name="fake",base_url="{}/v1",env_key="FAKE_KEY",wire_api="responses"}}"#,
        home.url
    );
    let words = [&program("codex")?, "-c", &provider, "-c", "model_provider=fake"];
    Some(Setup {
        adapter: "codex",
        command: words.map(String::from).to_vec(),
        env: vec![("HOME", home.text()), ("CODEX_HOME", home.text()), ("FAKE_KEY", "dummy".into())],
        more: String::new(),
    })
}

fn with_flag(flag: &str) -> Vec<String> {
    vec![program("codex").unwrap_or_default(), "-c".into(), flag.into()]
}

/// What a response used that failed, it does not tell.
fn refusals() -> Vec<Row> {
    let error = json!({"type": "invalid_request_error", "code": "model_not_found", "message": "The model `x` does not exist"});
    let unknown_model = json!({"status": 404, "body": {"error": error}});
    vec![
        row("400")
            .always(json!({"status": 400, "message": "no such field"}))
            .fails("invalid")
            .says("no such field"),
        row("400, `retry: 1`").always(json!({"status": 400})).fields("retry: 1").fails("invalid"),
        row("401")
            .always(json!({"status": 401}))
            .fails("auth")
            .requests_in(1..=2)
            .says("codex login")
            .blamed(1),
        row("403").always(json!({"status": 403})).fails("auth").requests_in(1..=2).blamed(1),
        row("404 model").always(unknown_model).fails("invalid").says("does not exist"),
        row("413").always(json!({"status": 413})).fails("invalid").requests_in(1..=2),
        row("context window")
            .always(json!({"failed": "context_length_exceeded"}))
            .tokens(Tokens::Responses(0))
            .fails("invalid")
            .says("context window"),
        row("500").once(json!({"status": 500})),
        row("503").once(json!({"status": 503})).long(),
        row("response.failed").once(json!({"failed": "server_error"})).tokens(Tokens::Responses(1)).long(),
        row("500 always")
            .always(json!({"status": 500}))
            .fields("retry: 1")
            .fails("transient")
            .unattributed(1)
            .requests_in(1..=40)
            .blamed(1)
            .long(),
    ]
}

fn streams() -> Vec<Row> {
    vec![
        row("dropped stream").once(json!({"text": "half an ans", "drop": true})),
        row("connection reset").once(json!({"close": true})),
        row("malformed stream").once(json!({"raw": NO_EVENT})),
        row("a page of HTML").once(json!({"raw": PAGE, "headers": {"content-type": "text/html"}})),
    ]
}

fn hangs() -> Vec<Row> {
    let hang = json!({"hang": true});
    vec![
        row("hang, idleTimeout")
            .always(hang.clone())
            .fields("idleTimeout: 8s")
            .fails("timeout")
            .says("no progress")
            .requests_in(0..=1)
            .unattributed(1)
            .blamed(1),
        row("hang, timeout")
            .always(hang)
            .fields("timeout: 8s, retry: 1")
            .fails("timeout")
            .requests_in(0..=1)
            .unattributed(1)
            .blamed(1),
        row("stall mid-stream, restarted")
            .once(json!({"text": "half", "stall": true}))
            .fields("stall: { after: 12s, nudges: 0, restarts: 1 }")
            .attempts(2)
            .unattributed(1),
    ]
}

fn answers() -> Vec<Row> {
    vec![
        row("ok"),
        row("tool")
            .turns(json!([exec("echo ran >> ran"), {"text": DONE}]))
            .requests(2)
            .afterwards(|it| assert_eq!(it.sage.lines("ran"), ["ran"])),
        row("schema").always(json!({"text": "{\"n\": 3}"})).fields(SCHEMA).succeeds(json!({"n": 3})),
        row("schema missed")
            .always(json!({"text": "three"}))
            .fields(SCHEMA)
            .fails("invalid")
            .afterwards(|it| assert!(it.told().contains("was not accepted")))
            .attempts(2)
            .requests(2),
        row("schema missed, `retry: 1`")
            .always(json!({"text": "three"}))
            .fields(&format!("retry: 1, {SCHEMA}"))
            .afterwards(|it| assert!(!it.told().contains("was not accepted")))
            .fails("invalid"),
        row("schema missed once")
            .turns(json!([{"text": "three"}, {"text": "{\"n\": 3}"}]))
            .fields(SCHEMA)
            .succeeds(json!({"n": 3}))
            .attempts(2)
            .requests(2),
        row("refusal")
            .always(json!({"text": "I cannot help with that", "stopReason": "refusal"}))
            .fails("failed")
            .says("without an answer"),
        row("empty answer").always(json!({"text": " "})).fields(SOON).fails("failed").attempts(3).requests(3),
    ]
}

fn signals() -> Vec<Row> {
    vec![
        killed(&CODEX, "SIGKILL", Signal::KILL),
        killed(&CODEX, "SIGTERM", Signal::TERM),
        killed(&CODEX, "SIGINT", Signal::INT),
    ]
}

/// Only the body has the time: codex names its minute in words.
fn limit_reached(field: &str, value: u64) -> Value {
    json!({"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "no", field: value}}})
}

/// The headers have the time.
fn full(reset_s: u64) -> Value {
    json!({"status": 429, "error": "usage_limit_reached", "headers": {"x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": reset_s.to_string()}})
}

fn accounts() -> Vec<Row> {
    vec![
        row("usage limit for 8 s, in a header")
            .turns_at(|now| json!([full(now + 8), {"text": DONE}]))
            .attempts(2)
            .requests(2)
            .last_after_s(8),
        row("usage limit for 3 days, in a header")
            .turns_at(|now| json!([full(now + DAYS_S)]))
            .pauses("quota")
            .until_s(DAYS_S - 1..=DAYS_S + 1),
        row("usage limit for 3 days, at a time")
            .turns_at(|now| json!([limit_reached("resets_at", now + DAYS_S)]))
            .pauses("quota")
            .until_s(DAYS_S..=DAYS_S + 61),
        // Codex does not read this one, and shows nobody the body.
        row("usage limit for 3 days, in seconds")
            .always(limit_reached("resets_in_seconds", DAYS_S))
            .pauses("quota")
            .until_s(200..=330),
        row("insufficient_quota")
            .always(json!({"failed": "insufficient_quota"}))
            .tokens(Tokens::Responses(0))
            .pauses("quota")
            .until_s(200..=330),
        row("no key").env("FAKE_KEY", "").fails("auth").blamed(1).requests(0),
        row("unknown setting")
            .command(&with_flag("model_reasoning_effort=7").iter().map(String::as_str).collect::<Vec<_>>())
            .fails("invalid")
            .requests(0)
            .says("model_reasoning_effort"),
        row("missing program").command(&["no-such-codex"]).refused().says("no-such-codex"),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn refused() {
    play(&CODEX, [refusals(), streams()].concat());
}

// covers: R7, R18
#[test]
fn answered() {
    play(&CODEX, [answers(), signals()].concat());
}

// covers: R7, R14, S4
#[test]
fn silent() {
    play_at_once(3, &CODEX, hangs());
}

// covers: R7, R13, P9
#[test]
fn accounted() {
    play(&CODEX, accounts());
}

/// Codex itself would wait as long as it was told; Sage, which ends it and lets others work meanwhile, does as well.
// covers: R7
#[test]
fn waits_as_long_as_the_endpoint_says_each_time() {
    let busy = json!({"status": 429, "headers": {"retry-after": "6"}, "times": 5});
    let times: Vec<u64> = (0..6).map(|n| n * 6_000).collect();
    play(
        &CODEX,
        vec![
            row("429 with retry-after 6, five times")
                .turns(json!([busy, {"text": DONE}]))
                .attempts(6)
                .requests(6)
                .not_before_ms(&times),
        ],
    );
}
