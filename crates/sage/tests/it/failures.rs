//! How failures of agents are judged: by what reached the endpoint and by what the run did, not by what is told.
//!
//! The agents are the real ones, against a scripted endpoint; where they are not installed, a test says so and ends.

use std::time::{Duration, Instant};

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::calls::now_ms;
use crate::dsl::Sage;
use crate::real_agents::{programs, project};

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

/// With the retries that codex has for providers of its own.
fn codex_tries_again(sage: &Sage) {
    change(sage, "request_max_retries=0,stream_max_retries=0", "request_max_retries=4,stream_max_retries=5");
}

fn epoch_s() -> u64 {
    now_ms() / 1_000
}

#[track_caller]
fn assert_paused_until(sage: &Sage, expected_ms: u64, tolerance_ms: u64) {
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"quota".into()), "{status}");
    let until = humantime::parse_rfc3339(status["until"].as_str().unwrap()).unwrap();
    let until_ms = until.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(until_ms.abs_diff(expected_ms) <= tolerance_ms, "until {until_ms}, expected {expected_ms}");
}

// --- requests that the endpoint rejects -----------------------------------------------------------------------

/// The request count is the agent's own; Claude Code silently leaves out features and asks again after some of them.
// covers: R7
#[test]
fn a_request_that_is_rejected_costs_one_attempt() {
    let too_long = json!({"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"});
    let unknown = json!({"error": {"code": "model_not_found", "type": "invalid_request_error",
        "message": "The model `fake-1` does not exist"}});
    let rows = [
        ("claude", json!({"status": 400}), 6),
        ("claude", json!({"status": 404, "error": "not_found_error"}), 2),
        ("claude", json!({"status": 413}), 1),
        ("claude", too_long, 1),
        ("codex", json!({"status": 400}), 1),
        ("codex", json!({"status": 404, "body": unknown}), 1),
        // The second may be on its way when codex is told to end.
        ("codex", json!({"status": 413}), 2),
        ("codex", json!({"failed": "context_length_exceeded"}), 1),
    ];
    for (agent, turn, requests) in rows {
        let model = FakeLlm::start(json!([turn])).unwrap();
        let Some(sage) = project(&model, &one(agent, "retry: { attempts: 3, delay: 1ms, on: [invalid] }"))
        else {
            return;
        };
        codex_tries_again(&sage);
        sage.sage("run x -t t --quiet").exit(1);
        assert_eq!(attempts(&sage), 1, "{agent} {turn}");
        let error = step(&sage)["error"].as_str().unwrap().to_string();
        assert!(error.starts_with("invalid: ") && !error.contains("1/5"), "{agent} {turn}: {error}");
        let sent = model.prompts();
        assert!((1..=requests).contains(&sent.len()), "{agent} {turn}: {} requests", sent.len());
        // Once it is mended, the model is not told of a failure that it had no part in.
        model.reset(json!([{"text": "done"}]).try_into().unwrap());
        sage.sage("resume x --quiet").exit(0);
        let told = model.prompts().last().unwrap().to_string();
        assert!(told.contains("paint the fence blue"), "{told}");
        assert!(!told.contains("not accepted"), "{agent} {turn}: {told}");
    }
}

// covers: R7
#[test]
fn a_request_that_a_model_over_http_rejects_costs_one_attempt() {
    for api in ["anthropic", "responses", "chat"] {
        for status in [400, 404, 413, 422] {
            let model = FakeLlm::start(json!([{"status": status}])).unwrap();
            let sage = Sage::new().template("t", &one("local", ""));
            let url = model.url();
            sage.write(
                "sage.toml",
                format!("[agents.local]\nadapter = \"llm\"\napi = {api:?}\nurl = {url:?}\nmodel = \"m\"\n"),
            );
            sage.sage("run x -t t --quiet").exit(1);
            assert_eq!((attempts(&sage), model.prompts().len()), (1, 1), "{api} {status}");
        }
    }
}

// covers: R7
#[test]
fn a_setup_that_cannot_work_costs_one_attempt_and_no_request() {
    let model = FakeLlm::start(json!([{"text": "never"}])).unwrap();
    let retry = "retry: { attempts: 3, delay: 1ms }";
    let Some(sage) = project(&model, &one("claude", retry)) else { return };
    // As a version that does not know a flag.
    change(&sage, "/claude\"]\n", "/claude\", \"--flag-of-tomorrow\"]\n");
    sage.sage("run x -t t").exit(1).stdout_has("unknown option '--flag-of-tomorrow'");
    assert_eq!((attempts(&sage), model.requests().len()), (1, 0));
    let sage = project(&model, &one("codex", retry)).unwrap();
    change(&sage, "\"-c\", \"model_provider=fake\"]", "\"-c\", \"model_reasoning_effort=7\"]");
    sage.sage("run x -t t").exit(1).stdout_has("model_reasoning_effort");
    assert_eq!((attempts(&sage), model.requests().len()), (1, 0));
    // An MCP server that is not there.
    let sage = project(&model, &one("claude", retry)).unwrap();
    let server = "[agents.claude.mcpServers.lost]\ncommand = \"/no/such/server\"\n[agents.claude.env]";
    change(&sage, "[agents.claude.env]", server);
    sage.sage("run x -t t").exit(1).stdout_has("MCP server `lost`");
    assert_eq!((attempts(&sage), model.requests().len()), (1, 0));
}

