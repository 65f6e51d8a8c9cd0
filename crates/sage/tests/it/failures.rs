//! How failures of agents are judged: by what reached the endpoint and by what the run did, not by what is told.
//!
//! The agents are the real ones, against a scripted endpoint; where they are not installed, a test says so and ends.

use std::time::Duration;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::calls::now_ms;
use crate::dsl::Sage;
use crate::real_agents::project;

/// One step `p/x`.
fn one(agent: &str, fields: &str) -> String {
    format!(
        "name: t\nphases:\n  - id: p\n    operations:\n      \
         - {{ type: agent, id: x, agent: {agent}, prompt: paint the fence blue, {fields} }}\n"
    )
}

fn step(sage: &Sage) -> Value {
    sage.status("x")["steps"][0].clone()
}

fn attempts(sage: &Sage) -> u64 {
    step(sage)["attempts"].as_u64().unwrap()
}

/// Replaces a part of `sage.toml`.
fn change(sage: &Sage, from: &str, to: &str) {
    let text = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    assert!(text.contains(from), "`{from}` is not in: {text}");
    sage.write("sage.toml", text.replace(from, to));
}

fn epoch_s() -> u64 {
    now_ms() / 1_000
}

// --- requests that the endpoint rejects -----------------------------------------------------------------------

/// Once it is mended, the model is not told of a failure that it had no part in.
// covers: R7
#[test]
fn a_request_that_is_rejected_costs_one_attempt_whatever_is_to_be_retried() {
    for (agent, status) in [("claude", 413), ("codex", 400)] {
        let model = FakeLlm::start(json!([{"status": status}])).unwrap();
        let Some(sage) = project(&model, &one(agent, "retry: { attempts: 3, delay: 1ms, on: [invalid] }"))
        else {
            return;
        };
        sage.sage("run x -t t --quiet").exit(1);
        assert_eq!(attempts(&sage), 1, "{agent}");
        model.reset(json!([{"text": "done"}]).try_into().unwrap());
        sage.sage("resume x --quiet").exit(0);
        let told = model.prompts().last().unwrap().to_string();
        assert!(told.contains("paint the fence blue"), "{told}");
        assert!(!told.contains("not accepted"), "{agent}: {told}");
    }
}

// covers: R7
#[test]
fn a_scripted_agent_without_a_script_costs_one_attempt() {
    let sage = Sage::new().template("t", &one("fake", "retry: { attempts: 3, delay: 1ms }"));
    sage.sage("run x -t t").exit(1).stdout_has("[agents.fake] script");
    assert_eq!(attempts(&sage), 1);
}

// --- breakers -------------------------------------------------------------------------------------------------

/// One failure would open every breaker here.
const TOUCHY: &str = "[targets.default.breaker]\nfailures = 1\n[agents.claude]\n";

// covers: R7, R13
#[test]
fn an_agents_own_outcome_opens_no_breaker() {
    let model = FakeLlm::start(json!([
        {"match": "task-turns", "tool": {"name": "Bash", "input": {"command": "true"}}},
        {"match": "task-refuse", "text": "no", "stopReason": "refusal"},
        // What claude asks by itself after a refusal.
        {"match": "Do not produce that content again", "text": "no", "stopReason": "refusal"},
        {"match": "task-shape", "text": "no object"},
        {"match": "task-empty", "text": " "},
        {"match": "task-reject", "status": 413},
    ]))
    .unwrap();
    let operation = |id: &str, more: &str| {
        format!(
            "      - {{ type: agent, id: {id}, agent: claude, model: claude-sonnet-4-5, retry: 1, {more} }}\n"
        )
    };
    let template = [
        "name: t\nphases:\n  - id: p\n    operations:\n".to_string(),
        operation("turns", "params: { prompt: task-turns, maxTurns: 1, tools: [Bash] }"),
        operation("refuse", "prompt: task-refuse"),
        operation("shape", "prompt: task-shape, schema: { type: object }"),
        operation("empty", "prompt: task-empty"),
        operation("reject", "prompt: task-reject"),
    ];
    let Some(sage) = project(&model, &template.concat()) else { return };
    change(&sage, "[agents.claude]\n", TOUCHY);
    // A step that waited for a breaker would pause the run (exit 4).
    sage.sage("run x -t t --parallel 1 --no-wait --quiet").exit(1);
    let status = sage.status("x");
    let classes: Vec<&str> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["error"].as_str().unwrap_or_default().split(':').next().unwrap())
        .collect();
    assert_eq!(classes, ["failed", "failed", "invalid", "lost", "invalid"], "{status}");
    let told = sage.sage("breakers").exit(0);
    assert!(!told.stdout.contains(" open "), "{}", told.stdout);
    assert_eq!(status["metrics"]["breakerOpenings"].as_u64().unwrap_or(0), 0, "{status}");
}

