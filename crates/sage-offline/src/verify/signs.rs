//! What programs print when they could not check anything: no tests, a tool that is missing, a failure that was ignored.

/// Sentences of test programs that ran nothing, in small letters.
const NO_TESTS: &[&str] = &[
    "no tests found",
    "no test files found",
    "no test modules found",
    "no tests were found",
    "no tests to run",
    "no tests ran",
    "no tests executed",
    "no test is available",
    "no tests were executed",
    "tests are skipped.",
    "result: notests",
    ":test no-source",
    ":test skipped",
];

/// What make says when a target has nothing to do, or a file has its name.
const NOT_MADE: &[&str] = &["nothing to be done for", "is up to date."];

/// The runners that Python names when it does not have them.
const MODULES: &[&str] = &["pytest", "tox", "nox", "unittest2", "nose2"];

pub fn no_tests(output: &str) -> bool {
    output.lines().any(|line| {
        let line = line.to_lowercase();
        let idle = line.starts_with("make") && NOT_MADE.iter().any(|words| line.contains(words));
        idle || NO_TESTS.iter().any(|words| line.contains(words))
    })
}

/// The program, or one that it starts, is not there or may not be started. 126 and 127 are the shell's words for it;
/// make and just tell them on, Python says it in a sentence.
pub fn missing(exit_code: Option<i32>, output: &str) -> Option<String> {
    let found = |wanted: &dyn Fn(&str) -> bool| {
        output.lines().rfind(|line| wanted(line)).map(|line| line.trim().to_string())
    };
    let lacks = |line: &str| line.ends_with("not found") || line.ends_with("No such file or directory");
    match exit_code {
        Some(0) | None => None,
        Some(126) => {
            Some(found(&|line| line.contains("ermission denied")).unwrap_or("it may not be executed".into()))
        }
        Some(127) => Some(found(&lacks).unwrap_or("a program is not installed".into())),
        Some(_) => {
            let told_on = |line: &str| line.contains("Error 127") || line.ends_with("with exit code 127");
            let inner = found(&told_on).map(|line| found(&lacks).unwrap_or(line));
            inner.or_else(|| found(&no_module)).or_else(|| found(&|line| line.contains("npx canceled")))
        }
    }
}

fn no_module(line: &str) -> bool {
    let module = line.split("No module named ").nth(1).map(|name| name.trim_matches(['\'', '"', ' ']));
    module.is_some_and(|name| MODULES.contains(&name))
}

/// make goes on after a recipe line that begins with `-`, and says so.
pub fn ignored(output: &str) -> Option<String> {
    let is_it = |line: &&str| line.starts_with("make") && line.ends_with("(ignored)");
    output.lines().find(is_it).map(|line| line.trim().to_string())
}

/// Errors of compilers and bundlers: `error TS2322` and webpack's `ERROR in ./src/a.js`.
pub fn reported(output: &str) -> Option<String> {
    let is_it = |line: &&str| {
        let number = line.split_once("error TS").map(|(_, rest)| rest);
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            || line.starts_with("ERROR in ")
    };
    output.lines().find(is_it).map(|line| line.trim().to_string())
}

/// How lines begin that say beyond doubt that a test, a part of the tests or the runner failed.
const FAILED: &[&str] = &[
    "FAIL: ",
    "[FAIL] ",
    "FAILED: ",
    "[FAILED] ",
    "✗ ",
    "FAIL\t",
    "Bail out!",
    "Result: FAIL",
    "INTERNALERROR>",
    "error: test failed",
    "error: could not compile",
    "error Command failed with exit code",
    "npm ERR! code",
    "npm ERR! Test failed",
    "npm error code",
    "npm error Lifecycle script",
    "ELIFECYCLE",
    "There were failing tests",
    "BUILD FAILED",
    "[INFO] BUILD FAILURE",
    "FAILED: Build did NOT complete successfully",
    "Segmentation fault",
    "Aborted (core dumped)",
];

/// A line that says that something failed, whatever the exit code and the last line say.
pub fn failed(output: &str) -> Option<String> {
    let found = output.lines().map(str::trim).find(|line| says_failed(line)).map(str::to_string);
    found.or_else(|| short_plan(output))
}

fn says_failed(line: &str) -> bool {
    let made = || line.starts_with("make") && line.contains("***") && !line.ends_with("(ignored)");
    let stopped = || {
        let words = ["Interrupted", "KeyboardInterrupt", "stopping after"];
        line.starts_with("!!!") && words.iter().any(|word| line.contains(word))
    };
    let package = || line.starts_with('{') && line.contains("\"Action\":\"fail\"");
    FAILED.iter().any(|start| line.starts_with(start))
        || ["FAIL", "Killed"].contains(&line)
        || made()
        || stopped()
        || package()
        || line.contains(" Dubious, test returned ")
        || line.contains("Unhandled Errors")
        || line.contains(": Executed ") && line.contains(" DISCONNECTED")
        || counts_failures(line)
}

/// `Failed: 1`, alone or beside what passed; `3 tests completed, 1 failed`; vitest's `Errors  1 error`.
fn counts_failures(line: &str) -> bool {
    let small = line.to_lowercase();
    let words = ["failed:", "failures:", "errors:", "errors  "];
    let number = |text: &str| text.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>();
    let some = |text: &str| number(text).parse::<usize>().is_ok_and(|count| count > 0);
    let alone = words.iter().filter_map(|word| small.strip_prefix(word)).any(|rest| {
        let end =
            rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_matches([' ', '.', 's']);
        some(rest) && ["", "error"].contains(&end)
    });
    let beside = small.contains("passed:") && small.split("failed:").skip(1).any(some);
    alone
        || beside
        || small.split(" tests completed, ").skip(1).any(|rest| some(rest) && rest.contains(" failed"))
}

/// TAP that announced more tests than it told of.
fn short_plan(output: &str) -> Option<String> {
    let plans = output.lines().filter_map(|line| line.strip_prefix("1..")?.trim().parse::<usize>().ok());
    let told = output.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    let planned: usize = plans.sum();
    (told > 0 && told < planned).then(|| format!("{told} of {planned} planned tests were reported"))
}

/// A shell did not find a program and went on: `sh: 1: pytest: not found`, `run.sh: line 3: jest: command not found`.
/// Other output may come between the parts of that line; the rest of it counts if the command names the program.
pub fn not_found(command: &str, output: &str) -> Option<String> {
    let named = |word: &str| {
        command.split(|c: char| !c.is_alphanumeric() && !"-_./".contains(c)).any(|it| it == word)
    };
    let is_it = |line: &&str| {
        let parts: Vec<&str> = line.trim().split(": ").collect();
        let Some((last, before)) = parts.split_last() else { return false };
        let place = |part: &&str| part.strip_prefix("line ").unwrap_or(part).parse::<usize>().is_ok();
        let shell = |who: &str| SHELLS.contains(&who.rsplit('/').next().unwrap_or(who));
        match (before, *last) {
            ([_, at, _], "not found" | "command not found") => place(at),
            ([who, _], "not found" | "command not found") => shell(who),
            ([word], "not found" | "command not found") => named(word),
            _ => false,
        }
    };
    output.lines().find(is_it).map(|line| line.trim().to_string())
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
