//! What a command has to print so that it counts as a test.

use super::*;

/// A project whose `make test` prints this and ends well.
fn made(output: &str) -> TempDir {
    project(&[("Makefile", "test:\n\t@cat out.txt\n"), ("out.txt", output)])
}

// covers: P4
#[test]
fn a_command_that_was_looked_up_has_to_show_a_test() {
    let silent = [
        "no tests yet",
        "",
        "All good.",
        "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS",
        "> Task :test SKIPPED\nBUILD SUCCESSFUL in 1s",
        "> Task :compileTestJava\n> Task :testClasses\nBUILD SUCCESSFUL in 1s",
        "py39: SKIP (0.01 seconds)\ncongratulations :) (0.05 seconds)",
        "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
        "ok | 0 passed | 0 failed (0ms)",
        "100% tests passed, 0 tests failed out of 0",
        "Executed 0 tests, with 0 failures (0 unexpected) in 0.0 seconds",
        "✓ built in 1.2s",
    ];
    for output in silent {
        let told = unknown(ask("test.run", &made(output), json!({}), json!({})));
        let none =
            told.contains("its output shows no test that ran") || told.contains("it found no tests to run");
        assert!(none, "{output}: {told}");
    }
    let told = unknown(ask("test.run", &made("fine"), json!({}), json!({})));
    assert!(
        told.ends_with(
            "To go by the exit code alone, name the command in sage.toml: [checks] test = \"make test\"."
        ),
        "{told}"
    );
    let shown = [
        "ok  \texample.com/x\t0.003s",
        "> Task :test\n\nBUILD SUCCESSFUL in 1s",
        "> Task :app:testDebugUnitTest UP-TO-DATE",
        "PASS: adds up",
        "1..1\nok 1 - adds",
        "3 runs, 5 assertions, 0 failures, 0 errors, 0 skips",
    ];
    for output in shown {
        passed(ask("test.run", &made(output), json!({}), json!({})));
    }
}

// covers: P4
#[test]
fn the_exit_code_of_a_command_that_a_person_named_is_enough() {
    let dir = made("fine");
    let named = Some(vec!["make test".to_string()]);
    passed(crate::perform(&Request { named, ..request("test.run", &dir, json!({}), json!({})) }));
    passed(ask("test.run", &dir, json!({"commands": ["make test"]}), json!({})));
    // Unless it says itself that there was nothing.
    let dir = made("0 runs, 0 assertions, 0 failures, 0 errors, 0 skips");
    unknown(ask("test.run", &dir, json!({"commands": ["make test"]}), json!({})));
    // A build is no test.
    let dir = project(&[("Makefile", "build:\n\t@true\n")]);
    passed(ask("build.verify", &dir, json!({}), json!({})));
}

// covers: P4
#[test]
fn a_wrapper_that_only_talks_of_a_tool_does_not_hide_it() {
    let makefile = |recipe: &str| {
        let dir = python(true);
        std::fs::write(dir.path().join("Makefile"), format!("test: ## runs pytest\n{recipe}\n")).unwrap();
        dir
    };
    for recipe in [
        "\t@echo \"1 passing; please run pytest yourself\"",
        "\t@# unittest is broken for now\n\t@echo 1 passing",
        "\t@printf 'unittest: 1 passing\\n' # python3 -m unittest",
    ] {
        failed(ask("test.run", &makefile(recipe), json!({}), json!({})));
    }
    let calls = makefile("\tpython3 -m unittest discover");
    let (_, result) = failed(ask("test.run", &calls, json!({}), json!({})));
    assert_eq!(result["commands"].as_array().unwrap().len(), 1, "{result}");
    // The word `test` in a recipe is not the script of that name.
    let dir = project(&[("Makefile", "test:\n\t@echo 1 passing\n"), ("test", "#!/bin/sh\nexit 1\n")]);
    let tree = Tree::read(dir.path()).unwrap();
    assert_eq!(orders(&tree, &dir, "test", "all"), [":make test", ":./test"]);
    let dir = project(&[("Makefile", "test:\n\tbash test\n"), ("test", "#!/bin/sh\nexit 1\n")]);
    assert_eq!(orders(&Tree::read(dir.path()).unwrap(), &dir, "test", "all"), [":make test"]);
}
