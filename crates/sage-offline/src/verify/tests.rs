use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::failures;
use super::*;
use crate::research::tests::project;

fn ask(operation: &str, dir: &TempDir, params: Value, steps: Value) -> Result<Value, Trouble> {
    let object = |value: Value| value.as_object().cloned().unwrap_or_else(Map::new);
    crate::perform(&Request {
        operation: operation.to_string(),
        project: dir.path().to_path_buf(),
        feature: "cart".to_string(),
        title: "cart".to_string(),
        params: object(params),
        steps: object(steps),
        ..Request::default()
    })
}

#[track_caller]
fn failed(result: Result<Value, Trouble>) -> (String, Value) {
    match result {
        Err(Trouble::Failed { message, partial }) => (message, partial),
        other => panic!("it should have failed: {other:?}"),
    }
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
    let none = ask("test.run", &project(&[]), json!({}), json!({})).unwrap();
    assert_eq!((&none["ran"], &none["passed"]), (&json!(false), &json!(null)));
    assert!(none["summary"].as_str().unwrap().starts_with("no test command is known"));
    for command in ["no-such-program-x", "sh -c no-such-program-x"] {
        let missing = ask("build.verify", &project(&[]), json!({"commands": [command]}), json!({})).unwrap();
        assert_eq!((&missing["ran"], &missing["passed"]), (&json!(false), &json!(null)), "{missing}");
        assert!(missing["summary"].as_str().unwrap().contains("not"), "{missing}");
    }
}

// covers: P4
#[test]
fn no_tests_are_not_a_success() {
    let dir = project(&[("test_empty.py", "import unittest\n")]);
    let result = ask("test.run", &dir, json!({}), json!({})).unwrap();
    assert_eq!(result["passed"], json!(null), "{result}");
    assert!(result["summary"].as_str().unwrap().contains("found no tests"), "{result}");
}

// covers: P4
#[test]
fn one_missing_program_does_not_hide_another_failure() {
    let params = json!({"commands": ["no-such-program-x", "exit 3"]});
    let (message, partial) = failed(ask("build.verify", &project(&[]), params, json!({})));
    assert!(message.contains("`exit 3` ended with exit code 3"), "{message}");
    assert!(
        message.contains("Not run: `no-such-program-x`: `no-such-program-x` is not installed."),
        "{message}"
    );
    assert_eq!(partial["commands"][0]["exitCode"], json!(null));
    let mixed = json!({"commands": ["no-such-program-x", "true"]});
    let result = ask("build.verify", &project(&[]), mixed, json!({})).unwrap();
    assert_eq!((&result["ran"], &result["passed"]), (&json!(true), &json!(null)));
}

// covers: P4
#[test]
fn a_command_that_hangs_is_stopped_in_time() {
    let started = std::time::Instant::now();
    let params = json!({"commands": ["echo begun; sleep 60"], "timeoutMs": 400});
    let (message, partial) = failed(ask("test.run", &project(&[]), params, json!({})));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(message.contains("was stopped after"), "{message}");
    assert_eq!(
        (&partial["commands"][0]["timedOut"], &partial["commands"][0]["tail"]),
        (&json!(true), &json!("begun"))
    );
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
    let known = research::commands(&tree);
    let lines = |part: &str| {
        let params = json!({"part": part}).as_object().cloned().unwrap();
        let request = Request { project: dir.path().to_path_buf(), params, ..Request::default() };
        let orders = order::chosen(&request, "build", &known.build).unwrap();
        orders.into_iter().map(|order| format!("{}:{}", order.folder, order.line)).collect::<Vec<_>>()
    };
    assert_eq!(lines("backend"), [":go build ./..."]);
    assert_eq!(lines("frontend"), ["web:npm run build"]);
    assert_eq!(lines("all"), [":go build ./...", "web:npm run build"]);
}

// covers: R6
#[test]
fn only_the_tests_of_what_changed_are_run_again() {
    let steps = json!({"implementation/fix": {"filesChanged": ["shop/stock.py"]}});
    // The cart is broken, but nothing of it changed.
    let result = ask("test.regression", &python(true), json!({}), steps).unwrap();
    assert_eq!(result["commands"][0]["command"], "python3 -m unittest tests/test_stock.py");
    let summary = result["summary"].as_str().unwrap();
    assert!(summary.contains("1 test ran, 0 failed."), "{summary}");
    assert!(
        summary.contains("Chosen for the files that steps before changed: `shop/stock.py`."),
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
    assert_eq!(failures::counts(output), Some(failures::Counts { ran: 2, failed: 1 }));
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
    assert_eq!(failures::counts(output), Some(failures::Counts { ran: 4, failed: 1 }));
}

// covers: P4
#[test]
fn failures_of_jest_vitest_and_node_are_read() {
    let jest = "FAIL src/cart.test.ts\n  ● Cart › adds up\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n\n      \
                at Object.<anonymous> (src/cart.test.ts:5:17)\n\nTests:       1 failed, 2 passed, 3 total\n";
    assert_read(jest, "Cart › adds up", "expect(received).toBe(expected)\nExpected: 3", "src/cart.test.ts:5");
    assert_eq!(failures::counts(jest), Some(failures::Counts { ran: 3, failed: 1 }));
    let vitest = " FAIL  src/cart.test.ts > Cart > adds up\nAssertionError: expected 2 to be 3\n ❯ src/cart.test.ts:6:3\n\n      \
                  Tests  1 failed | 2 passed (3)\n";
    assert_read(
        vitest,
        "src/cart.test.ts > Cart > adds up",
        "AssertionError: expected 2 to be 3",
        "src/cart.test.ts:6",
    );
    assert_eq!(failures::counts(vitest), Some(failures::Counts { ran: 3, failed: 1 }));
    let tap = "not ok 2 - adds up\n  ---\n  location: 'src/cart.test.ts:7:1'\n  error: 'no'\n  ...\n# tests 2\n# fail 1\n";
    let found = read(tap);
    assert_eq!((found[0].0.as_str(), &found[0].2), ("adds up", &vec!["src/cart.test.ts:7".to_string()]));
    assert_eq!(failures::counts(tap), Some(failures::Counts { ran: 2, failed: 1 }));
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
    match ask("test.run", &dir, json!({}), json!({})) {
        Ok(result) => {
            assert_eq!(result["ran"], json!(false), "node may be missing, but may not pass: {result}")
        }
        other => {
            let (_, partial) = failed(other);
            assert_eq!(partial["failures"][0]["name"], "adds up", "{partial}");
            let place = partial["failures"][0]["evidence"][0].as_str().unwrap();
            assert!(place.starts_with("cart.test.js:"), "{partial}");
        }
    }
}
