//! What a failed or missing check does to the verdict, whoever goes on without it.

use super::*;

fn racing(sage: Sage, lint: &str) -> Sage {
    let text = format!(
        "name: t\nphases:\n  - id: c\n    join: any\n    operations:\n      - {{ id: tests, type: test.run }}\n      \
         - {{ id: lint, type: shell, params: {{ run: '{lint}' }} }}\n"
    );
    sage.template("t", &text)
}

// covers: P4, R6
#[test]
fn a_check_that_failed_in_a_race_is_part_of_the_verdict() {
    // It waits until the tests have ended. The brackets keep the pattern from matching itself in the journal.
    let wait =
        "until grep -q \"step[.]finished.*c/tests\" .sage/state/runs/*/journal.jsonl; do sleep 0.1; done";
    let sage = racing(python(false), wait);
    let told = sage.sage("run x -t t").exit(3).stdout_has("degraded, after").stdout_has("c/tests failed");
    drop(told);
    assert_eq!(sage.status("x")["reasons"], json!(["c/tests failed"]));
    sage.sage("status x").exit(0).stdout_has("1 of 2 succeeded").stdout_has("✗ tests");
    // One that could not be made, and one that was not waited for.
    let sage = racing(Sage::new(), wait);
    sage.sage("run x -t t").exit(3).stdout_has("c/tests was not checked");
    let sage = racing(python(false), "true");
    sage.write("sage.toml", "[checks]\ntest = \"sleep 600\"\n");
    sage.sage("run x -t t").exit(3).stdout_has("c/tests was not checked");
}

// covers: P4, R6
#[test]
fn a_command_that_is_expected_to_pass_and_fails_in_a_race_is_part_of_the_verdict() {
    let template = |command: &str| {
        format!(
            "name: t\nphases:\n  - id: c\n    join: any\n    operations:\n      - {{ id: look, type: shell, params: {{ run: 'true' }}, \
             retry: 1, expect: {{ command: '{command}' }} }}\n      - {{ id: wait, type: shell, params: {{ run: 'until grep -q \
             \"step[.]finished.*c/look\" .sage/state/runs/*/journal.jsonl; do sleep 0.1; done' }} }}\n"
        )
    };
    let sage = Sage::new().template("t", &template("false"));
    sage.sage("run x -t t -q").exit(3);
    assert_eq!(sage.status("x")["reasons"], json!(["c/look failed"]));
    Sage::new().template("t", &template("true")).sage("run x -t t -q").exit(0);
}

// covers: P4, R21
#[test]
fn code_that_catches_a_red_check_does_not_hide_it() {
    let bodies = [
        "try { await sage.run('test.run'); } catch (e) {}",
        "await Promise.allSettled([sage.run('test.run')]);",
        "try { await sage.workflow('inner'); } catch (e) {}",
        "try { await sage.run('test.run'); } catch (e) {}\n  await sage.run('build.verify');",
        "sage.run('test.run');",
    ];
    let inner = "name: inner\nphases:\n  - { id: c, operations: { id: tests, type: test.run } }\n";
    for body in bodies {
        let text = format!("export default async (sage: Sage) => {{\n  {body}\n}};\n");
        let sage = python(false).template("inner", inner).code("t", &text);
        sage.sage("run x -t t -q").exit(3);
        let reasons = reasons(&sage, "x");
        assert!(reasons.contains(" failed") || reasons.contains("was not checked"), "{body}: {reasons}");
        sage.sage("skills save x").exit(2);
    }
}

// covers: P4, R21
#[test]
fn code_that_mends_what_a_check_found_succeeds() {
    let text = "export default async (sage: Sage) => {\n  for (let round = 0; round < 3; round++) {\n    \
                try { await sage.run('test.run'); return 'green'; } catch (e) { await sage.shell('sed -i s/4/3/ test_cart.py'); }\n  \
                }\n  throw new Error('red');\n};\n";
    let sage = python(false).code("t", text);
    sage.sage("run x -t t -q").exit(0);
}

