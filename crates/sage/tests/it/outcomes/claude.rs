//! Claude Code.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, Home, Setup, anthropic_usage, program};
use super::play::{play, play_at_once};
use super::row::{DAYS_S, DONE, NO_EVENT, PAGE, Row, SCHEMA, SOON, Tokens, killed, row};

pub const CLAUDE: Agent = Agent {
    name: "claude",
    // What it uses where nobody names a model.
    model: Some("claude-opus-5-5"),
    usage: anthropic_usage,
    shell: bash,
    install,
    is: |program, _| program.ends_with("claude") || program.ends_with("claude.exe"),
    beside: &[],
    at_once: 2,
};

fn bash(command: &str) -> Value {
    json!({"tool": {"name": "Bash", "input": {"command": command, "description": "work"}}})
}

fn install(home: &Home<'_>) -> Option<Setup> {
    Some(Setup {
        adapter: "claude",
        command: vec![program("claude")?],
        env: vec![
            ("HOME", home.text()),
            ("ANTHROPIC_BASE_URL", home.url.into()),
            ("ANTHROPIC_API_KEY", "dummy".into()),
        ],
        more: String::new(),
    })
}

fn answer(input: Value) -> Value {
    json!({"tool": {"name": "StructuredOutput", "input": input}})
}

/// What the endpoint refuses, and what follows. Claude Code announces that it will ask again; on a busy machine it does so
/// before it hears that Sage decides about that.
fn refusals() -> Vec<Row> {
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    let busy = |after: &str| json!({"status": 429, "headers": {"retry-after": after}});
    vec![
        // How often it asks itself is Claude Code's own: it leaves out features that an endpoint may not have.
        row("400").always(json!({"status": 400})).fails("invalid").requests(6).says("400"),
        row("401").always(json!({"status": 401})).fails("auth").blamed(1).requests(2).says("/login"),
        row("403").always(json!({"status": 403})).fails("auth").blamed(1).requests(1),
        row("404 model")
            .always(json!({"status": 404, "error": "not_found_error"}))
            .fails("invalid")
            .requests(2)
            .says("model"),
        row("413").always(json!({"status": 413})).fails("invalid").requests(1),
        row("context too long")
            .always(json!({"status": 400, "message": too_long}))
            .fails("invalid")
            .requests(1),
        row("413, `retry: 1`").always(json!({"status": 413})).fields("retry: 1").fails("invalid").requests(1),
        row("429 with retry-after 3").once(busy("3")).attempts(2).not_before_ms(&[0, 3_000]),
        row("429 without").once(json!({"status": 429})).attempts_in(1..=2),
        row("500").once(json!({"status": 500})).fields(SOON).attempts_in(1..=2),
        row("503").once(json!({"status": 503})).fields(SOON).attempts_in(1..=2).long(),
        row("529").once(json!({"status": 529})).fields(SOON).attempts_in(1..=2),
        row("529 always")
            .always(json!({"status": 529}))
            .fields(SOON)
            .fails("transient")
            .attempts(3)
            .requests_in(3..=6)
            .blamed(3),
        row("refused connection")
            .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
            .fields(SOON)
            .fails("transient")
            .unattributed(3)
            .attempts(3)
            .requests(0)
            .blamed(3),
    ]
}

/// Answers that break, or are none.
fn streams() -> Vec<Row> {
    let drop = json!({"text": "half an answer, and then nothing", "paceMs": 300, "drop": true});
    let overloaded = json!({"text": "half an ans", "midstreamError": "overloaded_error"});
    let page = json!({"raw": PAGE, "headers": {"content-type": "text/html"}});
    vec![
        row("overloaded mid-stream").once(overloaded),
        row("dropped stream").once(drop.clone()).fields(SOON).attempts_in(1..=2),
        row("dropped always")
            .always(drop)
            .fields(SOON)
            .fails("transient")
            .attempts(3)
            .requests_in(3..=9)
            .blamed(3),
        row("connection reset")
            .once(json!({"close": true}))
            .fields(SOON)
            .attempts_in(1..=2)
            .unattributed_in(0..=1),
        row("malformed stream").once(json!({"raw": NO_EVENT})),
        row("malformed always")
            .always(json!({"raw": NO_EVENT}))
            .fields(SOON)
            .fails("transient")
            .unattributed(3)
            .attempts(3)
            .requests(6)
            .blamed(3),
        row("a page of HTML").once(page),
        row("max_tokens").once(json!({"text": "half", "stopReason": "max_tokens"})),
    ]
}

/// Models that are silent. A machine with much to do may not even get as far as the request.
fn hangs() -> Vec<Row> {
    let (hang, stall) = (json!({"hang": true}), json!({"text": "half", "stall": true}));
    let idle = || row("").fails("timeout").says("no progress");
    vec![
        Row { name: "hang, idleTimeout", ..idle() }
            .always(hang.clone())
            .fields("idleTimeout: 8s")
            .requests_in(0..=1)
            .unattributed(1)
            .blamed(1),
        Row { name: "stall mid-stream, idleTimeout", ..idle() }
            .always(stall.clone())
            .fields("idleTimeout: 12s"),
        row("hang, timeout")
            .always(hang)
            .fields("timeout: 8s, retry: 1")
            .fails("timeout")
            .requests_in(0..=1)
            .unattributed(1)
            .blamed(1),
        row("stall mid-stream, nudged").once(stall).fields("stall: { after: 12s }"),
    ]
}

