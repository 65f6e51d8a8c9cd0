//! Node: scripts of `package.json` whose names say that they check something, and the usual test and lint programs.

use super::super::Effect;
use super::super::args::Options;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::run;
use crate::shell::Word;

const NAMES: &[&str] = &["npm", "pnpm", "yarn", "bun", "npx", "node"];

/// Names of scripts; a script may be a variant, as in `test:unit`.
const TESTS: &[&str] = &["test", "tests", "spec", "e2e", "unit", "integration", "coverage"];
const BUILDS: &[&str] = &[
    "build",
    "compile",
    "lint",
    "check",
    "type",
    "types",
    "typecheck",
    "tsc",
    "format",
    "fmt",
    "prettier",
    "eslint",
    "verify",
    "ci",
];

/// Options of jest, vitest, mocha, playwright, `node --test`, tsc, eslint and prettier.
const OPTIONS: Options = Options::only(
    "tgiup",
    &[
        "run",
        "watch",
        "watchAll",
        "reporter",
        "reporters",
        "coverage",
        "no-coverage",
        "silent",
        "verbose",
        "bail",
        "runInBand",
        "testNamePattern",
        "testPathPattern",
        "testPathPatterns",
        "findRelatedTests",
        "onlyChanged",
        "changed",
        "passWithNoTests",
        "maxWorkers",
        "ci",
        "json",
        "forceExit",
        "detectOpenHandles",
        "expand",
        "update",
        "updateSnapshot",
        "grep",
        "fgrep",
        "filter",
        "timeout",
        "retries",
        "workers",
        "test",
        "test-name-pattern",
        "test-only",
        "test-concurrency",
        "test-timeout",
        "fix",
        "quiet",
        "max-warnings",
        "ext",
        "noEmit",
        "pretty",
        "skipLibCheck",
        "project",
        "check",
        "write",
        "color",
        "no-color",
        "if-present",
        "workspace",
        "workspaces",
        "recursive",
    ],
)
.values(
    "tgp",
    &["testNamePattern", "testPathPattern", "test-name-pattern", "grep", "project", "filter", "workspace"],
);

/// `npm test`, `npm run lint`, `yarn test:unit`.
pub fn package(tool: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(NAMES).then_some(())?;
    // What comes before the script is for the tool itself.
    let before = args.iter().take_while(|word| word.text.starts_with('-')).count();
    let own = ["--silent", "-s", "--if-present", "--workspaces", "-r", "--recursive"];
    args[..before].iter().all(|word| own.contains(&word.text.as_str())).then_some(())?;
    let (command, rest) = args[before..].split_first()?;
    let (script, rest) = match command.text.as_str() {
        "run" | "run-script" => rest.split_first()?,
        "test" | "t" | "tst" => (command, rest),
        _ if tool == "npm" => return None,
        _ => (command, rest),
    };
    let kind = kind(script)?;
    let (own, passed) = match rest.iter().position(|word| word.text == "--") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &rest[..0]),
    };
    let passed = run(kind, passed, &OPTIONS)?;
    let effect = run(kind, own, &OPTIONS)?;
    Some(effect.reading(&passed.reads))
}

fn kind(script: &Word) -> Option<CheckKind> {
    let parts: Vec<&str> = script.text.split([':', '-', '.']).collect();
    let named = |names: &[&str]| parts.iter().any(|part| names.contains(part));
    let literal = script.is_literal() && !script.text.starts_with('-');
    match literal {
        true if named(TESTS) || script.text == "t" || script.text == "tst" => Some(CheckKind::Test),
        true if named(BUILDS) => Some(CheckKind::Build),
        _ => None,
    }
}

/// `npx vitest run`, `node --test`.
pub fn direct(tool: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(NAMES).then_some(())?;
    let (program, rest) = args.split_first()?;
    match tool {
        "node" => (program.text == "--test").then_some(())?,
        _ if program.text == "--no-install" => return direct(tool, rest, site),
        _ => return tested(&program.text, rest),
    }
    run(CheckKind::Test, rest, &OPTIONS)
}

/// `node_modules/.bin/jest`
pub fn installed(name: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    let program = name.trim_start_matches("./").strip_prefix("node_modules/.bin/")?;
    site.checks.uses(NAMES).then_some(())?;
    tested(program, args)
}

fn tested(program: &str, args: &[Word]) -> Option<Effect> {
    let kind = match program {
        "jest" | "vitest" | "mocha" | "ava" | "playwright" => CheckKind::Test,
        "tsc" | "eslint" | "prettier" | "biome" => CheckKind::Build,
        _ => return None,
    };
    run(kind, args, &OPTIONS)
}