// covers: R7, R13
#[test]
fn trouble_of_the_provider_and_its_login_opens_it() {
    for status in [529, 401] {
        let model = FakeLlm::start(json!([{"status": status}])).unwrap();
        let Some(sage) = project(&model, &one("claude", "retry: 1")) else { return };
        change(&sage, "[agents.claude]\n", TOUCHY);
        sage.sage("run x -t t --no-wait --quiet").exit(1);
        let told = sage.sage("breakers").exit(0);
        assert!(
            told.stdout.contains("provider:anthropic") && told.stdout.contains("open"),
            "{}",
            told.stdout
        );
    }
}

/// A program that crashes is trouble of the agent; its provider has done nothing.
// covers: R7, R13
#[test]
fn a_crash_opens_the_agents_breaker_and_not_the_providers() {
    let sage = Sage::new().template("t", &one("claude", "retry: 1"));
    sage.write("sage.toml", format!("{TOUCHY}command = [\"sh\", \"-c\", \"read -r prompt; kill -9 $$\"]\n"));
    sage.sage("run x -t t --no-wait --quiet").exit(1);
    let told = sage.sage("breakers --json").exit(0).json();
    let state = |name: &str| {
        let targets = told["targets"].as_array().unwrap();
        targets.iter().find(|target| target["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("agent:claude"), state("provider:anthropic")), (json!("open"), json!("closed")));
}

// --- limits ---------------------------------------------------------------------------------------------------

// covers: R18
#[test]
fn the_use_of_an_account_is_shown_before_it_is_used_up() {
    let reset = (epoch_s() + 7_200).to_string();
    let claude = json!({"match": "claude", "text": "fine", "headers": {
        "anthropic-ratelimit-unified-status": "allowed_warning",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-reset": reset,
        "anthropic-ratelimit-unified-5h-utilization": "0.87",
        "anthropic-ratelimit-unified-5h-surpassed-threshold": "0.75",
        "anthropic-ratelimit-unified-5h-reset": reset,
    }});
    let codex = json!({"match": "codex", "text": "fine", "headers": {
        "x-codex-primary-used-percent": "62", "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": reset,
    }});
    let model = FakeLlm::start(json!([claude, codex])).unwrap();
    let template = "name: t\nphases:\n  - id: p\n    operations:\n      \
        - { type: agent, id: a, agent: claude, prompt: claude }\n      \
        - { type: agent, id: b, agent: codex, prompt: codex }\n";
    let Some(sage) = project(&model, template) else { return };
    change(&sage, "ANTHROPIC_API_KEY = \"dummy\"", "CLAUDE_CODE_OAUTH_TOKEN = \"sk-ant-oat01-none\"");
    let told = sage.sage("run x -t t").exit(0);
    let warning = "claude has used 87% of its 5-hour limit, which resets at ";
    told.stdout_has(&format!("note: {warning}"))
        .stdout_has(&format!("! {warning}"))
        .stdout_has("codex: 62% of its 5-hour limit used");
    let shown = sage.sage("status x").exit(0);
    assert_eq!(shown.stdout.matches(warning).count(), 1, "{}", shown.stdout);
    shown.stdout_has("codex: 62% of its 5-hour limit used");
    let status = sage.status("x");
    let notices = status["notices"].as_array().unwrap();
    assert!(notices.iter().any(|it| it.as_str().unwrap().starts_with(warning)), "{status}");
    let of = |agent: &str| {
        let all = status["allowances"].as_array().unwrap();
        all.iter().find(|it| it["agent"] == agent).unwrap().clone()
    };
    assert_eq!((&of("claude")["usedPercent"], &of("claude")["warning"]), (&json!(87), &json!(true)));
    assert_eq!((&of("codex")["usedPercent"], &of("codex")["window"]), (&json!(62), &json!("5-hour")));
    let agents = sage.sage("agents").exit(0);
    agents.stdout_has(warning).stdout_has("codex has used 62% of its 5-hour limit");
    let listed = sage.sage("agents --json").exit(0).json()["agents"].clone();
    let row =
        |agent: &str| listed.as_array().unwrap().iter().find(|row| row["name"] == agent).unwrap().clone();
    assert_eq!((&row("codex")["allowances"][0], row("gemini").get("allowances")), (&of("codex"), None));
}

// covers: R17, S4
#[test]
fn a_question_says_what_happens_if_nobody_answers() {
    let ask = "params: { script: [ { ask: { tool: Bash, input: { command: make } }, result: 1 } ] }";
    for (settings, then) in [("", "denied"), ("[approvals]\ndefault = \"allow\"\n", "allowed")] {
        let sage = Sage::new().template("t", &one("fake", ask));
        sage.write("sage.toml", settings);
        let run = sage.spawn("run x -t t --quiet");
        let asks = || sage.engine().latest("x").is_some() && !step(&sage)["asks"].is_null();
        crate::dsl::wait_until(asks, Duration::from_secs(60), "the question");
        sage.sage("inbox").exit(0).stdout_has(&format!(", then: {then})"));
        sage.sage("approve x p/x").exit(0);
        run.end().exit(0);
    }
}
