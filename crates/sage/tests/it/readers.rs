//! One run, many readers: the tree, `status`, `list`, `explain`, MCP and the checkpoint use the same words (R8, R16).

use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::mcp_server::client::{BOTH, Client};

const ASKING: &str = "
name: t
phases:
  - { id: one, operations: { id: a, type: shell, params: { run: 'true' } } }
  - { id: gate, dependencies: [one], operations: { id: ok, type: approval, params: { message: 'Go?' } } }
  - { id: two, dependencies: [gate], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const RETRYING: &str = "
name: t
phases:
  - id: one
    operations:
      - { id: a, type: shell, retry: { attempts: 3, delay: 10m, jitter: false }, params: { run: 'exit 3' } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const FALLBACK: &str = "
name: t
phases:
  - { id: one, operations: { id: a, type: shell, fallback: { value: 1 }, params: { run: 'exit 3' } } }
";
const FAILED: &str = "
name: t
phases:
  - id: one
    operations:
      - { id: good, type: shell, params: { run: 'echo yes' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const ROUNDS: &str = "
name: t
phases:
  - { id: work, operations: { id: a, type: shell, params: { run: 'echo x >> rounds' } } }
  - id: judge
    dependencies: [work]
    repeat: { from: work, while: '.steps[\"judge/b\"].result.stdout == \"1\\n\"', max: 3 }
    operations: { id: b, type: shell, params: { run: 'wc -l < rounds | tr -d \" \"' } }
";
const MISSED: &str = "
name: t
phases:
  - id: research
    join: { atLeast: 0.75 }
    onJoin: pause
    operations:
      - { id: good, type: shell, params: { run: 'true' } }
      - { id: bad, type: shell, params: { run: 'exit 3' } }
";
const EMPTY: &str = "
name: t
phases:
  - { id: one, operations: [{ id: a, type: shell, foreach: '[]', params: { run: 'true' } }] }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: 'true' } } }
";
const BROKEN_CODE: &str = r#"
export default async (sage: any) => {
  await sage.shell("true", { label: "a" });
  await sage.shell("exit 3", { label: "b" });
};
"#;

fn checkpoint(sage: &Sage, feature: &str) -> Value {
    let bytes = std::fs::read(sage.path(&format!(".sage/state/workflow-{feature}.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn text_of(sage: &Sage, feature: &str) -> String {
    sage.args(["status", feature]).run().exit(0).stdout
}

fn step(status: &Value, path: &str) -> Value {
    let steps = status["steps"].as_array().unwrap();
    steps.iter().find(|step| step["path"] == path).unwrap_or_else(|| panic!("no {path}")).clone()
}

fn row(rows: &Value, feature: &str) -> Value {
    let rows = rows["workflows"].as_array().unwrap();
    rows.iter().find(|row| row["feature"] == feature).unwrap_or_else(|| panic!("no {feature}")).clone()
}

// covers: R8
#[test]
fn a_step_is_reused_only_if_a_resume_took_it_over() {
    let sage = Sage::new().template("t", ASKING);
    let told = |reused: bool| {
        let text = text_of(&sage, "x");
        let status = sage.status("x");
        let why = sage.sage("explain x one/a --json").exit(0).json();
        let seen = [
            text.contains("reused"),
            step(&status, "one/a")["reused"] == true,
            status["metrics"]["stepsReused"] == 1,
            why["reused"] == true,
            why["why"].as_str().unwrap().contains("reused"),
        ];
        assert_eq!(seen, [reused; 5], "{text}\n{status:#}\n{why:#}");
    };
    sage.sage("run x -t t").exit(4);
    told(false);
    sage.sage("cancel x").exit(0);
    told(false);
    sage.sage("resume x").exit(4);
    told(true);
    sage.sage("run y -t t").exit(4);
    sage.sage("approve y").exit(0);
    assert!(!text_of(&sage, "y").contains("reused"));
    assert_eq!(sage.status("y")["metrics"]["stepsReused"], 0);
}

// covers: R8
#[test]
fn nothing_of_a_cancelled_run_waits_or_asks() {
    let sage = Sage::new().template("ask", ASKING).template("retry", RETRYING);
    sage.sage("run x -t ask").exit(4);
    sage.sage("run y -t retry --no-wait").exit(4);
    for feature in ["x", "y"] {
        let before = sage.status(feature)["progress"].clone();
        sage.args(["cancel", feature]).run().exit(0);
        let text = text_of(&sage, feature);
        for alive in ["retry in", "sage approve", "paused", "after ", "?"] {
            assert!(!text.contains(alive), "{alive}: {text}");
        }
        assert!(text.contains("cancelled"), "{text}");
        let status = sage.status(feature);
        for step in status["steps"].as_array().unwrap() {
            assert!(matches!(step["state"].as_str(), Some("succeeded" | "cancelled")), "{step:#}");
            assert_eq!((step.get("waitReason"), step.get("question")), (None, None), "{step:#}");
        }
        for (_, phase) in checkpoint(&sage, feature)["checkpoints"].as_object().unwrap() {
            assert!(matches!(phase["status"].as_str(), Some("completed" | "cancelled")), "{phase:#}");
        }
        let refused = sage.args(["approve", feature]).run().exit(2);
        refused.stderr_has("was cancelled").stderr_has(&format!("sage resume {feature}"));
        assert_eq!(sage.status(feature)["progress"], before);
    }
    sage.sage("approve x gate/ok").exit(2).stderr_has("was cancelled");
    sage.sage("resume x").exit(4).stdout_has("sage approve x gate/ok");
}

// covers: R16
#[test]
fn a_degraded_run_is_no_success_and_says_why() {
    let sage = Sage::new().template("t", FALLBACK);
    let last = sage.sage("run x -t t --json").exit(3).json_lines().last().unwrap().clone();
    let reasons = json!(["one/a used its fallback"]);
    assert_eq!((&last["success"], &last["reasons"]), (&json!(false), &reasons), "{last:#}");
    let mut client = Client::start(&sage, BOTH[0]);
    let told = client.call("sage_workflow_execute", json!({"feature": "y", "template": "t"})).good();
    assert_eq!((&told["success"], &told["reasons"]), (&json!(false), &reasons), "{told:#}");
    assert_eq!(sage.status("x")["reasons"], reasons);
    let text = text_of(&sage, "x");
    assert!(text.contains("! one  1 step, 1 fallback used"), "{text}");
    let line = text.lines().last().unwrap();
    assert!(line.starts_with("! degraded, after ") && line.ends_with(": one/a used its fallback"), "{text}");
}

// covers: R8
#[test]
fn a_check_that_a_person_went_without_is_named() {
    let text = "
name: t
phases:
  - { id: one, operations: { id: a, type: test.run } }
";
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(3);
    let text = text_of(&sage, "x");
    assert!(text.contains("1 step, 1 not checked") && text.contains("one/a was not checked"), "{text}");
}

// covers: R4, R16
#[test]
fn the_checkpoint_has_the_words_of_the_summary() {
    let sage = Sage::new().template("failed", FAILED).template("rounds", ROUNDS);
    for (feature, exit) in [("failed", 1), ("rounds", 0)] {
        let name = format!("x-{feature}");
        let done = sage.args(["run", &name, "-t", feature, "--json"]).run().exit(exit);
        let last = done.json_lines().last().unwrap().clone();
        let phases = checkpoint(&sage, &name)["checkpoints"].clone();
        for phase in last["results"]["phases"].as_array().unwrap() {
            let image = &phases[phase["phaseId"].as_str().unwrap()];
            for field in ["phaseId", "status", "results"] {
                assert_eq!(image[field], phase[field], "{field} of {name}: {phases:#}");
            }
        }
    }
    assert_eq!(checkpoint(&sage, "x-failed")["checkpoints"]["two"]["status"], "blocked");
    assert!(checkpoint(&sage, "x-rounds")["checkpoints"]["work@2"].is_object());
}

// covers: R8
#[test]
fn every_reader_says_why_a_run_is_paused_until_it_is_answered() {
    let sage = Sage::new().template("t", ASKING).template("missed", MISSED);
    let reasons = |feature: &str| {
        let (status, image) = (sage.status(feature), checkpoint(&sage, feature));
        assert_eq!(status.get("pauseReason"), image.get("pauseReason"), "{status:#}");
        status.get("pauseReason").cloned()
    };
    let ran = sage.sage("run x -t t").exit(4).stdout;
    let line = |text: &str| text.lines().find(|line| line.starts_with("◌ paused after")).map(str::to_string);
    assert_eq!(reasons("x"), Some(json!("approval")));
    assert_eq!(line(&text_of(&sage, "x")), line(&ran), "{ran}");
    assert!(line(&ran).unwrap().ends_with(": it waits for an answer"), "{ran}");
    sage.sage("approve x").exit(0);
    assert_eq!(reasons("x"), None);
    assert!(text_of(&sage, "x").contains(": its questions are answered"));
    sage.sage("run y -t missed").exit(4);
    assert_eq!(reasons("y"), Some(json!("join")));
    assert!(text_of(&sage, "y").contains(": not enough steps of a phase succeeded"));
}

/// Times that are asked for twice, with a process in between, are the same.
// covers: R8
#[test]
fn clocks_of_a_paused_run_stand_still() {
    let sage = Sage::new().template("t", ASKING);
    sage.sage("run x -t t").exit(4);
    let first = step(&sage.status("x"), "gate/ok");
    assert_eq!(step(&sage.status("x"), "gate/ok")["elapsedMs"], first["elapsedMs"]);
}

// covers: R8
#[test]
fn failures_and_steps_are_counted_as_they_are_shown() {
    let sage = Sage::new().template("empty", EMPTY).code("code", BROKEN_CODE);
    let done = sage.sage("run x -t code").exit(1).stdout;
    let crosses = done.lines().filter(|line| line.starts_with("  ✗ ")).count();
    assert!(crosses == 1 && done.contains(" · 1 failed"), "{done}");
    assert!(done.contains("  - main"), "{done}");
    sage.sage("run y -t empty").exit(0).stdout_has("  1 step done");
    let text = text_of(&sage, "y");
    assert!(text.contains("✓ one  0 steps") && text.contains("✓ two  1 step"), "{text}");
}

// covers: R16
#[test]
fn lists_use_the_words_of_status() {
    let sage = Sage::new().template("ask", ASKING).template("fall", FALLBACK).template("empty", EMPTY);
    sage.sage("run degraded-one -t fall").exit(3);
    sage.sage("run good-one -t empty").exit(0);
    sage.sage("run asking-one -t ask").exit(4);
    sage.sage("run cancelled-one -t ask").exit(4);
    sage.sage("cancel cancelled-one").exit(0);
    let table = sage.sage("list").exit(0).stdout;
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_string();
    assert!(line("good-one").contains(" succeeded "), "{table}");
    assert!(line("degraded-one").contains(" degraded "), "{table}");
    assert!(line("asking-one").contains("no process owns it"), "{table}");
    sage.sage("status").exit(0).stdout_has("paused · no process owns it");

    let mut client = Client::start(&sage, BOTH[1]);
    let all = sage.sage("list --json").exit(0).json();
    assert_eq!(client.call("sage_workflow_list", json!({})).good()["workflows"], all["workflows"]);
    for row in all["workflows"].as_array().unwrap() {
        assert_eq!((row.get("abandoned"), row.get("ownerKind")), (Some(&json!(false)), Some(&Value::Null)));
    }
    for wanted in ["degraded", "cancelled"] {
        let only = sage.args(["list", "--status", wanted, "--json"]).run().exit(0).json();
        assert_eq!(only["workflows"], json!([row(&all, &format!("{wanted}-one"))]), "{only:#}");
        let over_mcp = client.call("sage_workflow_list", json!({"filter": wanted})).good();
        assert_eq!(over_mcp["workflows"], only["workflows"]);
    }
}

/// The checkpoint names the newest round, a new journal begins with the first one.
// covers: R4
#[test]
fn a_phase_that_repeated_is_recovered_from_the_checkpoint() {
    let end = "  - { id: end, dependencies: [judge], operations: { id: c, type: shell, params: { run: 'exit 3' } } }";
    let sage = Sage::new().template("t", &format!("{ROUNDS}{end}\n"));
    sage.sage("run x -t t").exit(1);
    std::fs::remove_file(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    sage.sage("resume x").exit(1).stdout_has("2 of 3 steps done, 2 reused");
    assert_eq!(sage.lines("rounds").len(), 2, "no round ran again");
}
