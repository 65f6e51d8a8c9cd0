//! Exit codes, each by a real case, and everything that `--json` prints.

use serde_json::Value;

use crate::dsl::Sage;

fn one(fields: &str) -> String {
    format!("name: t\nphases:\n  - id: p\n    operations: {{ id: s, {fields} }}\n")
}

fn shell(run: &str) -> String {
    one(&format!("type: shell, params: {{ run: \"{run}\" }}"))
}

// covers: R16
#[test]
fn every_exit_code_has_its_case() {
    let degraded = r#"
name: t
phases:
  - id: p
    join: { atLeast: 0.5 }
    operations:
      - { id: good, type: shell, params: { run: "true" } }
      - { id: bad, type: shell, params: { run: "false" } }
"#;
    let sage = Sage::new()
        .template("ok", &shell("true"))
        .template("bad", &shell("exit 9"))
        .template("degraded", degraded)
        .template("ask", &one("type: approval, params: { message: \"?\" }"))
        .template("wrong", "name: t\nphases: []\n");
    sage.sage("run f0 -t ok").exit(0).stdout_has("succeeded");
    sage.sage("run f1 -t bad").exit(1).stdout_has("exit code 9").stdout_has("sage resume f1");
    sage.sage("run f2 -t wrong").exit(2);
    sage.sage("run f2 -t nobody").exit(2);
    sage.sage("run").exit(2);
    sage.sage("dance").exit(2);
    sage.sage("resume nobody").exit(2);
    sage.sage("run f3 -t degraded").exit(3).stdout_has("degraded");
    sage.sage("resume f3").exit(3);
    sage.sage("run f4 -t ask").exit(4);
    sage.sage("run f4 -t ask").exit(5);
    sage.sage("cancel f4").exit(0);
    sage.sage("list --status failed").exit(0).stdout_has("f1");
    // 130 by an interrupt is among the signals.
    let verdicts: Vec<Value> = ["f0", "f1", "f3", "f4"].map(|f| sage.status(f)["verdict"].clone()).into();
    assert_eq!(verdicts, ["succeeded", "failed", "degraded", "cancelled"]);
}

// covers: R14, P5
#[test]
fn a_join_that_is_not_reached_fails_or_pauses() {
    let text = |extra: &str| {
        format!(
            r#"
name: t
phases:
  - id: p
    join: {{ atLeast: 0.75 }}
    {extra}
    operations:
      - {{ id: a, type: shell, params: {{ run: "true" }} }}
      - {{ id: b, type: shell, params: {{ run: "echo first >&2; exit 1" }} }}
      - {{ id: c, type: shell, params: {{ run: "echo second >&2; exit 2" }} }}
      - {{ id: d, type: shell, params: {{ run: "true" }} }}
"#
        )
    };
    let sage = Sage::new().template("fail", &text("")).template("pause", &text("onJoin: pause"));
    let failed = sage.sage("run f -t fail").exit(1);
    failed.stdout_has("p/b").stdout_has("p/c");
    let errors = sage.status("f")["errors"].as_array().unwrap().len();
    assert_eq!(errors, 2, "all failures are collected");
    sage.sage("run g -t pause").exit(4);
    assert_eq!(sage.status("g")["pauseReason"], "join");
}

#[track_caller]
fn assert_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no `{field}` in {value}");
    }
}

const METRICS: [&str; 10] = [
    "totalTime",
    "totalTokens",
    "contextReloads",
    "phaseCount",
    "sequentialTime",
    "speedup",
    "cacheHitRate",
    "tokensSaved",
    "costUsd",
    "tokensByClass",
];

// covers: R8, R16, R18, P11
#[test]
fn run_json_is_one_object_a_line_and_ends_with_the_summary() {
    let text = r#"
name: t
phases:
  - id: a
    operations:
      - { id: x, type: shell, params: { run: "echo x" } }
      - { id: y, type: shell, params: { run: "printf '%s' '\"{}\\n,'" } }
  - id: b
    dependencies: [a]
    operations: { id: z, type: shell, foreach: "[1, 2]", params: { run: "exit 0" } }
"#;
    let sage = Sage::new().template("t", text);
    let lines = sage.sage("run x -t t --json").exit(0).json_lines();
    assert!(lines.iter().all(|line| line["type"].is_string()), "{lines:?}");
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    for kind in [
        "run.opened",
        "step.started",
        "step.finished",
        "step.expanded",
        "group.completed",
        "run.finished",
        "workflow.performance",
    ] {
        assert!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "group.completed").count(), 2);
    assert_eq!(kinds.iter().filter(|kind| **kind == "summary").count(), 1);
    let summary = lines.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_fields(summary, &["success", "workflowId", "status", "verdict", "results"]);
    assert_eq!((&summary["success"], &summary["status"]), (&true.into(), &"completed".into()));
    assert_fields(&summary["results"]["metrics"], &METRICS);
    let phase = &summary["results"]["phases"][0];
    assert_fields(phase, &["phaseId", "status", "results", "startedAt", "completedAt", "metrics"]);
    assert_fields(&phase["metrics"], &["duration", "tokens", "operationCount", "parallelOps"]);
    assert_eq!(phase["results"]["y"]["stdout"], "\"{}\\n,");
    let group = lines.iter().find(|line| line["type"] == "group.completed").unwrap();
    assert_fields(group, &["group", "duration", "stagesCompleted"]);
    // A failed run too.
    let sage = sage.template("bad", &shell("exit 1"));
    let lines = sage.sage("run y -t bad --json").exit(1).json_lines();
    let summary = lines.last().unwrap();
    assert_eq!((&summary["type"], &summary["success"]), (&"summary".into(), &false.into()));
    assert_eq!(summary["errors"].as_array().unwrap().len(), 1);
    let resumed = sage.sage("resume x --json").exit(0).json_lines();
    assert_eq!(resumed.last().unwrap()["type"], "summary");
}

