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
