//! Questions to people: each has its own id, holds no slot, and is answered at any time.

use serde_json::{Value, json};

use crate::dsl::Sage;

const TWO: &str = r#"
name: t
phases:
  - id: ask
    operations:
      - { id: ship, type: approval, params: { message: "ship {{ title }}?" } }
      - { id: color, type: approval, params: { message: "which?", choices: [blue, green] } }
      - { id: work, type: shell, params: { run: "echo work >> ran" } }
  - id: go
    dependencies: [ask]
    operations:
      id: paint
      type: shell
      params: { argv: [echo, '{{ steps["ask/color"].result.choice }} {{ steps["ask/ship"].result.message }}'] }
"#;

fn asked() -> Sage {
    let sage = Sage::new().template("t", TWO);
    sage.sage("run x -t t --parallel 1").exit(4).stdout_has("sage approve x");
    sage
}

// covers: R5, LESSONS "Resume"
#[test]
fn two_approvals_have_their_own_ids_and_hold_no_slot() {
    let sage = asked();
    assert_eq!(sage.lines("ran"), ["work"], "at limit 1, questions are in nobody's way");
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"approval".into()));
    let step =
        |path: &str| status["steps"].as_array().unwrap().iter().find(|s| s["path"] == path).unwrap().clone();
    for (path, message) in [("ask/ship", "ship x?"), ("ask/color", "which?")] {
        let step = step(path);
        assert_eq!((&step["state"], &step["waitReason"]), (&"waiting".into(), &"approval".into()), "{step}");
        assert_eq!(step["question"]["message"], message);
    }
    // Which one is meant must be said.
    sage.sage("approve x").exit(2).stderr_has("ask/ship").stderr_has("ask/color");
    sage.args(["approve", "x", "ask/ship", "-m", "well done"]).run().exit(0);
    sage.sage("run x -t t").exit(5);
    sage.sage("resume x").exit(4);
    sage.sage("approve x --choice purple").exit(2).stderr_has("blue, green");
    sage.sage("approve x --choice green").exit(0);
    sage.sage("resume x").exit(0);
    let painted = sage.sage("result x go/paint").exit(0).json();
    assert_eq!(painted["stdout"], "green well done\n");
    let mut ship = sage.sage("result x ask/ship").exit(0).json();
    let by = ship["by"].take();
    // Who the process runs as, and by which door; not what $USER says.
    assert!(
        by.as_str().is_some_and(|by| by.ends_with(" via command line") && !by.contains("tester")),
        "{by}"
    );
    assert_eq!(ship, json!({"choice": "approve", "by": null, "message": "well done"}));
    let journal = sage.journal("x");
    journal.assert_nothing_repeated();
    assert_eq!(journal.started().len(), 4, "an approval is asked once: {:?}", journal.started());
    assert_eq!(sage.lines("ran"), ["work"]);
}

// covers: R5
#[test]
fn a_choice_is_never_taken_for_granted() {
    let sage = asked();
    sage.sage("approve x ask/color").exit(2).stderr_has("blue").stderr_has("-c blue");
    sage.sage("approve x ask/color -c blue").exit(0).stdout_has("ask/color: blue");
    sage.sage("approve x").exit(0).stdout_has("ask/ship: approve");
    sage.sage("approve x ask/ship").exit(5).stderr_has("already answered: `approve` by ");
    sage.sage("approve x ask/nobody").exit(2).stderr_has("no step");
    sage.sage("approve x go/paint").exit(2).stderr_has("does not wait");
    sage.sage("resume x").exit(0);
}

// covers: R5, P5
#[test]
fn rejecting_fails_the_step_with_its_message() {
    let sage = asked();
    sage.args(["reject", "x", "ask/ship", "-m", "not on a friday"]).run().exit(0);
    sage.sage("approve x -c blue").exit(0);
    sage.sage("resume x").exit(1).stdout_has("not on a friday");
    let status = sage.status("x");
    assert_eq!(sage.state_of("x", "ask/ship"), "failed");
    assert_eq!(sage.state_of("x", "go/paint"), "blocked");
    let error = status["errors"][0].as_str().unwrap_or_default();
    assert!(error.contains("ask/ship") && error.contains("rejected"), "{error}");
}