// covers: P4, R6
#[test]
fn code_that_is_written_after_the_tests_is_tested() {
    let broken = json!({"cart.py": "def total(a, b):\n    return a - b - 0\n"});
    let sage = python(true);
    approved(&sage);
    for name in ["implement.backend", "implement.frontend"] {
        scripted(&sage, name, done(json!({"note.txt": "x"})));
    }
    let report = json!({"document": "d", "summary": "s", "findings": []});
    scripted(&sage, "document", json!({"write": broken, "result": report}));
    sage.sage("run x -t delivery").exit(1).stdout_has("acceptance/backend-tests failed");

    let sage = python(true);
    git(&sage, &["init", "-q"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "start"]);
    let plan = |parts: Value| json!({"result": {"document": "d", "summary": "s", "parts": parts}});
    scripted(&sage, "swarm.plan", plan(json!([{"id": "a", "title": "a", "files": [], "tasks": []}])));
    scripted(&sage, "swarm.implement", done(json!({"note.txt": "x"})));
    let cleaned = json!({"summary": "s", "filesChanged": [], "done": [], "open": []});
    sage.write(
        ".sage/operations/clean.md",
        format!(
            "---\nagent: fake\nrole: cleaner\nparams: {{ script: [{}] }}\n---\n",
            json!({"write": broken, "result": cleaned})
        ),
    );
    sage.sage("run x -t swarm").exit(1).stdout_has("cleaning/tests failed");
    // A plan without parts implements nothing.
    scripted(&sage, "swarm.plan", plan(json!([])));
    sage.write("cart.py", "def total(a, b):\n    return a + b\n");
    scripted(&sage, "clean", json!({"result": cleaned}));
    sage.sage("run y -t swarm -q").exit(4);
    sage.sage("approve y").exit(0);
    sage.sage("resume y").exit(3).stdout_has("nothing was implemented");
    sage.sage("skills save y").exit(2);
}

// covers: P4
#[test]
fn skills_are_not_saved_from_runs_that_tested_nothing() {
    let with = |operations: &str| format!("name: t\nphases:\n  - id: c\n    operations:\n{operations}");
    let operations = [
        "      - { id: t, type: test.run, foreach: '[]' }\n",
        "      - { id: b, type: build.verify }\n      - { id: t, type: test.run, when: 'false' }\n",
    ];
    for operations in operations {
        let sage = python(false).template("t", &with(operations));
        sage.sage("run x -t t -q").exit(0);
        sage.sage("skills save x").exit(2).stderr_has("step `c/t` did not run");
    }
}

// covers: P4, R6
#[test]
fn what_a_template_expects_is_added_to_what_its_operation_expects() {
    let with = |operation: &str| format!("name: t\nphases:\n  - id: c\n    operations: {operation}\n");
    for expect in ["{ files: [cart.py] }", "{ command: 'test -e cart.py' }", "{ files: cart.py }"] {
        let sage =
            python(false).template("t", &with(&format!("{{ id: t, type: test.run, expect: {expect} }}")));
        sage.sage("run x -t t").exit(1).stdout_has("c/t failed");
    }
    let shell = |expect: &str| {
        with(&format!("{{ id: t, type: shell, params: {{ run: 'true' }}, expect: {expect} }}"))
    };
    let sage = Sage::new().template("t", &shell("{ files: nope.md }"));
    sage.sage("run x -t t").exit(1).stdout_has("expected file `nope.md` does not exist");
    for (expect, told) in [
        ("{ command: '' }", "the command is empty"),
        ("{ files: 3 }", "expected a list of paths, found the number 3"),
        ("{ files: [] }", "the list is empty"),
        ("{ files: [''] }", "the path is empty"),
        ("{ passed: yes please }", "expected true or false"),
    ] {
        let sage = Sage::new().template("t", &shell(expect));
        sage.sage("validate t").exit(2).stderr_has(told);
    }
}

// covers: P4, S6
#[test]
fn a_check_of_a_worktree_that_is_none_is_refused() {
    let with = |of: &str, isolation: &str| {
        format!(
            "name: t\nphases:\n  - id: a\n    operations: {{ id: i, type: implement.fix{isolation} }}\n  - id: b\n    \
             dependencies: [a]\n    operations: {{ id: t, type: test.run, params: {{ of: \"{of}\" }} }}\n"
        )
    };
    let validate = |of: &str, isolation: &str, code: i32| {
        Sage::new().template("t", &with(of, isolation)).sage("validate t").exit(code)
    };
    validate("a/j", ", isolation: worktree", 2)
        .stderr_has("unknown step `a/j`")
        .stderr_has("did you mean `a/i`?");
    validate("a/i", "", 2).stderr_has("`a/i` works in the project and leaves no worktree to check");
    validate("b/t", "", 2);
    validate("a/i", ", isolation: worktree", 0);
    // What is only known in the run is unknown there.
    let text = "export default async (sage: Sage) => { await sage.run('test.run', { of: 'a/nothing' }); };\n";
    let sage = python(false).code("t", text);
    sage.sage("run x -t t").exit(4).stdout_has("`of` names `a/nothing`, which is no step of this run");
}
