//! Outputs of real tools, recorded as they came, and the line that a reader needs of each.

use super::Stream::{self, Stderr, Stdout};
use super::headline;

type Recorded = (&'static str, &'static str, Option<(Stream, &'static str)>);

const RECORDED: &[Recorded] = &[
    ("bash-trace", include_str!("recorded/bash-trace.txt"), Some((Stderr, "+ false"))),
    (
        "c-assert",
        include_str!("recorded/c-assert.txt"),
        Some((Stderr, "assert: assert.c:2: main: Assertion `total == 3' failed.")),
    ),
    (
        "cargo-build",
        include_str!("recorded/cargo-build.txt"),
        Some((
            Stderr,
            "error[E0599]: no method named `push` found for type `i64` in the current scope (src/lib.rs:4:9)",
        )),
    ),
    (
        "cargo-manifest",
        include_str!("recorded/cargo-manifest.txt"),
        Some((Stderr, "error: could not find `Cargo.toml` in `/shop` or any parent directory")),
    ),
    (
        "cargo-nextest",
        include_str!("recorded/cargo-nextest.txt"),
        Some((
            Stderr,
            "tests::empty: assertion `left == right` failed: no prices (left: -1, right: 0), src/lib.rs:11:9",
        )),
    ),
    (
        "cargo-panic",
        include_str!("recorded/cargo-panic.txt"),
        Some((
            Stderr,
            "called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }, src/main.rs:3:55",
        )),
    ),
    (
        "cargo-test",
        include_str!("recorded/cargo-test.txt"),
        Some((
            Stdout,
            "tests::empty: assertion `left == right` failed: no prices (left: -1, right: 0), src/lib.rs:11:9",
        )),
    ),
    (
        "clang",
        include_str!("recorded/clang.txt"),
        Some((Stderr, "shop.c:5:24: error: use of undeclared identifier 'cuont'; did you mean 'count'?")),
    ),
    (
        "curl",
        include_str!("recorded/curl.txt"),
        Some((
            Stderr,
            "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server",
        )),
    ),
    (
        "gcc-link",
        include_str!("recorded/gcc-link.txt"),
        Some((Stderr, "link.c:(.text+0x5): undefined reference to `missing'")),
    ),
    (
        "gcc",
        include_str!("recorded/gcc.txt"),
        Some((
            Stderr,
            "shop.c:5:24: error: ‘cuont’ undeclared (first use in this function); did you mean ‘count’?",
        )),
    ),
    (
        "git-warning",
        include_str!("recorded/git-warning.txt"),
        Some((Stderr, "fatal: not a git repository (or any of the parent directories): .git")),
    ),
    (
        "git",
        include_str!("recorded/git.txt"),
        Some((Stderr, "fatal: not a git repository (or any of the parent directories): .git")),
    ),
    (
        "go-build",
        include_str!("recorded/go-build.txt"),
        Some((Stderr, "./main.go:6:2: x declared but not used")),
    ),
    (
        "go-panic",
        include_str!("recorded/go-panic.txt"),
        Some((Stderr, "panic: assignment to entry in nil map")),
    ),
    (
        "go-test-one",
        include_str!("recorded/go-test-one.txt"),
        Some((Stdout, "TestTwo: shop_test.go:7: Total = 2, want 3")),
    ),
    (
        "go-test",
        include_str!("recorded/go-test.txt"),
        Some((Stdout, "TestTwo: shop_test.go:7: Total = 2, want 3")),
    ),
    (
        "java-crash",
        include_str!("recorded/java-crash.txt"),
        Some((
            Stderr,
            "Exception in thread \"main\" java.lang.IllegalStateException: bad price; caused by java.lang.NumberFormatException: For input string: \"abc\"",
        )),
    ),
    ("javac", include_str!("recorded/javac.txt"), Some((Stderr, "Shop.java:4: error: ';' expected"))),
    ("jest", include_str!("recorded/jest.txt"), Some((Stderr, "adds two prices: expected 3, received 2"))),
    (
        "make-gcc",
        include_str!("recorded/make-gcc.txt"),
        Some((
            Stderr,
            "shop.c:5:24: error: ‘cuont’ undeclared (first use in this function); did you mean ‘count’?",
        )),
    ),
    (
        "make-none",
        include_str!("recorded/make-none.txt"),
        Some((Stderr, "make: *** No rule to make target 'build'.  Stop.")),
    ),
    (
        "mocha",
        include_str!("recorded/mocha.txt"),
        Some((Stdout, "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 2 !== 3")),
    ),
    (
        "node-crash",
        include_str!("recorded/node-crash.txt"),
        Some((Stderr, "Error: ENOENT: no such file or directory, open 'orders.json'")),
    ),
    (
        "node-missing",
        include_str!("recorded/node-missing.txt"),
        Some((Stderr, "Error: Cannot find module '/shop/nosuch.js'")),
    ),
    (
        "node-reject",
        include_str!("recorded/node-reject.txt"),
        Some((Stderr, "Error: connection refused by localhost:5432")),
    ),
    (
        "node-syntax",
        include_str!("recorded/node-syntax.txt"),
        Some((Stderr, "SyntaxError: Unexpected number")),
    ),
    (
        "node-test-spec",
        include_str!("recorded/node-test-spec.txt"),
        Some((Stdout, "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 2 !== 3")),
    ),
    (
        "node-test",
        include_str!("recorded/node-test.txt"),
        Some((Stdout, "adds: Expected values to be strictly equal: 2 !== 3")),
    ),
    (
        "node-type",
        include_str!("recorded/node-type.txt"),
        Some((Stderr, "TypeError: Cannot read properties of null (reading 'amount')")),
    ),
    (
        "npm-jest",
        include_str!("recorded/npm-jest.txt"),
        Some((Stderr, "adds two prices: expected 3, received 2")),
    ),
    ("perl", include_str!("recorded/perl.txt"), Some((Stderr, "no such order"))),
    (
        "progress",
        include_str!("recorded/progress.txt"),
        Some((Stderr, "error: checksum mismatch for shop-1.2.tar.gz")),
    ),
    (
        "pytest-collect",
        include_str!("recorded/pytest-collect.txt"),
        Some((Stdout, "test_collect.py: ModuleNotFoundError: No module named 'nothing_like_this'")),
    ),
    (
        "pytest-nothing",
        include_str!("recorded/pytest-nothing.txt"),
        Some((Stderr, "ERROR: file or directory not found: missing_dir")),
    ),
    (
        "pytest-quiet",
        include_str!("recorded/pytest-quiet.txt"),
        Some((Stdout, "test_plain.py::test_total: assert 2 == 3")),
    ),
    (
        "pytest",
        include_str!("recorded/pytest.txt"),
        Some((Stdout, "test_plain.py::test_total: assert 2 == 3")),
    ),
    (
        "python-chained",
        include_str!("recorded/python-chained.txt"),
        Some((Stderr, "RuntimeError: no setting called 'b'")),
    ),
    (
        "python-crash",
        include_str!("recorded/python-crash.txt"),
        Some((Stderr, "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'")),
    ),
    (
        "python-exit",
        include_str!("recorded/python-exit.txt"),
        Some((Stderr, "config.yaml: missing key `port`")),
    ),
    (
        "python-import",
        include_str!("recorded/python-import.txt"),
        Some((Stderr, "ModuleNotFoundError: No module named 'does_not_exist'")),
    ),
    (
        "python-syntax",
        include_str!("recorded/python-syntax.txt"),
        Some((Stderr, "SyntaxError: invalid syntax (/shop/syntax.py, line 1)")),
    ),
    (
        "sh-file",
        include_str!("recorded/sh-file.txt"),
        Some((Stderr, "cat: nosuch.txt: No such file or directory")),
    ),
    ("sh-missing", include_str!("recorded/sh-missing.txt"), Some((Stderr, "sh: 1: kubctl: not found"))),
    ("sh-nothing", include_str!("recorded/sh-nothing.txt"), None),
    ("sh-quiet", include_str!("recorded/sh-quiet.txt"), Some((Stdout, "3 tests, 1 failed"))),
    ("sh-set", include_str!("recorded/sh-set.txt"), Some((Stderr, "sh: 1: TARGET: parameter not set"))),
    (
        "sh-syntax",
        include_str!("recorded/sh-syntax.txt"),
        Some((Stderr, "sh: 1: Syntax error: end of file unexpected (expecting \"fi\")")),
    ),
    (
        "sh-two",
        include_str!("recorded/sh-two.txt"),
        Some((Stderr, "rm: cannot remove '/nosuch/x': No such file or directory")),
    ),
    (
        "tsc",
        include_str!("recorded/tsc.txt"),
        Some((Stdout, "a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.")),
    ),
    (
        "unittest",
        include_str!("recorded/unittest.txt"),
        Some((Stderr, "test_empty: AssertionError: -1 != 0")),
    ),
    (
        "vitest",
        include_str!("recorded/vitest.txt"),
        Some((Stderr, "a.test.mjs > adds: AssertionError: expected 2 to be 3")),
    ),
];

fn streams(recorded: &str) -> (&str, &str) {
    let (stdout, stderr) = recorded.split_once("--- stderr\n").unwrap();
    (stdout.strip_prefix("--- stdout\n").unwrap(), stderr)
}

fn found(stdout: &str, stderr: &str) -> Option<(Stream, String)> {
    headline(stdout, stderr).map(|found| (found.stream, found.text))
}

// covers: R8
#[test]
fn each_recorded_output_gives_the_line_that_says_what_is_wrong() {
    for (name, recorded, expected) in RECORDED {
        let (stdout, stderr) = streams(recorded);
        let expected = expected.map(|(stream, text)| (stream, text.to_string()));
        assert_eq!(found(stdout, stderr), expected, "{name}");
    }
}

#[test]
fn every_recording_has_its_line() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/headline/recorded");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut names: Vec<String> = RECORDED.iter().map(|(name, ..)| format!("{name}.txt")).collect();
    names.sort();
    assert_eq!(files, names);
}

/// Windows line ends, colours, progress bars, an old panic, and output of no tool at all.
// covers: R8
#[test]
fn outputs_that_were_not_recorded() {
    let table = [
        ("", "Traceback (most recent call last):\r\n  File \"x\"\r\nKeyError: 'b'\r\n", "KeyError: 'b'"),
        (
            "",
            "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: no such command: `buidl`\n",
            "error: no such command: `buidl`",
        ),
        ("10%\r50%\rconnection lost\r\n", "", "connection lost"),
        ("", "thread 'main' panicked at 'no price', src/main.rs:3:5\n", "no price, src/main.rs:3:5"),
        (
            "",
            "usage: tool [-h] file\ntool: error: the following arguments are required: file\n",
            "tool: error: the following arguments are required: file",
        ),
        ("done: 3 files\n", "warning: cache is old\n", "done: 3 files"),
        ("", "warning: cache is old\n", "warning: cache is old"),
        ("", "make: *** [Makefile:4: all] Error 2\n", "make: *** [Makefile:4: all] Error 2"),
        ("x\n", "   ^^^\n  |\n", "x"),
        (
            "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/empty (0.00s)\n        a_test.go:7: want 3\n",
            "",
            "TestA/empty: a_test.go:7: want 3",
        ),
    ];
    for (stdout, stderr, expected) in table {
        assert_eq!(headline(stdout, stderr).unwrap().text, expected, "{stdout:?} {stderr:?}");
    }
    assert_eq!(headline(" \n\n", "\n"), None);
    assert!(headline("", &"ä".repeat(5_000)).unwrap().text.chars().count() <= 241);
}

proptest::proptest! {
    /// Whatever a program prints, there is a line if it said anything, it is one line, and nothing panics.
    #[test]
    fn any_output_gives_at_most_one_line(stdout in "(?s).{0,300}", stderr in "(?s).{0,300}") {
        if let Some(found) = headline(&stdout, &stderr) {
            proptest::prop_assert!(!found.text.contains('\n'));
        }
    }

    /// The same of lines that look like those of tools.
    #[test]
    fn shuffled_lines_of_tools_do_no_harm(picks in proptest::collection::vec(0usize..2_000, 0..30)) {
        let all: Vec<&str> = RECORDED.iter().flat_map(|(_, text, _)| text.lines()).collect();
        let text: String = picks.iter().map(|pick| format!("{}\n", all[pick % all.len()])).collect();
        let found = headline(&text, &text);
        proptest::prop_assert_eq!(found.is_some(), text.lines().any(|line| !line.trim().is_empty()));
    }
}
