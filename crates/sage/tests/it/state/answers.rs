//! Several answers to one question: the first that is durable counts, and the others are told.

use serde_json::Value;

use crate::dsl::{Outcome, Sage};

const ASK: &str = r#"
name: t
phases:
  - id: a
    operations: { id: ask, type: approval, params: { message: "go?" } }
"#;

/// The question, and a step that keeps its owner alive.
const BUSY: &str = r#"
name: t
phases:
  - id: a
    operations:
      - { id: ask, type: approval, params: { message: "go?" } }
      - { id: busy, type: shell, params: { run: "echo up > up; until [ -e go ]; do sleep 0.01; done" } }
"#;

/// All at once; exactly one of them is in time.
#[track_caller]
fn answer(sage: &Sage, commands: &[&str]) -> (String, Vec<Outcome>) {
    let running: Vec<_> = commands.iter().map(|command| sage.spawn(command)).collect();
    let ended: Vec<Outcome> = running.into_iter().map(|running| running.end()).collect();
    let codes: Vec<i32> = ended.iter().map(|outcome| outcome.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    let late: Vec<&Outcome> = ended.iter().filter(|outcome| outcome.code != 0).collect();
    for late in &late {
        assert_eq!(late.code, 5, "{}", late.stderr);
        assert!(late.stderr.contains("already answered"), "{}", late.stderr);
    }
    let won = ended.iter().find(|outcome| outcome.code == 0).unwrap().stdout.trim().to_string();
    (won, ended)
}

/// What the journal has is what the one in time was told.
#[track_caller]
fn check(sage: &Sage, feature: &str, won: &str) {
    let status: Value = sage.status(feature);
    let steps = status["steps"].as_array().unwrap();
    let state = &steps.iter().find(|step| step["path"] == "a/ask").unwrap()["state"];
    let expected = if won == "a/ask: approve" { "succeeded" } else { "failed" };
    assert_eq!(state, expected, "{won}: {status}");
}

// covers: R5
#[test]
fn of_two_contrary_answers_one_counts_and_the_other_is_told() {
    for round in 0..4 {
        let sage = Sage::new().template("t", ASK);
        sage.sage("run x -t t").exit(4);
        let commands = if round % 2 == 0 { ["approve x", "reject x"] } else { ["reject x", "approve x"] };
        let (won, _) = answer(&sage, &commands);
        check(&sage, "x", &won);
    }
}

// covers: R5
#[test]
fn of_two_contrary_answers_to_a_living_owner_one_counts() {
    for _ in 0..3 {
        let sage = Sage::new().template("t", BUSY);
        let mut running = sage.spawn("run x -t t");
        running.until(|| !sage.lines("up").is_empty(), "the owner");
        running.until(
            || sage.status("x")["steps"].as_array().unwrap().iter().any(|step| !step["question"].is_null()),
            "the question",
        );
        let (won, _) = answer(&sage, &["approve x a/ask", "reject x a/ask", "approve x a/ask"]);
        check(&sage, "x", &won);
        sage.write("go", "");
        let code = running.end().code;
        assert_eq!(code, if won.ends_with("approve") { 0 } else { 1 });
    }
}

// covers: R5
#[test]
fn a_late_answer_learns_what_was_answered() {
    let sage = Sage::new().template("t", ASK);
    sage.sage("run x -t t").exit(4);
    sage.args(["reject", "x", "-m", "not today"]).run().exit(0);
    for late in ["approve x", "approve x a/ask", "reject x a/ask"] {
        let told = sage.sage(late).exit(5);
        told.stderr_has("already answered: rejected by ").stderr_has("hint: sage status x");
    }
}

/// A deadline that passed while the run had no owner has decided before any answer that comes later.
// covers: R5
#[test]
fn an_answer_after_the_deadline_is_too_late() {
    let text = ASK.replace("\"go?\"", "\"go?\", deadline: 300ms, default: approve");
    for owned in [true, false] {
        let sage = Sage::new().template("t", &text);
        if owned {
            sage.sage("run x -t t").exit(0);
        } else {
            sage.sage("run x -t t --no-wait").exit(4);
            let until = sage.journal("x").records.last().unwrap().at_ms + 400;
            let now = || sage_engine::clock::Clock::System.now_ms();
            crate::dsl::wait_until(|| now() > until, crate::dsl::DEADLINE, "the deadline");
        }
        sage.sage("reject x a/ask").exit(5).stderr_has("already answered: `approve` by deadline");
        sage.sage("resume x").exit(0);
        assert_eq!(sage.state_of("x", "a/ask"), "succeeded");
    }
}
