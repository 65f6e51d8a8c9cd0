use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::failures;
use super::*;
use crate::request::Before;
use crate::research::tests::project;

mod changed;
mod ran;
mod reach;
mod shown;

fn request(operation: &str, dir: &TempDir, params: Value, steps: Value) -> Request {
    let object = |value: Value| value.as_object().cloned().unwrap_or_else(Map::new);
    Request {
        operation: operation.to_string(),
        project: dir.path().to_path_buf(),
        feature: "cart".to_string(),
        title: "cart".to_string(),
        params: object(params),
        steps: object(steps),
        ..Request::default()
    }
}

fn ask(operation: &str, dir: &TempDir, params: Value, steps: Value) -> Result<Value, Trouble> {
    crate::perform(&request(operation, dir, params, steps))
}

/// The summary and the whole of a check that says no.
#[track_caller]
fn failed(result: Result<Value, Trouble>) -> (String, Value) {
    let result = result.unwrap();
    assert_eq!(result["passed"], json!(false), "{result}");
    (result["summary"].as_str().unwrap().to_string(), result)
}

/// The summary of a check that could not be made.
#[track_caller]
fn unknown(result: Result<Value, Trouble>) -> String {
    let result = result.unwrap();
    assert_eq!(result["passed"], json!(null), "{result}");
    assert_eq!(result.get("applies"), None, "{result}");
    result["summary"].as_str().unwrap().to_string()
}

#[track_caller]
fn passed(result: Result<Value, Trouble>) -> Value {
    let result = result.unwrap();
    assert_eq!((&result["ran"], &result["passed"]), (&json!(true), &json!(true)), "{result}");
    result
}

/// Two modules with a test each; the second one fails if `broken`.
fn python(broken: bool) -> TempDir {
    let sum = if broken { "a - b" } else { "a + b" };
    project(&[
        ("shop/__init__.py", ""),
        ("shop/cart.py", &format!("def total(a, b):\n    return {sum}\n")),
        ("shop/stock.py", "def count():\n    return 3\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_cart.py",
            "import unittest\nfrom shop import cart\n\n\nclass CartTest(unittest.TestCase):\n    def test_total(self):\n        \
             self.assertEqual(cart.total(1, 2), 3)\n",
        ),
        (
            "tests/test_stock.py",
            "import unittest\nfrom shop import stock\n\n\nclass StockTest(unittest.TestCase):\n    def test_count(self):\n        \
             self.assertEqual(stock.count(), 3)\n",
        ),
    ])
}

// covers: P4, R6
#[test]
fn tests_that_pass_are_said_to_pass() {
    let result = ask("test.run", &python(false), json!({}), json!({})).unwrap();
    assert_eq!((&result["ran"], &result["passed"]), (&json!(true), &json!(true)));
    assert_eq!(result["commands"][0]["command"], "python3 -m unittest discover");
    assert_eq!(result["commands"][0]["exitCode"], 0);
    let summary = result["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("2 tests ran, 0 failed. `python3 -m unittest discover` passed in "),
        "{summary}"
    );
}

// covers: P4, R6
#[test]
fn a_failing_test_fails_the_step_with_its_name_and_place() {
    let (message, partial) = failed(ask("test.run", &python(true), json!({}), json!({})));
    assert!(
        message.starts_with("2 tests ran, 1 failed. Failed: tests.test_cart.CartTest.test_total"),
        "{message}"
    );
    assert_eq!(partial["passed"], json!(false));
    let failure = &partial["failures"][0];
    assert_eq!(failure["evidence"], json!(["tests/test_cart.py:7"]));
    assert_eq!(failure["detail"], "AssertionError: -1 != 3");
}

// covers: P4
#[test]
fn what_cannot_run_is_never_said_to_pass() {
    for params in [json!({}), json!({"commands": []}), json!({"commands": ["", " "]})] {
        let none = unknown(ask("test.run", &project(&[]), params, json!({})));
        assert_eq!(none, "No test command was found. Name it in sage.toml: [checks] test = \"<command>\".");
    }
    for command in ["no-such-program-x", "sh -c no-such-program-x"] {
        let missing = ask("build.verify", &project(&[]), json!({"commands": [command]}), json!({})).unwrap();
        assert_eq!((&missing["ran"], &missing["passed"]), (&json!(false), &json!(null)), "{missing}");
        assert!(missing["summary"].as_str().unwrap().contains("not"), "{missing}");
    }
}

