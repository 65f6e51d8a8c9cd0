//! Python: unittest, pytest and the usual linters, with the interpreter of the system or of the project's environment.

use super::super::Effect;
use super::super::args::Options;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::run;
use crate::shell::Word;

pub const NAMES: &[&str] = &["python", "python3", "pytest", "tox"];

const UNITTEST: Options = Options::only(
    "vfbqckspt",
    &[
        "verbose",
        "failfast",
        "buffer",
        "quiet",
        "catch",
        "locals",
        "durations",
        "start-directory",
        "pattern",
        "top-level-directory",
    ],
)
.values("kspt", &["durations", "start-directory", "pattern", "top-level-directory"]);

const PYTEST: Options = Options::only(
    "xqvslkmrnW",
    &[
        "exitfirst",
        "quiet",
        "verbose",
        "maxfail",
        "lf",
        "last-failed",
        "ff",
        "failed-first",
        "nf",
        "tb",
        "durations",
        "collect-only",
        "co",
        "no-header",
        "no-summary",
        "showlocals",
        "capture",
        "disable-warnings",
        "color",
        "cov",
        "no-cov",
        "timeout",
        "strict-markers",
        "ignore",
        "deselect",
        "stepwise",
        "sw",
        "cache-clear",
        "numprocesses",
        "dist",
        "doctest-modules",
        "benchmark-disable",
    ],
)
.values(
    "kmrnW",
    &["maxfail", "tb", "durations", "ignore", "deselect", "timeout", "color", "capture", "numprocesses"],
);

const LINT: Options = Options::only(
    "qvlp",
    &[
        "fix",
        "check",
        "diff",
        "quiet",
        "verbose",
        "select",
        "ignore",
        "extend-select",
        "show-fixes",
        "statistics",
        "output-format",
        "no-cache",
        "strict",
        "ignore-missing-imports",
        "show-error-codes",
        "pretty",
        "no-error-summary",
        "line-length",
        "max-line-length",
        "profile",
        "check-only",
        "count",
    ],
)
.values(
    "lp",
    &["select", "ignore", "extend-select", "output-format", "line-length", "max-line-length", "profile"],
);

pub fn effect(words: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(NAMES).then_some(())?;
    let (first, args) = words.split_first()?;
    match (program(&first.text), args) {
        ("uv" | "poetry" | "pipenv" | "hatch", [run, rest @ ..]) if run.text == "run" => effect(rest, site),
        ("python" | "python3", args) => {
            // Flags of the interpreter that change nothing but how it reports.
            let flags =
                args.iter().take_while(|word| ["-B", "-u", "-s", "-q"].contains(&word.text.as_str())).count();
            match &args[flags..] {
                [m, module, rest @ ..] if m.text == "-m" => tool(&module.text, rest),
                _ => None,
            }
        }
        (name, args) => tool(name, args),
    }
}

/// Also of the project's own environment.
fn program(text: &str) -> &str {
    let text = text.strip_prefix("./").unwrap_or(text);
    let own = [".venv/bin/", "venv/bin/"];
    let name = own.iter().find_map(|dir| text.strip_prefix(dir)).unwrap_or(text);
    let version = name.strip_prefix("python3.").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    if version { "python3" } else { name }
}

fn tool(name: &str, args: &[Word]) -> Option<Effect> {
    match (name, args) {
        ("unittest", [discover, rest @ ..]) if discover.text == "discover" => {
            run(CheckKind::Test, rest, &UNITTEST)
        }
        ("unittest", args) => run(CheckKind::Test, args, &UNITTEST),
        ("pytest", args) => {
            let report = |word: &&Word| {
                !["--cov-report=term", "--cov-report=term-missing"].contains(&word.text.as_str())
            };
            let args: Vec<Word> = args.iter().filter(report).cloned().collect();
            run(CheckKind::Test, &args, &PYTEST)
        }
        ("compileall" | "py_compile", args) => run(CheckKind::Build, args, &Options::only("qf", &[])),
        ("ruff" | "mypy" | "flake8" | "black" | "isort" | "pyright" | "pylint", args) => {
            run(CheckKind::Build, args, &LINT)
        }
        _ => None,
    }
}
