//! Scripted agents through templates: every fault ends as a classified failure, and no process is left.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dsl::Sage;

fn agent(script: &str, fields: &str) -> String {
    format!(
        "name: t\nphases:\n  - id: p\n    operations: {{ id: a, type: agent, agent: fake, prompt: \"go\", {fields} params: {{ script: {script} }} }}\n"
    )
}

/// The class of the failure that the run ended with.
#[track_caller]
fn failed(script: &str, fields: &str, class: &str) -> Sage {
    let sage = Sage::new().template("t", &agent(script, fields));
    sage.sage("run x -t t").exit(1);
    let status = sage.status("x");
    let error = status["steps"][0]["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(&format!("{class}: ")), "{script}: {error}");
    assert_eq!(sage.alive(), [0u32; 0], "{script}: nothing is left");
    sage
}

// covers: R7, R14, RELIABILITY 39
#[test]
fn faults_are_classified() {
    failed("[{ fault: crash }]", "retry: 1,", "lost");
    failed("[{ fault: crash, result: 1 }]", "retry: 1,", "lost");
    failed("[{ fault: garbage }]", "retry: 1,", "lost");
    failed("[{ fault: truncated, result: { a: 1 } }]", "retry: 1,", "lost");
    failed("[{ fault: silent-exit }]", "retry: 1,", "lost");
    failed("[{ fault: double-result, result: 1 }]", "", "invalid");
    failed("[{ fault: overloaded }]", "retry: 1,", "transient");
    failed("[{ fault: auth }]", "", "auth");
    failed("[{ run: \"exit 3\" }]", "", "failed");
    failed("[{ result: text }]", "schema: { type: object },", "invalid");
}

// covers: R14, S4
#[test]
fn a_hanging_agent_is_ended_by_its_timeout() {
    failed("[{ say: hm, fault: hang }]", "timeout: 300ms,", "timeout");
    failed("[{ say: hm, fault: hang }]", "idleTimeout: 300ms,", "timeout");
}

// covers: R14, RELIABILITY 28
#[test]
fn an_agent_that_ignores_term_is_ended_too() {
    let started = Instant::now();
    failed("[{ fault: ignore-term }]", "timeout: 300ms,", "timeout");
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
}

// covers: R14, RELIABILITY 35
#[test]
fn a_flood_is_bounded_on_disk_and_ends() {
    let sage = failed("[{ fault: flood }]", "timeout: 1s,", "timeout");
    let steps = sage.latest_dir("x").join("steps");
    let mut bytes = 0;
    let mut open = vec![steps];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { open.push(entry.path()) } else { bytes += meta.len() }
        }
    }
    assert!(bytes <= 40 << 20, "{bytes} bytes are kept of a flood");
}

// covers: R7
#[test]
fn faults_are_retried_where_the_policy_covers_them() {
    let script = "[{ fault: crash }, { fault: garbage }, { fault: silent-exit }, { result: { ok: true } }]";
    let sage = Sage::new().template("t", &agent(script, "retry: { attempts: 4, delay: 10ms },"));
    sage.sage("run x -t t").exit(0).stdout_has("retry in");
    assert_eq!(sage.sage("result x p/a").exit(0).json()["ok"], true);
    let status = sage.status("x");
    assert_eq!(status["steps"][0]["attempts"], 4);
    let retries =
        sage.journal("x").records.iter().filter(|entry| entry.event.kind() == "step.retried").count();
    assert_eq!(retries, 3);
    sage.sage("explain x p/a").exit(0).stdout_has("3 retries");
    // What repeating cannot help is not repeated.
    let sage = failed("[{ fault: auth }, { result: 1 }]", "retry: { attempts: 4, delay: 10ms },", "auth");
    assert_eq!(sage.status("x")["steps"][0]["attempts"], 1);
    let sage = failed(
        "[{ fault: crash }, { fault: crash }, { result: 1 }]",
        "retry: { attempts: 2, delay: 10ms },",
        "lost",
    );
    assert_eq!(sage.status("x")["steps"][0]["attempts"], 2);
}