// covers: R8, R16
#[test]
fn every_command_that_shows_data_has_json() {
    let sage = Sage::new()
        .template("t", &shell("echo hi"))
        .template("ask", &one("type: approval, params: { message: \"?\" }"));
    sage.sage("run x -t t").exit(0);
    sage.sage("run y -t ask").exit(4);
    let status = sage.status("x");
    let fields = [
        "type",
        "feature",
        "template",
        "phase",
        "status",
        "verdict",
        "startedAt",
        "lastUpdatedAt",
        "progress",
        "steps",
        "metrics",
    ];
    assert_fields(&status, &fields);
    assert_fields(&status["progress"], &["completed", "total", "percentage"]);
    assert_fields(&status["steps"][0], &["path", "state", "elapsedMs", "tokens"]);
    assert_fields(&status["metrics"], &METRICS);
    let list = sage.sage("list --json").exit(0).json();
    let row = list["workflows"].as_array().unwrap().iter().find(|row| row["feature"] == "x").unwrap().clone();
    assert_fields(&row, &["feature", "template", "phase", "status", "startedAt", "progress"]);
    assert_eq!(row["progress"], 100);
    let paused = sage.sage("list --status paused --json").exit(0).json();
    assert_eq!(paused["workflows"].as_array().unwrap().len(), 1);
    assert_eq!(sage.sage("explain x --json").exit(0).json_lines()[0]["type"], "explanation");
    assert_eq!(sage.sage("result x p/s --json").exit(0).json()["result"]["stdout"], "hi\n");
    assert_eq!(sage.sage("logs x p/s --json").exit(0).json()["stdout"], "hi\n");
    assert_eq!(sage.sage("graph x --json").exit(0).json()["nodes"][0]["path"], "p/s");
    assert!(sage.sage("result x --json").exit(0).json()["result"].is_array());
    let valid = sage.sage("validate t --json").exit(0).json();
    assert_fields(&valid, &["valid", "graph"]);
    assert_fields(&valid["graph"], &["nodes", "edges", "depth"]);
    assert_fields(&sage.sage("config --json").exit(0).json(), &["type", "settings"]);
    assert_eq!(sage.sage("verify --json").exit(0).json_lines().last().unwrap()["damaged"], 0);
    let templates = sage.sage("templates --json").exit(0).json()["templates"].clone();
    let own = templates.as_array().unwrap().iter().filter(|template| template["builtIn"] == false);
    assert_eq!(own.count(), 2, "{templates}");
    sage.sage("templates schema").exit(0).json();
    sage.sage("run z -t t --dry-run --json").exit(0).json();
    assert!(!sage.path(".sage/state/workflow-z.json").exists(), "a dry run starts nothing");
    assert!(sage.sage("logs x --json").exit(0).json_lines().iter().all(|line| line["type"].is_string()));
    sage.sage("approve y --json").exit(0).json();
    let sage = Sage::bare();
    sage.sage("init --json").exit(0).json();
}

/// Errors go to stderr, so that stdout is data or nothing.
// covers: R16
#[test]
fn errors_do_not_reach_stdout() {
    let sage = Sage::new();
    for command in [
        "run x -t nobody",
        "run x -t nobody --json",
        "status x --json",
        "result x --json",
        "resume x --json",
        "list --status nonsense",
        "graph nobody",
    ] {
        let outcome = sage.sage(command).exit(2);
        assert_eq!(outcome.stdout, "", "{command}");
        outcome.stderr_has("error: ");
    }
}

// covers: R8
#[test]
fn logs_show_what_a_step_printed() {
    let sage = Sage::new().template("t", &shell("echo out; echo err >&2"));
    sage.sage("run x -t t").exit(0);
    sage.sage("logs x p/s").exit(0).stdout_has("out\n").stderr_has("err\n");
    sage.sage("logs x").exit(0).stdout_has("p/s finished");
    sage.sage("graph t").exit(0).stdout_has("p/s");
    sage.sage("graph x --format mermaid").exit(0);
    sage.sage("graph t --format dot").exit(0).stdout_has("digraph");
}

/// A reader that goes away, as `head` does, is no error and no panic.
// covers: R8
#[test]
fn a_closed_pipe_is_no_error() {
    let sage = Sage::new().template("t", &shell("echo hi"));
    sage.sage("run x -t t").exit(0);
    for command in ["status x", "list", "logs x", "explain x", "run y -t t", "templates schema"] {
        let script = format!("\"$0\" {command} 2>errors | true; cat errors");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_sage")])
            .current_dir(sage.root())
            .env("XDG_STATE_HOME", sage.user_state())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains("panicked"), "{command}: {text}");
    }
}