/// What the model answers, and what is not accepted of it.
fn answers() -> Vec<Row> {
    let list = "schema: { type: array, items: { type: integer } }";
    let tool = json!([bash("echo ran >> ran"), {"text": DONE}]);
    let two = ["echo one >> ran", "sleep 0.1; echo two >> ran"].map(|command| bash(command)["tool"].clone());
    let two = json!({"text": "I run both.", "tools": two, "paceMs": 50});
    vec![
        row("ok"),
        row("tool")
            .turns(tool)
            .param("tools", json!(["Bash"]))
            .requests(2)
            .afterwards(|it| assert_eq!(it.sage.lines("ran"), ["ran"])),
        // Its tools wait until what they cost is counted.
        row("two tools, with a budget")
            .turns(json!([two, {"text": DONE}]))
            .param("tools", json!(["Bash"]))
            .flags("--budget 1usd")
            .requests(2)
            .afterwards(|it| assert_eq!(it.sage.lines("ran"), ["one", "two"])),
        row("schema").always(answer(json!({"n": 3}))).fields(SCHEMA).succeeds(json!({"n": 3})),
        row("schema of a list")
            .always(answer(json!({"answer": [1, 2]})))
            .fields(list)
            .succeeds(json!([1, 2])),
        row("schema never used")
            .fields(SCHEMA)
            .fails("invalid")
            .afterwards(|it| assert!(it.told().contains("was not accepted")))
            .attempts(2)
            .requests(4)
            .says("structured output"),
        row("schema never used, `retry: 1`")
            .fields(&format!("retry: 1, {SCHEMA}"))
            .afterwards(|it| assert!(!it.told().contains("was not accepted")))
            .fails("invalid")
            .requests(2),
        row("schema missed five times")
            .always(answer(json!({"n": "three"})))
            .fields(&format!("retry: 1, {SCHEMA}"))
            .fails("invalid")
            .requests(5)
            .tokens(Tokens::SentButOutput(6))
            .not_priced(),
        row("max turns")
            .always(bash("true"))
            .param("tools", json!(["Bash"]))
            .param("maxTurns", json!(2))
            .fails("failed")
            .requests(2)
            .says("max turns"),
        row("maxBudgetUsd")
            .always(bash("true"))
            .param("tools", json!(["Bash"]))
            .param("maxBudgetUsd", json!(0.0015))
            .fails("budget")
            .requests_in(2..=3)
            .says("maxBudgetUsd"),
        row("refusal")
            .always(json!({"text": "no", "stopReason": "refusal"}))
            .fails("failed")
            .requests(2)
            .says("refused"),
        row("empty answer")
            .always(json!({"text": " \n "}))
            .fields(SOON)
            .fails("lost")
            .attempts(3)
            .requests(6)
            .says("empty answer"),
        row("3 MB answer").always(json!({"text": "x".repeat(3 << 20)})).succeeds("x".repeat(3 << 20)),
        row("30 MB tool output")
            .turns(json!([bash("head -c 30000000 /dev/zero | tr '\\0' x"), {"text": DONE}]))
            .param("tools", json!(["Bash"]))
            .requests(2),
    ]
}

fn signals() -> Vec<Row> {
    vec![
        killed(&CLAUDE, "SIGKILL", Signal::KILL),
        killed(&CLAUDE, "SIGTERM", Signal::TERM),
        killed(&CLAUDE, "SIGINT", Signal::INT),
    ]
}

/// A subscription's answer when it is used up for so long.
fn used_up(claim: &str, now_s: u64, seconds: u64) -> Value {
    json!({"status": 429, "headers": {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": (now_s + seconds).to_string(),
        "anthropic-ratelimit-unified-representative-claim": claim,
        "retry-after": seconds.to_string(),
    }})
}

/// Quotas, logins and programs.
fn accounts() -> Vec<Row> {
    let subscribed =
        |row: Row| row.env("ANTHROPIC_API_KEY", "").env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-none");
    let poor =
        json!({"status": 400, "message": "Your credit balance is too low to access the Anthropic API."});
    vec![
        subscribed(row("subscription used up for 8 s"))
            .turns_at(|now| json!([used_up("five_hour", now, 8), {"text": DONE}]))
            .fields("model: opus")
            .attempts(2)
            .requests(2)
            .last_after_s(8),
        subscribed(row("subscription used up for 3 days"))
            .turns_at(|now| json!([used_up("seven_day", now, DAYS_S)]))
            .pauses("quota")
            .until_s(DAYS_S - 1..=DAYS_S + 1),
        row("credit too low").always(poor).pauses("quota").until_s(200..=330),
        row("not logged in")
            .env("ANTHROPIC_API_KEY", "")
            .fails("auth")
            .blamed(1)
            .requests(0)
            .says("Not logged in"),
        row("unknown flag")
            .command(&[&program("claude").unwrap_or_default(), "--nonsense"])
            .fails("invalid")
            .requests(0)
            .says("unknown option '--nonsense'"),
        row("unknown flag, `retry: 1`")
            .command(&[&program("claude").unwrap_or_default(), "--nonsense"])
            .fields("retry: 1")
            .fails("invalid")
            .requests(0),
        row("MCP server that is not there")
            .settings("[agents.claude.mcpServers.lost]\ncommand = \"/no/such/server\"\n")
            .fails("invalid")
            .requests(0)
            .says("MCP server `lost`"),
        row("missing program").command(&["no-such-claude"]).refused().says("no-such-claude"),
    ]
}

// covers: R7, R13, R18, S4
#[test]
fn refused() {
    play(&CLAUDE, refusals());
}

// covers: R7, R18
#[test]
fn broken() {
    play(&CLAUDE, [streams(), signals()].concat());
}

// covers: R7, R14, R18
#[test]
fn answered() {
    play(&CLAUDE, answers());
}

// covers: R7, R14, S4
#[test]
fn silent() {
    play_at_once(4, &CLAUDE, hangs());
}

// covers: R7, R13, P9
#[test]
fn accounted() {
    play(&CLAUDE, accounts());
}
