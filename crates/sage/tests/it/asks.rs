//! What running agents ask for: rules, people and deadlines answer, from another process.

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, wait_until};

const ASKS: &str = r#"
name: asks
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: fake, params: { prompt: go, script: [ { ask: { tool: Bash, input: { command: "touch made" } }, run: "touch made", say: done } ] } }
      - { type: agent, id: two, agent: fake, params: { prompt: go, script: [ { say: independent } ] } }
"#;

fn asking(sage: &Sage, step: &str) -> bool {
    let Some(run) = sage.engine().latest("x").map(|_| sage.status("x")) else { return false };
    let steps = run["steps"].as_array().unwrap();
    steps.iter().any(|it| it["path"] == step && it["waitReason"] == "approval")
}

/// The id of the open question of `work/one`.
fn question(sage: &Sage) -> Value {
    let status = sage.status("x");
    let step = status["steps"].as_array().unwrap().iter().find(|it| it["path"] == "work/one");
    step.unwrap()["asks"][0]["id"].clone()
}

// covers: S4, P3
#[test]
fn an_agents_question_is_answered_from_another_process_and_others_go_on() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    wait_until(|| sage.state_of("x", "work/two") == "succeeded", DEADLINE, "the other step");
    assert!(!sage.path("made").exists());
    let shown = sage.sage("status x").exit(0);
    shown.stdout_has("may it use Bash: touch made?").stdout_has("sage approve x work/one");
    let roster = sage.sage("status --json").exit(0).json();
    assert_eq!(roster["runs"][0]["asking"], serde_json::json!(["work/one"]), "{roster:#}");
    assert_eq!(roster["runs"][0]["working"], serde_json::json!([]), "it waits for a person");
    sage.sage("status").exit(0).stdout_has("sage approve x work/one");
    sage.sage("approve x work/one --ask nonsense").exit(2).stderr_has("no open question");
    sage.sage("approve x work/two").exit(2);
    sage.sage("approve x").exit(0);
    run.end().exit(0);
    assert!(sage.path("made").exists());
    let said = sage.sage("logs x").exit(0);
    said.stdout_has("work/one asks: may it use Bash: touch made?").stdout_has("work/one allowed by");
    sage.assert_nothing_alive();
}

// covers: P3
#[test]
fn a_person_can_say_no_and_why_or_allow_something_else() {
    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    sage.args(["reject", "x", "work/one", "-m", "not before lunch"]).run().exit(0);
    run.end().exit(0);
    assert!(!sage.path("made").exists());
    sage.sage("logs x work/one").exit(0).stdout_has("denied: not before lunch");

    let sage = Sage::new().template("asks", ASKS);
    let run = sage.spawn("run x -t asks --quiet");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    sage.args(["approve", "x", "work/one", "--edit", "{broken"])
        .run()
        .exit(2)
        .stderr_has("--edit is not JSON");
    sage.args(["approve", "x", "work/one", "--edit", r#"{"command":"ls"}"#]).run().exit(0);
    run.end().exit(0);
    sage.sage("logs x work/one").exit(0).stdout_has(r#"allowed with {\"command\":\"ls\"}"#);
}

// covers: P3
#[test]
fn rules_answer_without_a_person() {
    let allowed = Sage::new().template("asks", ASKS);
    allowed.write("sage.toml", "[approvals]\ncommands = [\"touch *\"]\n");
    allowed.sage("run x -t asks --quiet").exit(0);
    assert!(allowed.path("made").exists());
    allowed.sage("logs x").exit(0).stdout_has("work/one Bash: touch made allowed by rule");

    let denied = Sage::new().template("asks", ASKS);
    denied.write("sage.toml", "[approvals]\ndeny = [\"touch *\"]\n");
    denied.sage("run x -t asks --quiet").exit(0);
    assert!(!denied.path("made").exists());
    denied.sage("logs x work/one").exit(0).stdout_has("denied: `touch *` is not allowed in this project");

    let auditor = Sage::new().template("asks", &ASKS.replace("id: one,", "id: one, role: observer,"));
    auditor.write("sage.toml", "[approvals]\ntools = [\"*\"]\n");
    auditor.sage("run x -t asks --quiet").exit(0);
    assert!(!auditor.path("made").exists());
    auditor.sage("logs x work/one").exit(0).stdout_has("your role may not run commands");
}

// covers: P3
#[test]
fn nobody_answers_and_the_default_does() {
    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(!sage.path("made").exists());
    sage.sage("logs x").exit(0).stdout_has("work/one denied by deadline: no answer before the deadline");

    let sage = Sage::new().template("asks", ASKS);
    sage.write("sage.toml", "[approvals]\ndeadline = \"300ms\"\ndefault = \"allow\"\n");
    sage.sage("run x -t asks --quiet").exit(0);
    assert!(sage.path("made").exists());
}

/// The clocks of an attempt stand still while a person thinks; a killed owner's agent asks again.
// covers: R5, R14
#[test]
fn thinking_costs_no_time_and_a_kill_asks_again() {
    let slow = ASKS.replace("id: one,", "id: one, timeout: 2s, idleTimeout: 1s,");
    let sage = Sage::new().template("asks", &slow);
    let run = sage.spawn("run x -t asks --quiet --timeout 2s");
    wait_until(|| asking(&sage, "work/one"), DEADLINE, "the question");
    let asked = std::time::Instant::now();
    wait_until(|| asked.elapsed().as_millis() > 2_600, DEADLINE, "longer than every limit");
    assert!(asking(&sage, "work/one"));
    run.kill();
    sage.sage("approve x work/one").exit(2);
    let first = question(&sage);
    let again = sage.spawn("resume x --quiet");
    wait_until(|| question(&sage) != first && asking(&sage, "work/one"), DEADLINE, "asked again");
    sage.sage("approve x work/one").exit(0);
    again.end().exit(0);
    assert!(sage.path("made").exists());
    sage.assert_nothing_alive();
}