// covers: P4, R6
#[test]
fn an_empty_list_of_commands_is_looked_up() {
    let result = passed(ask("test.run", &python(false), json!({"part": "all", "commands": []}), json!({})));
    assert_eq!(result["commands"][0]["command"], "python3 -m unittest discover");
    failed(ask("test.run", &python(true), json!({"commands": []}), json!({})));
    failed(ask("test.regression", &python(true), json!({"commands": []}), json!({})));
}

// covers: P4
#[test]
fn sage_toml_names_commands_or_says_that_there_are_none() {
    let dir = python(true);
    let named = |lines: &[&str]| {
        let named = Some(lines.iter().map(|line| line.to_string()).collect());
        crate::perform(&Request { named, ..request("test.run", &dir, json!({"commands": []}), json!({})) })
    };
    assert_eq!(passed(named(&["true"]))["commands"][0]["command"], "true");
    let none = named(&[]).unwrap();
    assert_eq!((&none["passed"], &none["applies"]), (&json!(null), &json!(false)), "{none}");
    // What the step itself names is nearer.
    let own = request("test.run", &dir, json!({"commands": ["exit 4"]}), json!({}));
    failed(crate::perform(&Request { named: Some(vec!["true".into()]), ..own }));
}

// covers: P4
#[test]
fn no_tests_are_not_a_success() {
    let dir = project(&[("test_empty.py", "import unittest\n")]);
    let told = unknown(ask("test.run", &dir, json!({}), json!({})));
    assert!(told.contains("it found no tests to run"), "{told}");
    let outputs = [
        ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 3 ignored; 0 measured", 0),
        ("============ no tests ran in 0.01s ============", 5),
        ("============ 3 skipped in 0.01s ============", 0),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", 5),
        ("Ran 2 tests in 0.000s\n\nOK (skipped=2)", 0),
        ("No tests found, exiting with code 1", 1),
        ("No tests found, exiting with code 0", 0),
        ("No test files found, exiting with code 1", 1),
        ("Error: No test files found: \"test\"", 1),
        ("Tests:       3 skipped, 3 total", 0),
        ("# tests 0\n# pass 0\n# fail 0", 0),
        ("# tests 2\n# pass 0\n# fail 0\n# skipped 2", 0),
        ("  0 passing (2ms)", 0),
        ("?   \texample.com/x\t[no test files]", 0),
        ("ok  \texample.com/x\t0.003s [no tests to run]", 0),
        ("[INFO] No tests to run.", 0),
        ("make: Nothing to be done for 'test'.", 0),
        ("make: 'test' is up to date.", 0),
        ("> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s", 0),
        ("1 skipped in 0.02s", 0),
        ("Ran 1 test in 0.1s\n\nOK (expected failures=1)", 0),
        ("1..1\nok 1 adds # skip later", 0),
        ("2 examples, 0 failures, 2 pending", 0),
        ("# tests 1\n# pass 0\n# fail 0\n# skipped 0\n# todo 1", 0),
        ("# Subtest: /p/empty.test.js\nok 1 - /p/empty.test.js\n# tests 1\n# pass 1\n# fail 0", 0),
        ("✔ empty.test.js (35.1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0", 0),
    ];
    for (output, code) in outputs {
        let told = unknown(printing(output, code));
        assert!(told.contains("it found no tests to run"), "{output}: {told}");
    }
}

/// A test command that prints this and ends so.
fn printing(output: &str, code: i32) -> Result<Value, Trouble> {
    let dir = project(&[("out.txt", output)]);
    let command = format!("cat out.txt; exit {code}");
    ask("test.run", &dir, json!({"commands": [command]}), json!({}))
}

