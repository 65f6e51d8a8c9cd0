//! A check that passed holds for the files that it has seen, and for no others.

use super::*;

const CHECK: &str = "name: t\nphases:\n  - { id: check, operations: { id: tests, type: test.run } }\n";

fn then(operation: &str) -> String {
    format!("{CHECK}  - {{ id: later, dependencies: [check], operations: {operation} }}\n")
}

/// Of another length: Python goes by size and second to tell whether a module is what it compiled.
fn break_it(sage: &Sage) {
    sage.write("cart.py", "def total(a, b):\n    return a - b - 0\n");
}

const AGAIN: &str = "files of the project changed; these checks are made again: ";

// covers: R4, P4
#[test]
fn after_an_approval() {
    let text = then("{ id: ask, type: approval, params: { message: \"publish?\" } }");
    let sage = python(true).template("t", &text);
    sage.sage("run x -t t -q").exit(4);
    break_it(&sage);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(1).stderr_has(&format!("{AGAIN}check/tests")).stdout_has("check/tests failed");
    // If it still passes, the answer stands and nobody is asked again.
    let sage = python(true).template("t", &text);
    sage.sage("run x -t t -q").exit(4);
    sage.write("notes.txt", "x");
    sage.sage("approve x").exit(0);
    let told = sage.sage("resume x").exit(0);
    assert!(
        told.stdout.contains("check/tests started") && !told.stdout.contains("later/ask started"),
        "{}",
        told.stdout
    );
}

// covers: R4, P4
#[test]
fn while_the_owner_stays() {
    let question =
        "{ id: ask, type: approval, params: { message: \"publish?\", deadline: 30m, default: approve } }";
    let sage = python(true).template("t", &then(question));
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.sage("inbox").stdout.contains("publish?"), "the question");
    break_it(&sage);
    sage.sage("approve x").exit(0);
    running.end().exit(1).stdout_has("check/tests failed");

    // A check that saw the same files is not made again, and neither is one after which nothing waited.
    let nap = then("{ id: nap, type: sleep, params: { ms: 10 } }");
    let told = python(true).template("t", &nap).sage("run x -t t").exit(0);
    assert_eq!(told.stdout.matches("check/tests started").count(), 1, "{}", told.stdout);
    let report = then("{ id: report, type: shell, params: { run: 'date > report.txt' } }");
    let told = python(true).template("t", &report).sage("run x -t t").exit(0);
    assert_eq!(told.stdout.matches("check/tests started").count(), 1, "{}", told.stdout);
}

// covers: R4, P4
#[test]
fn after_a_kill_and_from_a_later_step() {
    let sage = python(true).template(
        "t",
        &then("{ id: wait, type: shell, params: { run: 'test -e go || { touch began; sleep 600; }' } }"),
    );
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.path("began").exists(), "the second step runs");
    assert!(running.kill());
    sage.write("go", "");
    break_it(&sage);
    sage.sage("resume x").exit(1).stdout_has("check/tests failed");

    let sage = python(true).template("t", &then("{ id: end, type: shell, params: { run: 'true' } }"));
    sage.sage("run x -t t -q").exit(0);
    // Nothing changed: the check is taken over.
    let told = sage.sage("fork x --from later/end --as same").exit(0);
    assert!(!told.stdout.contains("check/tests started"), "{}", told.stdout);
    break_it(&sage);
    sage.sage("fork x --from later/end --as y").exit(1).stdout_has("check/tests failed");
    sage.sage("resume x --from later/end").exit(1).stdout_has("check/tests failed");
}

// covers: R4, R21, P4
#[test]
fn in_code() {
    let text = "export default async (sage: Sage) => {\n  await sage.run('test.run');\n  await sage.shell('test -e go');\n};\n";
    let sage = python(true).code("t", text);
    sage.sage("run x -t t -q").exit(1);
    break_it(&sage);
    sage.write("go", "");
    sage.sage("resume x").exit(1).stderr_has(AGAIN);
    sage.write("cart.py", "def total(a, b):\n    return b + a\n");
    sage.sage("resume x -q").exit(0);
}

// covers: R4, P4
#[test]
fn of_a_command_that_a_step_expects_to_pass() {
    let text = "name: t\nphases:\n  - id: make\n    operations: { id: it, type: shell, params: { run: 'echo made >> log.log' }, \
                expect: { command: 'python3 -m unittest discover -q' } }\n  \
                - { id: later, dependencies: [make], operations: { id: end, type: shell, params: { run: test -e go } } }\n";
    let sage = python(true).template("t", text);
    sage.write(".gitignore", "*.log\n");
    sage.sage("run x -t t -q").exit(1);
    break_it(&sage);
    sage.write("go", "");
    let told = sage.sage("resume x").exit(1).stdout_has("make/it failed");
    told.stderr_has(&format!("{AGAIN}make/it"));
    assert_eq!(sage.lines("log.log"), ["made"], "only the command is run again");
}
