//! Models behind HTTP with the real binary: the scripted endpoint, every token, and a kill in the middle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::Sage;

#[test]
fn the_scripted_endpoint_serves_until_it_is_told_to_stop() {
    let sage = Sage::new();
    sage.write("good.json", r#"[{"text": "hi"}]"#);
    sage.write("bad.json", r#"[{"text": "hi"}, {"txt": "hi"}]"#);
    sage.sage("debug fake-llm bad.json").exit(2).stderr_has("`bad.json`: turn 2, `txt`: no such field");
    sage.sage("debug fake-llm none.json").exit(2).stderr_has("cannot read the script `none.json`");
    for signal in [Signal::TERM, Signal::INT] {
        let mut running = sage.spawn("debug fake-llm good.json --log requests.jsonl");
        let told = || running.stdout().ends_with('\n');
        crate::dsl::wait_until(told, Duration::from_secs(30), "the address");
        let line: Value = serde_json::from_str(&running.stdout()).unwrap();
        assert_eq!(line["pid"], running.pid());
        let address = line["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_string();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("fake-1"), "{answer}");
        assert!(!running.ended());
        running.signal(signal);
        running.end().exit(0);
        assert!(TcpStream::connect(&address).is_err(), "nobody listens any more");
    }
    assert_eq!(sage.lines("requests.jsonl").len(), 2);
}

fn models(sage: &Sage, fake: &FakeLlm) {
    let agent = |api: &str| {
        format!(
            "[agents.{api}]\nadapter = \"llm\"\napi = \"{api}\"\nurl = \"{}\"\nmodel = \"m\"\n",
            fake.url()
        )
    };
    sage.write("sage.toml", ["anthropic", "responses", "chat"].map(agent).concat());
}

/// One step for each protocol.
fn steps(fields: &str) -> String {
    let step = |api: &str| {
        format!("      - {{ id: {api}, type: agent, agent: {api}, prompt: \"ask {api}\", {fields} }}\n")
    };
    let steps = ["anthropic", "responses", "chat"].map(step).concat();
    format!("name: t\nphases:\n  - id: p\n    operations:\n{steps}")
}

// covers: S1, P2
#[test]
fn a_run_counts_every_token_that_its_models_sent() {
    let usage = json!({"input_tokens": 1000, "output_tokens": 60, "cached": 400, "cacheCreationInputTokens": 50, "reasoning": 10});
    let fake = FakeLlm::start(json!([
        {"tool": {"name": "list_files", "input": {}}, "usage": usage, "times": 3},
        {"text": "done", "usage": usage},
    ]))
    .unwrap();
    let sage = Sage::new().template("t", &steps(""));
    models(&sage, &fake);
    sage.sage("run x -t t").exit(0);
    assert_eq!(fake.prompts().len(), 6);
    let classes = sage.status("x")["metrics"]["tokensByClass"].clone();
    let sent = fake.sent_usage();
    for (name, tokens) in [
        ("input", sent.input),
        ("cacheRead", sent.cache_read),
        ("cacheWrite", sent.cache_write),
        ("output", sent.output),
        ("reasoning", sent.reasoning),
        ("unattributed", Some(0)),
    ] {
        assert_eq!(classes[name].as_u64(), tokens, "{name} in {classes}");
    }
    assert_eq!(sage.results("x")[0]["results"]["chat"], "done");
}

// covers: S3, R3
#[test]
fn a_killed_run_goes_on_in_the_same_conversation() {
    for api in ["anthropic", "responses", "chat"] {
        let fake = FakeLlm::start(json!([
            {"text": "I look.", "tool": {"name": "read_file", "input": {"path": "a.txt"}}},
            {"hang": true},
            {"text": "whole"},
        ]))
        .unwrap();
        let step = format!("{{ id: x, type: agent, agent: {api}, prompt: \"ask {api}\" }}");
        let template = format!("name: t\nphases:\n  - id: p\n    operations: {step}\n");
        let sage = Sage::new().template("t", &template);
        models(&sage, &fake);
        sage.write("a.txt", "apple");
        let mut running = sage.spawn("run x -t t");
        running.until(|| fake.prompts().len() == 2, "it waits for its second answer");
        assert!(running.kill());
        sage.sage("resume x").exit(0);
        let prompts = fake.prompts();
        assert_eq!(prompts.len(), 3, "nothing was asked twice");
        let text = prompts[2].to_string();
        assert!(text.contains("apple") && text.contains("I look.") && text.contains("ask "), "{text}");
        assert!(text.contains("Go on from there"), "{text}");
    }
}

// covers: R7, P5
#[test]
fn a_refusal_waits_for_its_time_and_costs_no_try() {
    let fake = FakeLlm::start(json!([
        {"status": 429, "headers": {"Retry-After": "0.3"}},
        {"text": "served"},
    ]))
    .unwrap();
    let step = "name: t\nphases:\n  - id: p\n    operations: { id: chat, type: agent, agent: chat, prompt: go, retry: 1 }\n";
    let sage = Sage::new().template("t", step);
    models(&sage, &fake);
    sage.sage("run x -t t").exit(0);
    let asked: Vec<u64> = fake.requests().iter().map(|request| request["t"].as_u64().unwrap()).collect();
    assert!(asked.len() == 2 && asked[1] >= asked[0] + 300, "{asked:?}");
}