// covers: P4
#[test]
fn an_exit_code_of_0_beside_failures_is_not_believed() {
    let outputs = [
        "=== 1 failed, 3 passed in 0.12s ===",
        "Ran 3 tests in 0.1s\n\nFAILED (failures=1)",
        "test result: FAILED. 1 passed; 2 failed; 0 ignored",
        "Tests:       1 failed, 2 passed, 3 total",
        "  2 passing (5ms)\n  1 failing",
        "--- FAIL: TestTotal (0.00s)\nFAIL\texample.com/x\t0.003s",
        "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0",
        "make: [Makefile:2: test] Error 1 (ignored)",
        // The first of two is red.
        "# tests 2\n# pass 1\n# fail 1\n# tests 1\n# pass 1\n# fail 0",
        "=== 1 failed in 0.1s ===\n=== 3 passed in 0.1s ===",
        "Tests:  1 failed, 1 total\nTests:  1 passed, 1 total",
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 passed, 1 total",
        "src/gone.ts(3,5): error TS2322: no.\n# tests 1\n# pass 1\n# fail 0",
        "not ok 2 - adds up\n# tests 2\n# pass 2\n# fail 0",
        // Without rulers, dashes, or in other languages.
        "1 failed, 1 passed in 0.02s",
        "1..2\nok 1 adds\nnot ok 2 sums",
        "3 examples, 1 failure",
        "Tests: 3, Assertions: 3, Failures: 1.",
        "# tests 2\n# pass 1\n# fail 0\n# cancelled 1",
        // The last line counts, and another one says that something failed.
        "ok 1 - a\nt/b.t .. Dubious, test returned 1 (wstat 256, 0x100)\nFiles=2, Tests=1\nResult: FAIL",
        "ok  \texample.com/a\t0.003s\nFAIL\texample.com/b\t0.003s\nFAIL",
        "panic: test timed out after 1s\nFAIL\texample.com/b\t1.003s",
        "test result: ok. 1 passed; 0 failed; 0 ignored\nerror: test failed, to rerun pass `--test b`",
        "1..2\nok 1 adds\nBail out! no database",
        "1..3\nok 1 adds\nok 2 sums",
        "     Summary [   1.0s] 2 tests run: 1 passed, 1 timed out, 0 skipped",
        "Ran 3 tests containing 5 assertions.\n1 failures, 0 errors.",
        "=== 1 passed in 0.1s ===\nmake[1]: *** [Makefile:2: b] Error 1",
        "=== 1 passed in 0.1s ===\nnpm ERR! Test failed.  See above for more details.",
        "FAIL: sums\n=== 1 passed in 0.1s ===",
    ];
    for output in outputs {
        let told = unknown(printing(output, 0));
        assert!(told.contains("it ended with exit code 0, but"), "{output}: {told}");
        failed(printing(output, 1));
    }
    let webpack = json!({"commands": ["echo 'ERROR in ./src/a.js 1:2'"]});
    unknown(ask("build.verify", &project(&[]), webpack, json!({})));
    let build = json!({"commands": ["echo 'src/a.c:5:2: error: expected a thing'; true"]});
    unknown(ask("build.verify", &project(&[("src/a.c", "x\n")]), build, json!({})));
}

// covers: P4
#[test]
fn a_tool_that_is_missing_behind_another_one_is_not_a_failed_test() {
    let outputs = [
        ("/bin/sh: 1: pytest: not found\nmake: *** [Makefile:2: test] Error 127", 2),
        ("sh: 1: vitest: not found", 127),
        ("/usr/bin/python3: No module named pytest\nmake: *** [Makefile:2: test] Error 1", 2),
        ("npm error npx canceled due to missing packages and no YES option: [\"jest@30\"]", 1),
        ("sh: ./run-tests: Permission denied", 126),
    ];
    for (output, code) in outputs {
        let result = printing(output, code).unwrap();
        assert_eq!((&result["ran"], &result["passed"]), (&json!(false), &json!(null)), "{output}: {result}");
    }
}

// covers: P4
#[test]
fn a_missing_program_is_not_hidden_by_an_exit_code_of_0() {
    for command in
        ["cd . && frobnicate || true", "bash -c 'frobnicate; true'", "(frobnicate); echo '1 passed in 0.1s'"]
    {
        let told = unknown(ask("test.run", &project(&[]), json!({"commands": [command]}), json!({})));
        assert!(told.contains("but a program is missing: "), "{command}: {told}");
    }
    // Two processes may write to one pipe at the same time.
    let torn = "sh: 1: 1 passed in 0.1s\nfrobnicate: not found\n";
    assert!(super::signs::not_found("(frobnicate); echo 1 passed", torn).is_some());
    assert!(super::signs::not_found("make test", "user: not found\n").is_none());
    let told = unknown(ask("test.run", &project(&[]), json!({"commands": ["# only a comment"]}), json!({})));
    assert!(told.contains("not run: it is only a comment"), "{told}");
}