// covers: R7
#[test]
fn a_scripted_agent_without_a_script_costs_one_attempt() {
    let sage = Sage::new().template("t", &one("fake", "retry: { attempts: 3, delay: 1ms }"));
    sage.sage("run x -t t").exit(1).stdout_has("[agents.fake] script");
    assert_eq!(attempts(&sage), 1);
}

// covers: R7, R9
#[test]
fn an_answer_that_does_not_fit_is_asked_for_once_more_unless_there_is_one_try() {
    let schema = "schema: { type: object, required: [n], properties: { n: { type: integer } } }";
    for (agent, fields, asked) in [
        ("claude", String::new(), 2),
        ("claude", ", retry: 1".to_string(), 1),
        ("codex", String::new(), 2),
        ("codex", ", retry: 1".to_string(), 1),
    ] {
        let model = FakeLlm::start(json!([{"text": "no object"}])).unwrap();
        let Some(sage) = project(&model, &one(agent, &format!("{schema}{fields}"))) else { return };
        sage.sage("run x -t t --quiet").exit(1);
        assert_eq!(attempts(&sage), asked, "{agent} {fields}");
        let told = model.prompts().last().unwrap().to_string().contains("was not accepted");
        assert_eq!(told, asked == 2, "{agent} {fields}");
    }
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

// covers: R7, R13
#[test]
fn codex_waits_as_long_as_the_endpoint_asks() {
    let slow_down = json!({"status": 429, "headers": {"retry-after": "3"}, "times": 2});
    let model = FakeLlm::start(json!([slow_down, {"text": "done"}])).unwrap();
    let Some(sage) = project(&model, &one("codex", "")) else { return };
    codex_tries_again(&sage);
    sage.sage("run x -t t --quiet").exit(0);
    let times: Vec<u64> = model.requests().iter().map(|request| request["t"].as_u64().unwrap()).collect();
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 2_950), "{times:?}");
    let metrics = sage.status("x")["metrics"].clone();
    assert_eq!(metrics["retries"].as_u64().unwrap_or(0), 0, "a refusal is no try: {metrics}");
}

// covers: R7, R13
#[test]
fn a_quota_that_codex_tells_in_words_parks_the_run_until_then() {
    let reset = epoch_s() + 3 * 86_400;
    let body = json!({"error": {"type": "usage_limit_reached", "message": "no", "resets_at": reset}});
    let model = FakeLlm::start(json!([{"status": 429, "body": body}])).unwrap();
    let Some(sage) = project(&model, &one("codex", "")) else { return };
    sage.sage("run x -t t --no-wait --quiet").exit(4);
    assert_paused_until(&sage, reset * 1_000, 60_000);
    assert_eq!(model.requests().len(), 1);
}

// covers: R7, R13
#[test]
fn an_epoch_that_an_older_claude_tells_parks_the_run_until_then() {
    let reset = epoch_s() + 86_400;
    for is_error in [true, false] {
        let said = format!("Claude AI usage limit reached|{reset}");
        let result = json!({"type": "result", "subtype": "success", "is_error": is_error, "result": said,
            "num_turns": 1});
        let sage = Sage::new().template("t", &one("claude", ""));
        sage.write("claude.sh", format!("read -r prompt\necho asked >> ran\necho '{result}'\n"));
        sage.write("sage.toml", "[agents.claude]\ncommand = [\"sh\", \"claude.sh\"]\n");
        sage.sage("run x -t t --no-wait --quiet").exit(4);
        assert_paused_until(&sage, reset * 1_000, 1_000);
        assert_eq!(sage.lines("ran"), ["asked"]);
    }
}

// covers: R7, R13
#[test]
fn a_daily_quota_of_gemini_parks_the_run() {
    let Some(gemini) = programs().map(|dir| dir.join("gemini")).filter(|path| path.exists()) else {
        println!("skipped: Gemini CLI is not installed (./test does)");
        return;
    };
    let metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests";
    let violation =
        json!({"quotaMetric": metric, "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"});
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]);
    let error = json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details,
        "message": "You exceeded your current quota, please check your plan and billing details."});
    let rows = [
        (json!({"status": 429, "body": {"error": error}}), 4, "quota: You have exhausted your daily quota"),
        (json!({"status": 400, "message": "Invalid argument xyz"}), 1, "invalid: Invalid argument xyz"),
    ];
    for (turn, exit, says) in rows {
        let model = FakeLlm::start(json!([turn, {"text": "done"}])).unwrap();
        let sage = Sage::new().template("t", &one("gemini", ""));
        let home = sage.outside().join("gemini");
        std::fs::create_dir_all(home.join(".gemini")).unwrap();
        let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}});
        std::fs::write(home.join(".gemini/settings.json"), settings.to_string()).unwrap();
        let config = format!(
            "[agents.gemini]\ncommand = [{gemini:?}, \"--acp\", \"--skip-trust\", \"-m\", \"gemini-2.5-pro\"]\n\
             [agents.gemini.env]\nHOME = {home:?}\nGEMINI_API_KEY = \"x\"\nGOOGLE_GEMINI_BASE_URL = {:?}\n",
            model.url()
        );
        sage.write("sage.toml", config);
        let asked = Instant::now();
        sage.sage("run x -t t --no-wait --quiet").exit(exit);
        let error = step(&sage)["error"].as_str().unwrap().to_string();
        assert!(error.starts_with(says), "{error}");
        assert_eq!((attempts(&sage), model.requests().len()), (1, 1), "{error}");
        if exit == 4 {
            assert_paused_until(&sage, now_ms() + 300_000, 60_000);
        }
        println!("{says} after {:?}", asked.elapsed());
        sage.assert_nothing_alive();
    }
}

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