// covers: R5
#[test]
fn an_answer_reaches_a_living_owner() {
    let text = r#"
name: t
phases:
  - id: ask
    operations:
      - { id: ship, type: approval, params: { message: "ship?" } }
      - { id: busy, type: shell, params: { run: "until [ -e go ]; do sleep 0.01; done" } }
  - id: go
    dependencies: [ask]
    operations: { id: last, type: shell, params: { run: "true" } }
"#;
    let sage = Sage::new().template("t", text);
    let mut running = sage.spawn("run x -t t");
    running.until(
        || sage.engine().latest("x").is_some() && sage.journal("x").started().len() == 2,
        "both to start",
    );
    let told = sage.sage("approve x --json").exit(0).json();
    assert_eq!((&told["step"], &told["choice"]), (&"ask/ship".into(), &"approve".into()));
    assert_eq!(sage.state_of("x", "ask/ship"), "succeeded", "durable when the command returns");
    sage.write("go", "");
    running.end().exit(0);
}

// covers: R5
#[test]
fn an_answer_can_be_given_while_no_owner_lives() {
    let text = TWO.replace("echo work >> ran", "echo up >> up; sleep 300");
    let sage = Sage::new().template("t", &text);
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty() && sage.journal("x").started().len() == 3, "all to start");
    assert!(running.kill());
    sage.sage("approve x ask/ship").exit(0);
    sage.sage("reject x ask/color").exit(0);
    assert_eq!(sage.state_of("x", "ask/ship"), "succeeded");
    assert_eq!(sage.state_of("x", "ask/color"), "failed");
    assert_eq!(sage.lines("up").len(), 1, "nothing was started to deliver an answer");
    sage.assert_nothing_alive();
}

fn deadline(params: &str) -> String {
    format!(
        r#"
name: t
phases:
  - id: ask
    operations: {{ id: ship, type: approval, params: {{ message: "ship?", deadline: 300ms{params} }} }}
"#
    )
}

// covers: R5
#[test]
fn the_default_speaks_at_the_deadline() {
    let sage = Sage::new().template("t", &deadline(", default: approve"));
    sage.sage("run x -t t").exit(0);
    let result: Value = sage.sage("result x ask/ship").exit(0).json();
    assert_eq!((&result["choice"], &result["by"]), (&"approve".into(), &"deadline".into()));
}

// covers: R5
#[test]
fn without_a_default_the_deadline_rejects() {
    let sage = Sage::new().template("t", &deadline(""));
    sage.sage("run x -t t").exit(1);
    assert_eq!(sage.state_of("x", "ask/ship"), "failed");
}

/// The deadline is a time, not a countdown of whoever happens to run.
// covers: R5
#[test]
fn a_deadline_that_passed_while_nobody_ran_is_kept() {
    let sage = Sage::new().template("t", &deadline(", choices: [a, b], default: b"));
    sage.sage("run x -t t --no-wait").exit(4);
    let asked = sage.journal("x").records.iter().any(|entry| entry.event.kind() == "step.started");
    assert!(asked);
    std::thread::sleep(std::time::Duration::from_millis(350));
    sage.sage("resume x").exit(0);
    assert_eq!(sage.sage("result x ask/ship").exit(0).json()["choice"], "b");
}

// covers: R5
#[test]
fn unknown_outcomes_ask_where_the_template_says_so() {
    let text = r#"
name: t
phases:
  - id: p
    operations: { id: pay, type: shell, onUnknown: ask, params: { run: "echo up >> up; [ -e go ] || sleep 300" } }
"#;
    let sage = Sage::new().template("t", text);
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty(), "the payment");
    assert!(running.kill());
    sage.sage("resume x").exit(4);
    assert_eq!(sage.state_of("x", "p/pay"), "unknown");
    assert_eq!(sage.lines("up").len(), 1, "it was not paid twice without asking");
    sage.write("go", "");
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(sage.lines("up").len(), 2);
}
