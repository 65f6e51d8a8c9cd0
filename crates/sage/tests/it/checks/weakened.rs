//! Tests that the run keeps from running: the built-in templates compare what runs with what ran before the change.

use super::*;

/// `del` leaves every line of the test where it was.
fn hide(sage: &Sage) -> Value {
    let text = std::fs::read_to_string(sage.path("test_cart.py")).unwrap();
    done(json!({"test_cart.py": format!("{text}\n\ndel CartTest\n")}))
}

/// A red test and a green one.
fn red() -> Sage {
    let sage = python(false);
    sage.write("test_other.py", GREEN);
    sage
}

const FEWER: &str = "2 tests ran before the change, 1 now: `test_total`.";

// covers: P4, R6
#[test]
fn a_test_that_is_kept_from_running_is_noticed_in_every_template() {
    for (template, operation) in [
        ("bugfix", "implement.fix"),
        ("feature", "implement"),
        ("enhancement", "implement"),
        ("delivery", "implement.backend"),
    ] {
        let sage = red();
        approved(&sage);
        scripted(&sage, operation, hide(&sage));
        sage.sage(&format!("run x -t {template}")).exit(4).stdout_has(FEWER);
        sage.sage("skills save x").exit(2);
    }
    // In a worktree, with what ran at its commit.
    let sage = red();
    sage.write(".gitignore", "__pycache__/\n.sage/\n");
    git(&sage, &["init", "-q"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "start"]);
    let plan = json!({"document": "d", "summary": "s", "parts": [{"id": "a", "title": "a", "files": [], "tasks": []}]});
    scripted(&sage, "swarm.plan", json!({"result": plan}));
    scripted(&sage, "swarm.implement", hide(&sage));
    sage.sage("run x -t swarm").exit(4).stdout_has(FEWER);
}

// covers: P4, R6
#[test]
fn work_that_keeps_all_tests_asks_nobody() {
    let mended = "def total(a, b):\n    return a + b + 1\n";
    for (path, text) in [("cart.py", mended), ("test_more.py", GREEN)] {
        let sage = red();
        scripted(&sage, "implement.fix", done(json!({"cart.py": mended, path: text})));
        sage.sage("run x -t bugfix -q").exit(0);
    }
    // A test that passed may have another name.
    let sage = red();
    let renamed = GREEN.replace("test_a", "test_b");
    scripted(&sage, "implement.fix", done(json!({"cart.py": mended, "test_other.py": renamed})));
    sage.sage("run x -t bugfix -q").exit(0);
}

// covers: P4
#[test]
fn tests_run_once_before_the_change_and_not_at_all_if_nothing_can_change() {
    let sage = python(true);
    sage.write("sage.toml", "[checks]\ntest = \"echo run >> log; echo 1 passed in 0.1s\"\n");
    let count = || std::fs::read_to_string(sage.path("log")).unwrap_or_default().lines().count();
    sage.sage("run x -t bugfix -q").exit(3);
    let checks = count();
    scripted(&sage, "implement.fix", done(json!({"cart.py": "x = 1\n"})));
    sage.sage("run y -t bugfix -q").exit(0);
    assert_eq!(count(), 2 * checks + 1, "offline: only the checks; else once more before the change");
}

// covers: P4, R6
#[test]
fn what_another_run_removed_is_not_taken_for_a_persons_change() {
    let template = "name: t\nphases:\n  - { id: ask, operations: { id: ask, type: approval, params: { message: \"go?\" } } }\n  \
                    - { id: check, dependencies: [ask], operations: { id: tests, type: test.run } }\n";
    let sage = red().template("t", template);
    scripted(&sage, "implement.fix", done(json!({"test_cart.py": ""})));
    sage.sage("run x -t t -q").exit(4);
    sage.sage("run y -t bugfix -q").exit(4);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(4).stdout_has("`test_total` in `test_cart.py`");

    // A person may remove it.
    let sage = red().template("t", template);
    sage.sage("run x -t t -q").exit(4);
    sage.write("test_cart.py", "");
    sage.sage("approve x").exit(0);
    sage.sage("resume x -q").exit(0);
}

// covers: P4, R4
#[test]
fn an_agent_that_breaks_the_project_after_its_tests_is_noticed() {
    let sage = python(true);
    approved(&sage);
    scripted(&sage, "implement.backend", done(json!({"cart.py": "def total(a, b):\n    return b + a\n"})));
    let report = json!({"summary": "s", "findings": []});
    let broken = "def total(a, b):\n    return a - b - 0\n";
    scripted(&sage, "audit.security", json!({"write": {"cart.py": broken}, "result": report}));
    let told = sage.sage("run x -t delivery --input needs_security=true").exit(1);
    told.stdout_has("qa/backend-tests failed");
}

// covers: P4, R12
#[test]
fn changes_that_are_not_committed_are_told_before_worktrees_start_without_them() {
    let sage = python(true);
    sage.write(".gitignore", "__pycache__/\n.sage/\n");
    git(&sage, &["init", "-q"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "start"]);
    let warning =
        "worktrees start from the last commit; uncommitted changes are not in them and not tested there";
    assert!(!sage.sage("run x -t swarm").stderr.contains(warning));
    sage.write("cart.py", "def total(a, b):\n    return a - b - 0\n");
    sage.sage("run y -t swarm").stderr_has(&format!("{warning}: `cart.py`"));
}
