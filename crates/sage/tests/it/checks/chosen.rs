//! An agent neither chooses nor replaces what judges it.

use super::*;

/// Runs `bugfix` with an implementer that runs this command, and gives what the tests said.
fn judged(sage: &Sage, run: &str, code: i32) -> String {
    fixed_by(sage, run);
    let told = sage.sage("run x -t bugfix").exit(code);
    told.stdout.lines().filter(|line| line.contains("validation/tests ")).collect()
}

// covers: R6, P4
#[test]
fn a_command_that_was_known_is_run_although_a_new_one_hides_it() {
    let sage = python(false);
    judged(&sage, "printf 'test:\\n\\t@echo unittest: 1 passing\\n' > Makefile", 1);
    let sage = python(true);
    sage.write("Makefile", "test:\n\t@false\n");
    let told = judged(&sage, "rm Makefile", 4);
    assert!(told.contains("`make test` (`Makefile`) is gone since the run began."), "{told}");
}

// covers: R6, P4
#[test]
fn whatever_decides_how_a_command_runs_is_compared_with_the_start() {
    let package = |unit: &str| format!("{{\"scripts\":{{\"test\":\"npm run unit\",\"unit\":\"{unit}\"}}}}");
    let replace = |text: &str| format!("printf '%s' '{text}' > package.json");
    let cases = [
        (vec![("package.json", package("exit 1"))], replace(&package("echo 1 passing")), "package.json"),
        (
            vec![("Makefile", "T = false\ntest:\n\t@$(T)\n".into())],
            "sed -i 's/false/echo 1 passing/' Makefile".into(),
            "Makefile",
        ),
        (
            vec![("Makefile", "include a.mk\ntest:\n\t@$(T)\n".into()), ("a.mk", "T = false\n".into())],
            "echo 'T = echo 1 passing' > a.mk".into(),
            "a.mk",
        ),
        (
            vec![("Makefile", "test:\n\t@sh tools/all.sh\n".into()), ("tools/all.sh", "exit 1\n".into())],
            "echo 'echo 1 passing' > tools/all.sh".into(),
            "tools/all.sh",
        ),
        (
            vec![
                ("sage.toml", "[checks]\ntest = \"make test\"\n".into()),
                ("Makefile", "test:\n\t@false\n".into()),
            ],
            "sed -i s/false/true/ Makefile".into(),
            "Makefile",
        ),
        (
            vec![("sage.toml", "[checks]\ntest = \"sh run.sh\"\n".into()), ("run.sh", "exit 1\n".into())],
            "echo exit 0 > run.sh".into(),
            "run.sh",
        ),
    ];
    for (files, run, changed) in cases {
        let sage = Sage::new();
        files.iter().for_each(|(path, text)| drop(sage.write(path, text)));
        let told = judged(&sage, &run, 4);
        assert!(told.contains(&format!("since the run began: `{changed}`.")), "{run}: {told}");
    }
    let sage = python(false);
    let venv = "mkdir -p .venv/bin; printf '#!/bin/sh\\necho Ran 1 test in 0.1s\\n' > .venv/bin/python; chmod +x .venv/bin/python";
    let told = judged(&sage, venv, 4);
    assert!(
        told.contains("has become `.venv/bin/python -m unittest discover` since the run began."),
        "{told}"
    );
}

// covers: R6, P4
#[test]
fn a_person_restores_what_the_run_changed_or_changes_it_for_good() {
    let sage = Sage::new();
    sage.write("Makefile", "test:\n\t@echo 1 passing\n");
    judged(&sage, "echo '# a note' >> Makefile", 4);
    sage.write("Makefile", "test:\n\t@echo 1 passing\n");
    sage.sage("resume x -q").exit(0);
    // What a person writes while the run stands still is not the run's.
    let sage = Sage::new();
    sage.write("Makefile", "test:\n\t@echo 1 passing\n");
    judged(&sage, "echo '# a note' >> Makefile", 4);
    sage.sage("resume x -q").exit(4);
    sage.write("Makefile", "test:\n\t@echo 2 passing\n");
    sage.sage("resume x -q").exit(0);
    // Or goes on as it is.
    let sage = Sage::new();
    sage.write("Makefile", "test:\n\t@echo 1 passing\n");
    judged(&sage, "echo '# a note' >> Makefile", 4);
    sage.sage("approve x validation/tests").exit(0);
    sage.sage("approve x validation/regression").exit(0);
    sage.sage("resume x").exit(3).stdout_has("validation/tests was not checked");
}

// covers: R6, P4
#[test]
fn the_baseline_is_sealed() {
    let sage = python(false);
    sage.write("test_other.py", GREEN);
    // It removes the red test, and makes the baseline say that there never was one.
    let forge = "rm test_cart.py; f=$(ls .sage/state/runs/*/baseline.json); sed -i s/test_total/test_a/ $f; sed -i s/test_cart/test_other/ $f";
    let told = judged(&sage, forge, 4);
    assert!(told.contains("It is not known which tests there were when the run began."), "{told}");
}

// covers: R6, P4
#[test]
fn a_regression_alone_and_a_fork_miss_removed_tests() {
    let text = "name: t\nphases:\n  - { id: impl, operations: { id: fix, type: implement.fix } }\n  \
                - { id: check, dependencies: [impl], operations: { id: regression, type: test.regression } }\n";
    let sage = python(false).template("t", text);
    sage.write("test_other.py", GREEN);
    fixed_by(&sage, "rm test_cart.py");
    let removed = "removed or switched off since the run began";
    sage.sage("run x -t t").exit(4).stdout_has(removed);
    sage.sage("fork x --from check/regression --as y").exit(4).stdout_has(removed);
}

// covers: R6, P4
#[test]
fn in_worktrees_commands_are_compared_with_the_commit_they_began_at() {
    let sage = python(true);
    sage.write("Makefile", "test:\n\t@false\n");
    git(&sage, &["init", "-q"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", "start"]);
    let plan = json!({"document": "d", "summary": "s", "parts": [{"id": "a", "title": "a", "files": [], "tasks": []}]});
    scripted(&sage, "swarm.plan", json!({"result": plan}));
    for (run, told) in [
        (
            "printf 'test:\\n\\t@echo 1 passing\\n' > Makefile",
            "What `make test` does was changed since commit",
        ),
        ("rm Makefile", "`make test` (`Makefile`) is gone since commit"),
        ("rm Makefile test_cart.py; echo x > a.txt", "is gone since commit"),
    ] {
        let mut turn = done(json!({}));
        turn["run"] = json!(run);
        scripted(&sage, "swarm.implement", turn);
        let feature = format!("x{}", run.len());
        sage.sage(&format!("run {feature} -t swarm")).exit(4).stdout_has(told);
    }
}