// covers: P4
#[test]
fn tests_that_pass_are_counted_over_all_runs() {
    let outputs = [
        ("2 passed, 1 warning in 0.02s", 2),
        ("=== 2 passed in 0.1s ===\n=== 3 passed, 1 skipped in 0.1s ===", 5),
        ("# tests 2\n# pass 2\n# fail 0\n# tests 3\n# pass 2\n# fail 0\n# skipped 1", 4),
        ("1..2\nok 1 adds\nok 2 sums", 2),
        ("3 examples, 0 failures", 3),
        ("OK (3 tests, 4 assertions)", 3),
        ("not ok 2 - later # TODO\n# tests 2\n# pass 1\n# fail 0\n# todo 1", 1),
    ];
    for (output, count) in outputs {
        passed(printing(output, 0));
        assert_eq!(counted(output), Some((count, 0)), "{output}");
    }
}

// covers: P4
#[test]
fn commands_that_changed_during_the_run_are_not_made() {
    let dir = python(true);
    let doubt = Some("[checks] changed".to_string());
    for named in [Some(vec!["true".to_string()]), Some(Vec::new()), None] {
        let request = request("test.run", &dir, json!({}), json!({}));
        assert_eq!(
            unknown(crate::perform(&Request { named, doubt: doubt.clone(), ..request })),
            "[checks] changed"
        );
    }
}

// covers: P4
#[test]
fn one_missing_program_does_not_hide_another_failure() {
    let params = json!({"commands": ["no-such-program-x", "exit 3"]});
    let (message, partial) = failed(ask("build.verify", &project(&[]), params, json!({})));
    assert!(message.contains("`exit 3` ended with exit code 3"), "{message}");
    assert!(
        message.contains("`no-such-program-x`: not run: `no-such-program-x` is not installed."),
        "{message}"
    );
    assert_eq!(partial["commands"][0]["exitCode"], json!(null));
    let mixed = json!({"commands": ["no-such-program-x", "true"]});
    let result = ask("build.verify", &project(&[]), mixed, json!({})).unwrap();
    assert_eq!((&result["ran"], &result["passed"]), (&json!(true), &json!(null)));
}

// covers: P4
#[test]
fn a_command_that_hangs_is_stopped_in_time_and_has_not_passed() {
    let started = std::time::Instant::now();
    let params = json!({"commands": ["echo begun; sleep 60"], "timeoutMs": 400});
    let result = ask("test.run", &project(&[]), params, json!({})).unwrap();
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(result["passed"], json!(null), "a verifier that died has refuted nothing");
    assert!(result["summary"].as_str().unwrap().contains("did not finish: it was stopped after"), "{result}");
    let command = &result["commands"][0];
    assert_eq!((&command["timedOut"], &command["tail"]), (&json!(true), &json!("begun")));
    let killed = json!({"commands": ["kill -9 $$"]});
    assert!(unknown(ask("test.run", &project(&[]), killed, json!({}))).contains("it was killed"));
    failed(ask("test.run", &project(&[]), json!({"commands": ["kill -SEGV $$"]}), json!({})));
}

// covers: P4
#[test]
fn wrong_params_say_what_would_be_right() {
    let refused =
        |params: Value| ask("build.verify", &project(&[]), params, json!({})).unwrap_err().to_string();
    assert!(refused(json!({"part": "middle"})).contains("`backend`, `frontend` or `all`"));
    assert!(refused(json!({"commands": {"a": 1}})).contains("a list of command lines"));
}

// covers: P4
#[test]
fn parts_are_chosen_by_folder() {
    let dir = project(&[
        ("go.mod", "module x\n"),
        ("web/package.json", "{\"scripts\": {\"build\": \"tsc\"}, \"dependencies\": {\"react\": \"1\"}}"),
    ]);
    let tree = Tree::read(dir.path()).unwrap();
    let lines = |part: &str| orders(&tree, &dir, "build", part);
    assert_eq!(lines("backend"), [":go build ./..."]);
    assert_eq!(lines("frontend"), ["web:npm run build"]);
    assert_eq!(lines("all"), [":go build ./...", "web:npm run build"]);
}

