//! What people see of a workflow in code: the same commands as of any other.

use serde_json::{Value, json};

use super::{flow, value};
use crate::dsl::Sage;

const BODY: &str = r#"
  sage.phase("Research");
  const [a, b] = await Promise.all([
    sage.shell("echo market", { label: "market" }),
    sage.agent("rivals", { prompt: "who else?", params: { script: [{ result: "nobody", usage: { input: 10, output: 1 } }] } }),
  ]);
  sage.phase("Decide");
  const bad = await sage.shell("exit 2", { label: "doubt" }).catch((error) => error.code);
  return { a: a.stdout, b, bad };"#;

fn done() -> Sage {
    let sage = flow(BODY);
    let told =
        sage.sage("run x -t t").exit(0).stdout_has("succeeded").stdout_has("1 failed and handled by code");
    assert!(!told.stdout.contains("✗ decide/doubt"), "{}", told.stdout);
    sage
}

fn step<'a>(status: &'a Value, path: &str) -> &'a Value {
    let found = status["steps"].as_array().unwrap().iter().find(|step| step["path"] == path);
    found.unwrap_or_else(|| panic!("no {path} in {status:#}"))
}

// covers: R21, S2, S4
#[test]
fn status_lists_the_script_and_its_calls() {
    let sage = done();
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["verdict"]),
        (&"completed".into(), &"succeeded".into()),
        "{status:#}"
    );
    for (path, state) in [
        ("main/script", "succeeded"),
        ("research/market", "succeeded"),
        ("research/rivals", "succeeded"),
        ("decide/doubt", "failed"),
    ] {
        assert_eq!(step(&status, path)["state"], state);
    }
    assert_eq!(step(&status, "decide/doubt")["handled"], true);
    assert_eq!(status.get("errors"), None, "the code has dealt with it");
    assert_eq!(step(&status, "research/rivals")["tokens"], 11);
    assert_eq!(status["metrics"]["totalTokens"], 11);
    sage.sage("status x").exit(0).stdout_has("succeeded");
    sage.sage("list").exit(0).stdout_has("x");
}

// covers: R21
#[test]
fn results_are_there_by_call_and_for_the_whole() {
    let sage = done();
    assert_eq!(value(&sage), json!({"a": "market\n", "b": "nobody", "bad": "failed"}));
    assert_eq!(sage.sage("result x research/market").exit(0).json()["stdout"], "market\n");
    let whole = sage.sage("result x --json").exit(0).json();
    assert_eq!(whole["result"]["b"], "nobody", "{whole:#}");
    sage.sage("result x decide/doubt").exit(1).stderr_has("failed");
    let lines = sage.args(["run", "y", "-t", "t", "--json"]).run().exit(0).json_lines();
    assert_eq!(lines.last().unwrap()["type"], "summary");
}

// covers: R21
#[test]
fn explain_and_logs_know_each_call_and_its_place() {
    let sage = done();
    let why = sage.args(["explain", "x", "research/market", "--json"]).run().exit(0).json();
    assert_eq!(why["state"], "succeeded", "{why}");
    sage.sage("explain x research/market").exit(0).stdout_has("called at t.ts:5:");
    sage.sage("explain x main/script").exit(0);
    sage.sage("explain x").exit(0).stdout_has("decide/doubt");
    sage.sage("logs x").exit(0).stdout_has("research/rivals").stdout_has("decide/doubt");
    sage.sage("logs x research/market").exit(0).stdout_has("market");
}

// covers: R21
#[test]
fn the_graph_of_code_and_of_a_run_of_it() {
    let sage = done();
    for format in ["text", "mermaid", "dot"] {
        let graph = |what: &str| sage.args(["graph", what, "--format", format]).run().exit(0);
        graph("t").stdout_has("script");
        graph("x").stdout_has("script").stdout_has("research/market").stdout_has("decide/doubt");
    }
}

// covers: R21, R18
#[test]
fn a_dry_run_runs_nothing_and_says_that_code_decides() {
    let sage = flow("await sage.shell('echo a >> ran'); return 1;");
    sage.sage("run x -t t --dry-run").exit(0).stdout_has("script").stdout_has("What code calls");
    assert!(sage.lines("ran").is_empty());
    assert!(sage.engine().latest("x").is_none());
    sage.args(["run", "x", "-t", "t", "--dry-run", "--json"]).run().exit(0);
}

// covers: R21
#[test]
fn templates_lists_and_shows_code() {
    let sage = done();
    sage.sage("templates").exit(0).stdout_has("t");
    sage.sage("templates show t").exit(0).stdout_has("sage.phase(\"Research\")");
}

// covers: R21, S4
#[test]
fn a_script_that_waits_for_a_person_is_not_shown_as_running() {
    let sage = flow("await sage.approve('go?'); return 1;");
    sage.sage("run x -t t").exit(4);
    let status = sage.status("x");
    assert_eq!(step(&status, "main/script")["state"], "waiting");
    assert_eq!((&status["progress"]["total"], &status["progress"]["percentage"]), (&1.into(), &0.into()));
    let shown = sage.sage("status x").exit(0).stdout_has("paused").stdout;
    assert!(!shown.contains("100%") && !shown.contains("0/0"), "{shown}");
    // Before its first call nothing is known, and nothing is done.
    let sage = flow("await sage.shell('true'); await sage.approve('go?'); return 1;");
    sage.sage("run x -t t").exit(4);
    assert_eq!(sage.status("x")["progress"]["percentage"], 50);
}

// covers: R21, S4
#[test]
fn explain_says_what_of_a_call_has_changed() {
    let body = |options: &str, prompt: &str| {
        super::whole(&format!(
            "await sage.agent('it', {{ prompt: '{prompt}', label: 'it', params: {{ script: [{{ result: 1 }}] }}, {options} }}); return 1;"
        ))
    };
    let mut sage = Sage::new().code("t", &body("", "one"));
    sage.sage("run x -t t").exit(0);
    for (options, prompt, changed) in [
        ("", "two", "prompt"),
        ("key: 'k'", "two", "key"),
        ("key: 'k', session: 's'", "two", "session"),
        ("key: 'k', session: 's', steps: { a: 1 }", "two", "steps"),
    ] {
        sage = sage.code("t", &body(options, prompt));
        sage.sage("resume x -t t").exit(0);
        let why = sage.args(["explain", "x", "main/it", "--json"]).run().exit(0).json();
        assert_eq!(why["changed"], json!([changed]), "{why}");
    }
}
