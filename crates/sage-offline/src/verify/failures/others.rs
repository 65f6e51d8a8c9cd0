//! The last lines of runners that say how many tests ran, where nothing else is read of them: C and C++, Ruby's
//! minitest, Elixir, Swift, Deno, Dart, .NET, Perl, Lua, Zig, Haskell, R, Scala, Bazel, and what many scripts print.

use super::{Counts, number_before};

pub fn counts(lines: &[&str]) -> Option<Counts> {
    let mut found: Vec<Counts> =
        lines.iter().filter_map(|line| READERS.iter().find_map(|read| read(plain(line)))).collect();
    found.extend(largest(lines, xctest));
    found.extend(largest(lines, karma));
    found.extend(largest(lines, sbt));
    found.extend(gtest(lines));
    found.into_iter().reduce(Counts::plus)
}

/// One line for each test: `PASS: adds`, `[PASS] adds`, `ok - adds`, `adds ... ok`.
pub fn ok_lines(lines: &[&str]) -> Option<Counts> {
    let count = |line: &&str| {
        let line = line.trim();
        let named =
            |starts: &[&str]| starts.iter().any(|start| line.len() > start.len() && line.starts_with(start));
        let ends = |ends: &[&str]| ends.iter().any(|end| line.ends_with(end));
        let numbered = |start: &str| {
            line.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        if named(&["FAIL: ", "[FAIL] ", "FAILED: ", "not ok - "])
            || numbered("not ok ")
            || ends(&[" ... FAIL", " ... FAILED", " ... not ok"])
        {
            return Some(Counts::new(1, 1, 0));
        }
        let passed = named(&["PASS: ", "[PASS] ", "PASSED: ", "ok - "])
            || numbered("ok ")
            || ends(&[" ... ok", " ... PASS", " ... PASSED"]);
        let aside = line.to_lowercase().contains("# skip");
        passed.then(|| if aside { Counts::new(0, 0, 1) } else { Counts::new(1, 0, 0) })
    };
    lines.iter().filter_map(count).reduce(Counts::plus)
}

/// Without what build tools put before it.
fn plain(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("[info] ").or_else(|| line.strip_prefix("[error] ")).unwrap_or(line).trim()
}

type Read = fn(&str) -> Option<Counts>;

const READERS: &[Read] = &[
    listed,
    deno,
    ctest,
    cases,
    dotnet,
    dart,
    all_passed,
    prove,
    busted,
    meson,
    automake,
    testthat,
    bazel,
    check,
    parentheses,
    alcotest,
    clojure,
    passed,
];

fn counted(ran: usize, failed: usize, aside: usize) -> Option<Counts> {
    Some(Counts::new(ran.saturating_sub(aside).max(failed), failed, aside))
}

/// The number before the first of these words that has one.
fn before(text: &str, words: &[&str]) -> usize {
    words.iter().find_map(|word| number_before(text, word)).unwrap_or(0)
}

/// The number after `name`, up to the next other character.
fn after(text: &str, name: &str) -> Option<usize> {
    let rest = text.split_once(name)?.1.trim_start();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// minitest `3 runs, 5 assertions, 0 failures, 0 errors, 0 skips`; ExUnit `1 doctest, 3 tests, 0 failures`; jasmine
/// `3 specs, 0 failures`; Unity `3 Tests 0 Failures 0 Ignored`; gotestsum `DONE 3 tests, 1 failure in 0.1s`.
fn listed(line: &str) -> Option<Counts> {
    // gotestsum tells of failures only if there are any.
    let line = match line.strip_prefix("DONE ") {
        Some(rest) if !rest.contains(" failure") => format!("{rest}, 0 failures"),
        Some(rest) => rest.to_string(),
        None => line.to_lowercase(),
    };
    line.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    let ran = ["runs", "run", "specs", "spec", "tests", "test"]
        .iter()
        .find_map(|word| number_before(&line, word))?;
    ["failures", "failure"].iter().find_map(|word| number_before(&line, word))?;
    let failed = before(&line, &["failures", "failure"]) + before(&line, &["errors", "error", "invalid"]);
    let aside = before(&line, &["skips", "skip", "skipped"])
        + before(&line, &["pendings", "pending"])
        + before(&line, &["omissions", "excluded", "ignored"]);
    counted(ran + before(&line, &["doctests", "doctest"]), failed, aside)
}

/// `ok | 3 passed | 0 failed (5ms)`
fn deno(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "))?;
    let failed = before(rest, &["failed"]);
    plus_aside(number_before(rest, "passed")? + failed, failed, before(rest, &["ignored"]))
}

/// Where those that were left aside are not among those that ran.
fn plus_aside(ran: usize, failed: usize, aside: usize) -> Option<Counts> {
    Some(Counts::new(ran, failed, aside))
}

/// `67% tests passed, 1 tests failed out of 3`
fn ctest(line: &str) -> Option<Counts> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    counted(after(rest, "out of ")?, rest.split(' ').next()?.parse().ok()?, 0)
}

/// Catch2 and doctest: `test cases: 3 | 2 passed | 1 failed`; `All tests passed (5 assertions in 3 test cases)`.
fn cases(line: &str) -> Option<Counts> {
    if let Some((_, rest)) = line.split_once("All tests passed (") {
        return counted(number_before(rest, "test")?, 0, 0);
    }
    let (_, rest) = line.split_once("test cases:").filter(|(_, rest)| rest.contains('|'))?;
    counted(after(rest, "")?, before(rest, &["failed"]), before(rest, &["skipped"]))
}

/// `Passed!  - Failed: 0, Passed: 3, Skipped: 0, Total: 3` and `Test summary: total: 3, failed: 0, succeeded: 3`.
fn dotnet(line: &str) -> Option<Counts> {
    let line = line.to_lowercase();
    let old = ["passed!  - ", "failed!  - ", "skipped! - "].iter().any(|start| line.starts_with(start));
    (old || line.starts_with("test summary: total: ")).then_some(())?;
    counted(
        after(&line, "total: ")?,
        after(&line, "failed: ").unwrap_or(0),
        after(&line, "skipped: ").unwrap_or(0),
    )
}

/// `00:01 +3: All tests passed!` and `00:01 +2 ~1 -1: Some tests failed.`
fn dart(line: &str) -> Option<Counts> {
    let ends = line.ends_with("All tests passed!") || line.ends_with("Some tests failed.");
    let (facts, _) = line.split_once(": ").filter(|_| ends)?;
    let of = |sign: char| facts.split(' ').find_map(|part| part.strip_prefix(sign)?.parse::<usize>().ok());
    let failed = of('-').unwrap_or(0);
    plus_aside(of('+')? + failed, failed, of('~').unwrap_or(0))
}

/// tasty, Zig and EUnit: `All 3 tests passed`; tasty: `1 out of 3 tests failed`; Zig: `2 passed; 1 skipped; 0 failed.`;
/// cabal: `1 of 1 test suites (3 of 3 test cases) passed.`; Swift: `Test run with 3 tests passed after 0.1 seconds`.
fn all_passed(line: &str) -> Option<Counts> {
    if let Some(rest) = line.strip_prefix("All ") {
        let count = rest.split(' ').next()?.parse().ok()?;
        return rest.contains(" passed").then_some(Counts::new(count, 0, 0));
    }
    if let Some((failed, rest)) =
        line.split_once(" out of ").filter(|(_, rest)| rest.contains(" tests failed"))
    {
        return counted(rest.split(' ').next()?.parse().ok()?, failed.parse().ok()?, 0);
    }
    if let Some((_, rest)) = line.split_once("Test run with ") {
        let ran = rest.split(' ').next()?.parse().ok()?;
        return counted(ran, usize::from(ran > 0 && rest.contains(" failed after")), 0);
    }
    if let Some((_, rest)) = line.split_once(" test suites (") {
        let passed = rest.split(' ').next()?.parse::<usize>().ok()?;
        let all = after(rest, " of ")?;
        return counted(all, all.saturating_sub(passed), 0);
    }
    let zig = line.contains(" passed; ") && line.ends_with(" failed.");
    let of = |word: &str| before(line, &[word]);
    zig.then(|| Counts::new(of("passed") + of("failed"), of("failed"), of("skipped")))
}

/// `Files=2, Tests=3,  0 wallclock secs`
fn prove(line: &str) -> Option<Counts> {
    let tests = line.starts_with("Files=").then(|| after(line, "Tests=")).flatten()?;
    counted(tests, 0, 0)
}

/// `3 successes / 0 failures / 0 errors / 0 pending : 0.001 seconds`
fn busted(line: &str) -> Option<Counts> {
    let good = number_before(line, "successes").or_else(|| number_before(line, "success"));
    let good = good.filter(|_| line.contains(" / "))?;
    let failed = before(line, &["failures", "failure"]) + before(line, &["errors", "error"]);
    plus_aside(good + failed, failed, before(line, &["pending"]))
}

/// `Ok:                 3` and `Fail:               0`
fn meson(line: &str) -> Option<Counts> {
    let number = |start: &str| line.strip_prefix(start)?.strip_prefix("  ")?.trim().parse::<usize>().ok();
    let passed = number("Ok:").map(|ran| Counts::new(ran, 0, 0));
    let failed = ["Fail:", "Timeout:", "Unexpected Pass:"].iter().find_map(|word| number(word));
    let aside = ["Skipped:", "Expected Fail:"].iter().find_map(|word| number(word));
    passed.or(failed.map(|n| Counts::new(n, n, 0))).or(aside.map(|n| Counts::new(0, 0, n)))
}

/// `# PASS:  3`, `# FAIL:  0`, `# ERROR: 0`
fn automake(line: &str) -> Option<Counts> {
    let number = |start: &str| line.strip_prefix(start)?.trim().parse::<usize>().ok();
    let failed = ["# FAIL:", "# ERROR:", "# XPASS:"].iter().find_map(|word| number(word));
    let aside = ["# SKIP:", "# XFAIL:"].iter().find_map(|word| number(word));
    let passed = number("# PASS:").map(|ran| Counts::new(ran, 0, 0));
    passed.or(failed.map(|n| Counts::new(n, n, 0))).or(aside.map(|n| Counts::new(0, 0, n)))
}

/// `[ FAIL 0 | WARN 0 | SKIP 0 | PASS 3 ]`
fn testthat(line: &str) -> Option<Counts> {
    line.starts_with("[ FAIL ").then_some(())?;
    let failed = after(line, "FAIL ")?;
    plus_aside(after(line, "PASS ")? + failed, failed, after(line, "SKIP ").unwrap_or(0))
}

/// `Passed: Total 3, Failed 0, Errors 0, Passed 3` and `Tests: succeeded 3, failed 0, canceled 0`.
fn sbt(line: &str) -> Option<Counts> {
    if line.starts_with("Tests: succeeded ") {
        let failed = after(line, "failed ").unwrap_or(0);
        return counted(after(line, "succeeded ")? + failed, failed, 0);
    }
    let total = line.starts_with("Passed: Total ") || line.starts_with("Failed: Total ");
    let failed = after(line, "Failed ").unwrap_or(0) + after(line, "Errors ").unwrap_or(0);
    total.then(|| counted(after(line, "Passed ").unwrap_or(0) + failed, failed, 0)).flatten()
}

/// `Executed 1 out of 3 tests: 3 tests pass.`, `Executed 1 out of 2 tests: 1 test passes and 1 fails locally.`
fn bazel(line: &str) -> Option<Counts> {
    let (_, rest) = line.strip_prefix("Executed ")?.split_once(" out of ")?;
    let (all, said) = rest.split_once(' ')?;
    said.contains(" pass").then_some(())?;
    let failed = before(said, &["fails", "fail"]);
    counted(all.parse().ok()?, failed, 0)
}

/// Check: `100%: Checks: 3, Failures: 0, Errors: 0`; Criterion: `Tested: 3 | Passing: 3 | Failing: 0`.
fn check(line: &str) -> Option<Counts> {
    if line.contains("Tested: ") {
        let failed = after(line, "Failing: ")? + after(line, "Crashing: ").unwrap_or(0);
        return counted(after(line, "Tested: ")?, failed, 0);
    }
    let failed = after(line, "Failures: ")? + after(line, "Errors: ")?;
    counted(after(line, "Checks: ")?, failed, 0)
}

/// CppUnit and CppUTest: `OK (3 tests, 3 ran, 5 checks)`; PHPUnit has assertions there.
fn parentheses(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("OK (").filter(|rest| !rest.contains(" assertion"))?;
    counted(number_before(rest, "tests").or_else(|| number_before(rest, "test"))?, 0, 0)
}

/// `Test Successful in 0.001s. 3 tests run.`
fn alcotest(line: &str) -> Option<Counts> {
    let said = line.ends_with(" tests run.") || line.ends_with(" test run.");
    let ran = said.then(|| before(line, &["tests", "test"]))?;
    counted(ran, before(line, &["failures", "failure"]).min(ran), 0)
}

/// `1 failures, 0 errors.`, below `Ran 3 tests containing 5 assertions.`
fn clojure(line: &str) -> Option<Counts> {
    let (failures, errors) = line.strip_suffix(" errors.")?.split_once(" failures, ")?;
    plus_aside(0, failures.parse::<usize>().ok()? + errors.parse::<usize>().ok()?, 0)
}

/// ava: `3 tests passed`; Playwright: `3 passed (1.2s)`; scripts: `3/4 tests passed`.
fn passed(line: &str) -> Option<Counts> {
    let line = line.split(" (").next()?.trim_end_matches(['.', '!']);
    let (number, rest) = line.split_once(' ')?;
    let rest = rest.strip_prefix("tests ").or_else(|| rest.strip_prefix("test ")).unwrap_or(rest);
    if let Some((good, all)) = number.split_once('/') {
        let (good, all): (usize, usize) = (good.parse().ok()?, all.parse().ok()?);
        return (rest == "passed").then(|| counted(all, all.saturating_sub(good), 0)).flatten();
    }
    let number: usize = number.parse().ok()?;
    match rest {
        "passed" | "flaky" => Some(Counts::new(number, 0, 0)),
        "failed" | "interrupted" | "did not run" => Some(Counts::new(number, number, 0)),
        "skipped" => Some(Counts::new(0, 0, number)),
        _ => None,
    }
}

/// Said for every suite and once for all of them.
fn largest(lines: &[&str], read: Read) -> Option<Counts> {
    lines.iter().filter_map(|line| read(plain(line))).max_by_key(|counts| (counts.ran, counts.failed))
}

/// `Executed 3 tests, with 1 failure (0 unexpected) in 0.005 seconds`
fn xctest(line: &str) -> Option<Counts> {
    let (ran, rest) = line.strip_prefix("Executed ")?.split_once(" test")?;
    rest.contains(", with ").then_some(())?;
    let skipped = if rest.contains("skipped") { before(rest, &["tests", "test"]) } else { 0 };
    counted(ran.parse().ok()?, before(rest, &["failures", "failure"]), skipped)
}

/// `Chrome Headless: Executed 3 of 3 (1 FAILED) (0.01 secs)`
fn karma(line: &str) -> Option<Counts> {
    let (_, rest) = line.split_once(": Executed ")?;
    counted(rest.split(' ').next()?.parse().ok()?, number_before(rest, "FAILED").unwrap_or(0), 0)
}

/// `[==========] 3 tests from 1 test suite ran.` and `[  FAILED  ] 1 test, listed below:`
fn gtest(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in lines.iter().map(|line| line.trim()) {
        let number = |start: &str| line.strip_prefix(start)?.split(' ').next()?.parse::<usize>().ok();
        if let Some(ran) = number("[==========] ").filter(|_| line.contains(" ran.")) {
            found = Some(Counts::new(ran, 0, 0).plus(found.unwrap_or_default()));
        }
        let Some(found) = found.as_mut().filter(|_| line.ends_with("listed below:")) else { continue };
        found.failed += number("[  FAILED  ] ").unwrap_or(0);
        let aside = number("[  SKIPPED ] ").unwrap_or(0);
        found.ran = found.ran.saturating_sub(aside);
        found.aside += aside;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::counts;

    // covers: P4
    #[test]
    fn what_runners_of_other_languages_say_is_counted() {
        let outputs = [
            ("3 runs, 5 assertions, 1 failures, 0 errors, 0 skips", 3, 1),
            ("0 runs, 0 assertions, 0 failures, 0 errors, 0 skips", 0, 0),
            ("3 tests, 3 assertions, 0 failures, 0 errors, 1 pendings, 0 omissions, 0 notifications", 2, 0),
            ("1 doctest, 3 tests, 1 failure", 4, 1),
            ("5 tests, 0 failures, 1 skipped", 4, 0),
            ("3 specs, 0 failures", 3, 0),
            ("3 Tests 1 Failures 0 Ignored", 3, 1),
            ("DONE 3 tests in 0.100s", 3, 0),
            ("DONE 3 tests, 1 failure in 0.100s", 3, 1),
            ("ok | 3 passed | 0 failed (5ms)", 3, 0),
            ("ok | 0 passed | 0 failed (0ms)", 0, 0),
            ("FAILED | 2 passed | 1 failed (5ms)", 3, 1),
            ("67% tests passed, 1 tests failed out of 3", 3, 1),
            ("100% tests passed, 0 tests failed out of 0", 0, 0),
            ("test cases: 3 | 2 passed | 1 failed", 3, 1),
            ("[doctest] test cases:  4 |  4 passed | 0 failed | 0 skipped", 4, 0),
            ("All tests passed (5 assertions in 3 test cases)", 3, 0),
            ("Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 5 ms", 3, 0),
            ("Test summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 0.5s", 3, 1),
            ("00:01 +3: All tests passed!", 3, 0),
            ("00:01 +2 -1: Some tests failed.", 3, 1),
            ("All 3 tests passed (0.00s)", 3, 0),
            ("1 out of 3 tests failed (0.00s)", 3, 1),
            ("2 passed; 1 skipped; 0 failed.", 2, 0),
            ("1 of 1 test suites (3 of 4 test cases) passed.", 4, 1),
            ("✔ Test run with 3 tests passed after 0.001 seconds.", 3, 0),
            (
                "Executed 1 test, with 0 failures (0 unexpected) in 0.1 seconds\nExecuted 3 tests, with 1 failure (0 unexpected) in 0.2 seconds",
                3,
                1,
            ),
            ("Executed 0 tests, with 0 failures (0 unexpected) in 0.0 seconds", 0, 0),
            ("All tests successful.\nFiles=2, Tests=3,  0 wallclock secs", 3, 0),
            ("3 successes / 1 failure / 0 errors / 0 pending : 0.001 seconds", 4, 1),
            ("Ok:                 3\nFail:               1", 4, 1),
            ("# TOTAL: 4\n# PASS:  3\n# FAIL:  1\n# ERROR: 0", 4, 1),
            ("[ FAIL 0 | WARN 0 | SKIP 0 | PASS 3 ]", 3, 0),
            ("[info] Tests: succeeded 3, failed 0, canceled 0, ignored 0, pending 0", 3, 0),
            ("[info] Passed: Total 3, Failed 0, Errors 0, Passed 3", 3, 0),
            ("Executed 0 out of 3 tests: 3 tests pass.", 3, 0),
            ("Executed 2 out of 2 tests: 1 test passes and 1 fails locally.", 2, 1),
            ("66%: Checks: 3, Failures: 1, Errors: 0", 3, 1),
            ("[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0", 3, 0),
            ("OK (3 tests, 3 ran, 5 checks, 0 ignored)", 3, 0),
            ("Test Successful in 0.001s. 3 tests run.", 3, 0),
            ("  3 tests passed\n  1 test failed", 4, 1),
            ("  3 passed (1.2s)", 3, 0),
            ("3/4 tests passed", 4, 1),
            (
                "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:",
                3,
                1,
            ),
            ("Chrome Headless 1 (Linux): Executed 3 of 3 SUCCESS (0.005 secs)", 3, 0),
            ("PASS: adds\nFAIL: sums", 2, 1),
            ("ok 1 - adds\nok 2 - sums # skip later\nnot ok 3 - takes", 2, 1),
            ("[PASS] adds\ntest_total ... ok", 2, 0),
            ("...s.F                                   [100%]", 5, 1),
            (
                "{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n{\"Action\":\"fail\",\"Package\":\"x\",\"Test\":\"TestB\"}",
                2,
                1,
            ),
        ];
        for (output, ran, failed) in outputs {
            let counts = counts(output).map(|counts| (counts.ran, counts.failed));
            assert_eq!(counts, Some((ran, failed)), "{output}");
        }
        for output in [
            "no tests yet",
            "all good",
            "[INFO] Tests are skipped.",
            "✓ built in 1.2s",
            "3 files changed",
            "OK",
            "5 errors",
        ] {
            assert_eq!(counts(output), None, "{output}");
        }
    }
}