fn orders(tree: &Tree, dir: &TempDir, what: &str, part: &str) -> Vec<String> {
    let request = request("test.run", dir, json!({"part": part}), json!({}));
    let Chosen::Found(orders) = order::chosen(&request, what, tree).unwrap() else {
        panic!("they are looked up")
    };
    orders.into_iter().map(|order| format!("{}:{}", order.folder, order.line)).collect()
}

// covers: P4
#[test]
fn a_part_that_is_not_there_is_not_checked() {
    let backend = project(&[("go.mod", "module x\n"), ("a.go", "package x\n")]);
    let result = ask("build.verify", &backend, json!({"part": "frontend"}), json!({})).unwrap();
    assert_eq!((&result["passed"], &result["applies"]), (&json!(null), &json!(false)), "{result}");
    assert_eq!(result["summary"], "Nothing to run: the project has no frontend.");
    // One that is there and has no command is something else.
    let page = project(&[("go.mod", "module x\n"), ("a.go", "package x\n"), ("pages/index.html", "<p>")]);
    let tree = Tree::read(page.path()).unwrap();
    assert_eq!(orders(&tree, &page, "build", "frontend"), [":go build ./..."], "built with the whole");
    let bare = project(&[("pages/index.html", "<p>")]);
    let told = unknown(ask("build.verify", &bare, json!({"part": "frontend"}), json!({})));
    assert!(told.ends_with("Name it in sage.toml: [checks.frontend] build = \"<command>\"."), "{told}");
}

// covers: P4
#[test]
fn wrappers_run_beside_tools_unless_they_call_them() {
    let chosen = |files: &[(&str, &str)]| {
        let dir = project(files);
        orders(&Tree::read(dir.path()).unwrap(), &dir, "test", "all")
    };
    let cargo = ("Cargo.toml", "[package]\nname = \"x\"\n");
    // It may be the only one that knows of the browser tests.
    let beside = chosen(&[cargo, ("Makefile", "test:\n\t./browser.sh\n")]);
    assert_eq!(beside, [":cargo test", ":make test"]);
    let calls = chosen(&[cargo, ("Makefile", "test: unit\n\t./browser.sh\nunit:\n\tcargo test --locked\n")]);
    assert_eq!(calls, [":make test"]);
    // One that is not installed is stood in for by what it calls, and by nothing else.
    let missing = "#!/usr/bin/env no-such-shell-x\n";
    let script = chosen(&[cargo, ("test.sh", &format!("{missing}cargo test\n"))]);
    assert_eq!(script, [":./test.sh"], "only a program that is not there can be stood in for");
    let two = chosen(&[
        ("Makefile", "test:\n\t./test.sh\n"),
        ("test.sh", "#!/bin/sh\n"),
        ("web/package.json", "{\"scripts\": {\"test\": \"vitest\"}}"),
    ]);
    assert_eq!(two, [":make test", "web:npm test"]);
}

// covers: P4
#[test]
fn tests_without_a_command_are_not_forgotten() {
    let dir = project(&[
        ("Makefile", "other:\n\ttrue\n"),
        ("package.json", "{\"scripts\": {\"test\": \"echo \\\"Tests:  1 passed, 1 total\\\" && true\"}}"),
        ("spec/cart_spec.rb", ""),
        ("fixtures/test_x.py", ""),
    ]);
    let told = unknown(ask("test.run", &dir, json!({}), json!({})));
    assert!(told.contains("No command is known that runs the Ruby tests in `spec/cart_spec.rb`."), "{told}");
    // A page with tests of its own that nobody starts.
    let page =
        [("go.mod", "module x\n"), ("a_test.go", ""), ("web/package.json", "{}"), ("web/cart.test.ts", "")];
    let tree = Tree::read(project(&page).path()).unwrap();
    let go = Order { line: "go test ./...".into(), ..Order::default() };
    let told = uncovered::uncovered(&tree, std::slice::from_ref(&go), None);
    assert_eq!(told, ["No command is known that runs the JavaScript tests in `web/cart.test.ts`."]);
    let npm = Order { line: "npm test".into(), folder: "web".into(), ..Order::default() };
    assert_eq!(uncovered::uncovered(&tree, &[go, npm], None), Vec::<String>::new());
}

