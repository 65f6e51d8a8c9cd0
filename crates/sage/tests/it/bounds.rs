//! What grows with data has a bound: a step that goes beyond it fails, and its run can still be saved.

use crate::dsl::Sage;

fn project(operations: &str) -> Sage {
    Sage::new().template("t", &format!("name: t\nphases:\n  - id: p\n    operations:\n{operations}"))
}

// covers: R2, R4
#[test]
fn a_fan_out_has_a_bound_and_its_run_goes_on() {
    let sage = project(
        "      - { id: many, type: shell, foreach: '[range(100001)]', params: { run: echo } }\n      - { id: other, type: shell, params: { run: echo } }\n",
    );
    let told = sage.sage("run x -t t --quiet").exit(1);
    told.stdout_has("invalid: `foreach` yields 100001 items; a fan-out has at most 100000");
    assert_eq!(sage.state_of("x", "p/other"), "succeeded");
    sage.sage("verify").exit(0);
    // Again and with less: the run was never one that cannot be saved.
    sage.sage("resume x --quiet").exit(1);
    let fewer = "name: t\nphases:\n  - id: p\n    operations:\n      - { id: many, type: shell, foreach: '[range(3)]', params: { run: echo } }\n      - { id: other, type: shell, params: { run: echo } }\n";
    sage.write(".sage/templates/t.yaml", fewer);
    sage.sage("resume x -t t --quiet").exit(0);
}

// covers: R4
#[test]
fn a_question_and_a_message_that_are_too_long_fail_their_step() {
    let big = "python3 -c \"print('x' * 70000)\"";
    let sage = project(&format!(
        "      - {{ id: big, type: shell, params: {{ run: {big:?} }} }}\n      - {{ id: ask, type: approval, needs: [p/big], params: {{ message: \"{{{{ steps['p/big'].result.stdout }}}}\" }} }}\n"
    ));
    let told = sage.sage("run x -t t --quiet").exit(1);
    told.stdout_has("at most 65536 can be asked");
    // A message is for people: the rest of it is in the logs.
    let wrong = "[ { run: \"true\", result: [ \"LONG\" ] } ]".replace("LONG", &"y".repeat(40_000));
    let sage = project(&format!(
        "      - {{ id: x, type: agent, agent: fake, retry: 1, schema: {{ type: object }}, prompt: go, params: {{ script: {wrong} }} }}\n"
    ));
    sage.sage("run x -t t --quiet").exit(1).stdout_has("does not fit its schema");
    let error = sage.status("x")["steps"][0]["error"].as_str().unwrap().len();
    assert!(error < 20_000, "{error}");
    sage.sage("verify").exit(0);
}

/// A script whose error is longer than a record would be one that no resume could ever save.
// covers: R4, R21
#[test]
fn a_script_that_throws_megabytes_fails_and_can_be_resumed() {
    let sage = Sage::new()
        .code("w", "export default async () => { throw new Error(\"\\u0001\".repeat(12_000_000)); };\n");
    sage.sage("run x -t w --quiet").exit(1);
    sage.sage("verify").exit(0);
    sage.sage("resume x --quiet").exit(1);
}