// covers: R18
#[test]
fn usage_is_counted_by_class_over_all_attempts() {
    let script = "[{ usage: { input: 100, output: 10 }, fault: crash }, { result: 1, usage: { input: 200, cacheRead: 50, output: 20, reasoning: 5 } }]";
    let sage = Sage::new().template("t", &agent(script, "retry: { attempts: 2, delay: 1ms },"));
    sage.sage("run x -t t").exit(0).stdout_has("tokens");
    let status = sage.status("x");
    let classes = &status["metrics"]["tokensByClass"];
    let class = |name: &str| classes[name].as_u64().unwrap();
    assert_eq!(
        (class("input"), class("cacheRead"), class("output"), class("reasoning")),
        (300, 50, 30, 5),
        "{classes}"
    );
    assert_eq!(class("unattributed"), 0);
    let tokens = status["steps"][0]["tokens"].as_u64().unwrap();
    assert!(tokens >= 380, "{tokens}");
    assert_eq!(status["metrics"]["totalTokens"], tokens);
    let silent = Sage::new().template("t", &agent("[{ result: 1 }]", ""));
    silent.sage("run x -t t").exit(0);
    assert_eq!(silent.status("x")["metrics"]["tokensByClass"]["unattributed"], 1, "unknown is not nothing");
}

// covers: R16
#[test]
fn a_command_agent_comes_from_the_configuration() {
    let text = r#"
name: t
phases:
  - id: p
    operations:
      - { id: loud, type: agent, agent: shout, prompt: "hello {{ title }}" }
      - { id: json, type: agent, agent: shout, prompt: "{}", schema: { type: object } }
      - { id: own, type: agent, agent: command, prompt: "x", params: { command: [sh, -c, "cat; echo $SAGE_STEP"] } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(2).stderr_has("`shout` is not configured").stderr_has("sage.toml");
    assert!(!sage.path(".sage/state").exists(), "found before anything is spent");
    sage.write(
        "sage.toml",
        "[agents.shout]\ncommand = [\"sh\", \"-c\", \"tr a-z A-Z; echo $LOUD\"]\nenv = { LOUD = \"\" }\n",
    );
    sage.sage("run x -t t").exit(0);
    let result = |step: &str| sage.args(["result", "x", step]).run().exit(0).json();
    assert_eq!(result("p/loud"), Value::from("HELLO X"));
    assert_eq!(result("p/json"), serde_json::json!({}));
    assert_eq!(result("p/own"), Value::from("xp/own"));
}

// covers: LESSONS "Delivery and liveness"
#[test]
fn an_agent_that_says_nothing_has_not_succeeded() {
    let sage = Sage::new().template("t", "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: command, prompt: x, params: { command: [\"true\"] } }\n");
    sage.sage("run x -t t").exit(1).stdout_has("without a result");
}

/// An agent that a sub-workflow needs is missed before the run starts as well.
// covers: LESSONS "Delivery and liveness"
#[test]
fn a_missing_agent_of_a_sub_workflow_is_found_before_the_run() {
    let outer = "name: t\nphases:\n  - id: a\n    operations: { id: first, type: shell, params: { run: \"echo spent >> spent\" } }\n  - id: b\n    dependencies: [a]\n    operations: { id: sub, type: workflow, params: { template: inner } }\n";
    let inner =
        "name: inner\nphases:\n  - id: p\n    operations: { id: a, type: agent, agent: nobody, prompt: x }\n";
    let sage = Sage::new().template("t", outer).template("inner", inner);
    sage.sage("run x -t t").exit(2).stderr_has("nobody");
    assert_eq!(sage.lines("spent"), [""; 0]);
}

// covers: R5
#[test]
fn an_agent_killed_with_its_owner_runs_again() {
    let sage =
        Sage::new().template("t", &agent("[{ run: \"echo up >> up\", fault: hang }, { result: 2 }]", ""));
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty(), "the agent");
    assert!(running.kill());
    sage.sage("resume x").exit(0);
    assert_eq!(sage.sage("result x p/a").exit(0).json(), Value::from(2));
    sage.assert_nothing_alive();
}