const BEFORE_S: u64 = 1_780_000_000;

/// At this time, in seconds since the epoch.
fn git(dir: &TempDir, at_s: u64, args: &[&str]) {
    let settings = ["-c", "user.name=u", "-c", "user.email=u@h", "-c", "init.defaultBranch=main"];
    let mut command = std::process::Command::new("git");
    command.args(settings).args(args).current_dir(dir.path());
    command.env("GIT_COMMITTER_DATE", format!("{at_s} +0000"));
    assert!(command.output().unwrap().status.success(), "git {args:?}");
}

// covers: R6
#[test]
fn only_the_tests_of_what_changed_are_run_again() {
    let steps = json!({"implementation/fix": {"filesChanged": ["shop/stock.py"]}});
    // The word of a step is not enough.
    failed(ask("test.regression", &python(true), json!({}), steps.clone()));
    let dir = python(true);
    git(&dir, BEFORE_S, &["init", "-q"]);
    git(&dir, BEFORE_S, &["add", "-A"]);
    git(&dir, BEFORE_S, &["commit", "-q", "-m", "x"]);
    // The cart is broken, but nothing of it changed.
    let result = passed(ask("test.regression", &dir, json!({}), steps.clone()));
    assert_eq!(result["commands"][0]["command"], "python3 -m unittest tests/test_stock.py");
    let summary = result["summary"].as_str().unwrap();
    assert!(summary.contains("1 test ran, 0 failed."), "{summary}");
    assert!(summary.contains("Chosen for the files that changed: `shop/stock.py`."), "{summary}");
    // It did, and the step does not say so.
    std::fs::write(dir.path().join("shop/cart.py"), "def total(a, b):\n    return a * b\n").unwrap();
    let (summary, _) = failed(ask("test.regression", &dir, json!({}), steps));
    assert!(
        summary.contains("Chosen for the files that changed: `shop/cart.py`, `shop/stock.py`."),
        "{summary}"
    );
}

// covers: R6
#[test]
fn a_regression_run_says_what_is_new_against_the_test_run() {
    let before = json!({"validation/tests": {"ran": true, "passed": false, "failures":
        [{"name": "tests.test_cart.CartTest.test_total", "detail": "", "evidence": []}]}});
    let (message, _) = failed(ask("test.regression", &python(true), json!({}), before.clone()));
    assert!(
        message.contains("Nothing fails that did not fail in the test step before (1 there)."),
        "{message}"
    );
    let params = json!({"commands": ["exit 1"]});
    let (message, _) = failed(ask("test.regression", &python(true), params, before));
    assert!(
        message.contains("New against the test step before: `exit 1` ended with exit code 1."),
        "{message}"
    );
}

/// How many tests ran, and how many of them failed.
fn counted(output: &str) -> Option<(usize, usize)> {
    failures::counts(output).map(|counts| (counts.ran, counts.failed))
}

fn read(output: &str) -> Vec<(String, String, Vec<String>)> {
    let files = ["src/lib.rs", "src/cart.test.ts", "src/a.ts", "pkg/cart_test.go", "tests/test_cart.py"];
    let dir = project(&files.map(|path| (path, "\n".repeat(40).leak() as &str)));
    let found = failures::read(output, dir.path(), "");
    found.into_iter().map(|failure| (failure.name, failure.detail, failure.evidence)).collect()
}

#[track_caller]
fn assert_read(output: &str, name: &str, detail: &str, place: &str) {
    let found = read(output);
    assert_eq!(found, [(name.to_string(), detail.to_string(), vec![place.to_string()])]);
}

// covers: P4
#[test]
fn failures_of_cargo_are_read() {
    let output = "running 2 tests\ntest a::ok ... ok\ntest a::bad ... FAILED\n\nfailures:\n\n---- a::bad stdout ----\n\n\
                  thread 'a::bad' (7) panicked at src/lib.rs:12:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n\
                  note: run with `RUST_BACKTRACE=1`\n\n\nfailures:\n    a::bad\n\n\
                  test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
    assert_read(output, "a::bad", "assertion `left == right` failed\n  left: 1\n right: 2", "src/lib.rs:12");
    assert_eq!(counted(output), Some((2, 1)));
    let compiler = "error[E0425]: cannot find value `x`\n --> src/lib.rs:3:5\n  |\n";
    assert_read(compiler, "error[E0425]: cannot find value `x`", "src/lib.rs:3:5", "src/lib.rs:3");
}

