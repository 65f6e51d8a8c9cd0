//! Agents that know nothing of sage: they read an order and drop a file, beside agents that have sessions.

use std::fs;

use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};

const MIXED: &str = r#"
name: mixed
phases:
  - id: work
    operations:
      - { type: agent, id: person, agent: foreign, role: implementer, session: pat, prompt: "Write {{ feature }}.txt" }
      - { type: agent, id: robot, agent: fake, params: { prompt: go, script: [ { say: "from the robot" } ] } }
  - id: after
    dependencies: [work]
    operations:
      - { type: agent, id: both, agent: fake, params: { prompt: "{{ steps['work/person'].result.summary }}", script: [ { say: ok } ] } }
"#;

/// The order of a session, once it is there.
fn order(sage: &Sage, session: &str) -> String {
    let path = sage.path(&format!(".sage/inbox/orders/{session}.md"));
    wait_until(|| path.exists(), DEADLINE, "the order");
    fs::read_to_string(path).unwrap()
}

fn drop_report(sage: &Sage, name: &str, report: &Value) {
    sage.write(&format!(".sage/inbox/new/{name}"), report.to_string());
}

// covers: S8, S2
#[test]
fn files_and_sessions_mix_in_one_run() {
    let sage = Sage::new().template("mixed", MIXED);
    let run = sage.spawn("run x -t mixed --quiet");
    let order = order(&sage, "pat");
    for part in ["session_id: \"pat\"", "step: \"work/person\"", "role: \"implementer\"", "Write x.txt"] {
        assert!(order.contains(part), "{part}: {order}");
    }
    wait_until(|| sage.state_of("x", "work/robot") == "succeeded", DEADLINE, "the robot");
    assert_eq!(sage.state_of("x", "work/person"), "running");
    sage.write("x.txt", "x");
    drop_report(
        &sage,
        "done.json",
        &json!({"session_id": "pat", "type": "COMPLETE", "summary": "written",
        "deliverables": {"files": ["x.txt"]}}),
    );
    run.end().exit(0);
    assert_eq!(sage.state_of("x", "after/both"), "succeeded");
    let result = sage.sage("result x work/person --json").exit(0).json();
    let text = result.to_string();
    assert!(text.contains("written") && text.contains("x.txt") && text.contains("complete"), "{text}");
    assert!(!sage.path(".sage/inbox/orders/pat.md").exists());
    sage.assert_nothing_alive();
}

// covers: S8, R5
#[test]
fn a_report_that_comes_while_sage_is_dead_is_not_lost() {
    let sage = Sage::new().template("mixed", MIXED);
    let run = sage.spawn("run x -t mixed --quiet");
    order(&sage, "pat");
    wait_until(|| sage.state_of("x", "work/robot") == "succeeded", DEADLINE, "the robot");
    run.kill();
    sage.write("x.txt", "x");
    drop_report(
        &sage,
        "r",
        &json!({"session_id": "pat", "status": "complete", "summary": "while you slept"}),
    );
    sage.sage("resume x --quiet").exit(0);
    let result = sage.sage("result x work/person --json").exit(0).json().to_string();
    assert!(result.contains("while you slept"), "{result}");
}

// covers: S8
#[test]
fn blocked_is_a_question_to_a_person_and_an_error_a_failure() {
    let sage = Sage::new().template("mixed", MIXED);
    let run = sage.spawn("run x -t mixed --quiet");
    order(&sage, "pat");
    sage.args(["wake", "blocked", "--session", "pat", "--summary", "which port?"]).run().exit(0);
    let asked = || sage.sage("status x").exit(0).stdout.contains("which port?");
    wait_until(asked, DEADLINE, "the question");
    sage.args(["approve", "x", "work/person", "-m", "port 80"]).run().exit(0);
    wait_until(|| order(&sage, "pat").contains("port 80"), DEADLINE, "the answer");
    drop_report(&sage, "e.json", &json!({"session_id": "pat", "type": "ERROR", "summary": "it is taken"}));
    run.end().exit(1);
    let log = sage.sage("logs x").exit(0);
    log.stdout_has("reported: it is taken");
}