// covers: P4
#[test]
fn failures_of_pytest_are_read() {
    let output = "=== FAILURES ===\n____ TestCart.test_total ____\n\n    def test_total(self):\n>       assert 1 == 2\n\
                  E       assert 1 == 2\n\ntests/test_cart.py:9: AssertionError\n=== short test summary info ===\n\
                  FAILED tests/test_cart.py::TestCart::test_total - assert 1 == 2\n=== 1 failed, 3 passed in 0.12s ===\n";
    assert_read(output, "tests/test_cart.py::TestCart::test_total", "assert 1 == 2", "tests/test_cart.py:9");
    assert_eq!(counted(output), Some((4, 1)));
}

// covers: P4
#[test]
fn failures_of_jest_vitest_and_node_are_read() {
    let jest = "FAIL src/cart.test.ts\n  ● Cart › adds up\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n\n      \
                at Object.<anonymous> (src/cart.test.ts:5:17)\n\nTests:       1 failed, 2 passed, 3 total\n";
    assert_read(jest, "Cart › adds up", "expect(received).toBe(expected)\nExpected: 3", "src/cart.test.ts:5");
    assert_eq!(counted(jest), Some((3, 1)));
    let vitest = " FAIL  src/cart.test.ts > Cart > adds up\nAssertionError: expected 2 to be 3\n ❯ src/cart.test.ts:6:3\n\n      \
                  Tests  1 failed | 2 passed (3)\n";
    assert_read(
        vitest,
        "src/cart.test.ts > Cart > adds up",
        "AssertionError: expected 2 to be 3",
        "src/cart.test.ts:6",
    );
    assert_eq!(counted(vitest), Some((3, 1)));
    let tap = "not ok 2 - adds up\n  ---\n  location: 'src/cart.test.ts:7:1'\n  error: 'no'\n  ...\n# tests 2\n# fail 1\n";
    let found = read(tap);
    assert_eq!((found[0].0.as_str(), &found[0].2), ("adds up", &vec!["src/cart.test.ts:7".to_string()]));
    assert_eq!(counted(tap), Some((2, 1)));
}

// covers: P4
#[test]
fn failures_of_go_and_of_compilers_are_read() {
    let go = "--- FAIL: TestTotal (0.00s)\n    cart_test.go:12: got 1, want 3\nFAIL\nFAIL\texample.com/x/pkg\t0.003s\n";
    assert_read(go, "TestTotal", "cart_test.go:12: got 1, want 3", "pkg/cart_test.go:12");
    let tsc = "src/a.ts(3,5): error TS2322: Type 'string' is not a number.\n";
    assert_eq!(read(tsc)[0].2, ["src/a.ts:3"]);
    let gcc = "src/lib.rs:4:2: warning: unused\nsrc/lib.rs:5:2: error: expected ';'\n";
    assert_read(gcc, "src/lib.rs:5: expected ';'", "src/lib.rs:5:2: error: expected ';'", "src/lib.rs:5");
}

// covers: P4
#[test]
fn node_runs_for_real_where_it_is_installed() {
    let test = "import test from 'node:test';\nimport assert from 'node:assert';\ntest('adds up', () => {\n  \
                assert.strictEqual(1 + 1, 3);\n});\n";
    let manifest = "{\"type\": \"module\", \"scripts\": {\"test\": \"node --test\"}}";
    let dir = project(&[("package.json", manifest), ("cart.test.js", test)]);
    let result = ask("test.run", &dir, json!({}), json!({})).unwrap();
    if result["ran"] == false {
        assert_eq!(result["passed"], json!(null), "node may be missing, but may not pass: {result}");
        return;
    }
    let (_, partial) = failed(Ok(result));
    assert_eq!(partial["failures"][0]["name"], "adds up", "{partial}");
    let place = partial["failures"][0]["evidence"][0].as_str().unwrap();
    assert!(place.starts_with("cart.test.js:"), "{partial}");
}
