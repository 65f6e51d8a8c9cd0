//! `cargo`: tests, builds, lints and formats. `--config`, `+toolchain` and flags of the compiler could run a program.

use super::super::Effect;
use super::super::args::Options;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::run;
use crate::shell::Word;

const OPTIONS: Options = Options::only(
    "pvqjFrE",
    &[
        "package",
        "workspace",
        "all",
        "lib",
        "bin",
        "bins",
        "test",
        "tests",
        "example",
        "examples",
        "bench",
        "benches",
        "all-targets",
        "features",
        "all-features",
        "no-default-features",
        "release",
        "profile",
        "jobs",
        "keep-going",
        "no-run",
        "no-fail-fast",
        "fail-fast",
        "doc",
        "quiet",
        "verbose",
        "color",
        "message-format",
        "offline",
        "locked",
        "frozen",
        "exclude",
        "check",
        "fix",
        "allow-dirty",
        "allow-staged",
        "no-deps",
        "document-private-items",
        "run-ignored",
        "test-threads",
        "retries",
        "nocapture",
        "no-capture",
        "status-level",
        "success-output",
        "failure-output",
        "manifest-path",
        "depth",
        "invert",
        "edges",
        "format-version",
    ],
)
.values(
    "pjFE",
    &[
        "package",
        "bin",
        "test",
        "example",
        "bench",
        "features",
        "profile",
        "jobs",
        "color",
        "message-format",
        "exclude",
        "run-ignored",
        "test-threads",
        "retries",
        "status-level",
        "success-output",
        "failure-output",
        "manifest-path",
        "depth",
        "invert",
        "edges",
        "format-version",
    ],
);

/// Flags of test programs, lint levels and `rustfmt --check`.
const PASSED_ON: &[&str] = &[
    "--nocapture",
    "--no-capture",
    "--exact",
    "--ignored",
    "--include-ignored",
    "--skip",
    "--show-output",
    "--test-threads",
    "--list",
    "--color",
    "--quiet",
    "-q",
    "--report-time",
    "-D",
    "-W",
    "-A",
    "--check",
];

pub fn cargo(args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(&["cargo"]).then_some(())?;
    let (command, args) = args.split_first().filter(|(command, _)| command.is_literal())?;
    let (kind, args) = match command.text.as_str() {
        "test" | "t" => (CheckKind::Test, args),
        "nextest" => match args.split_first()? {
            (next, args) if ["run", "list", "r"].contains(&next.text.as_str()) => (CheckKind::Test, args),
            _ => return None,
        },
        "check" | "c" | "build" | "b" | "clippy" | "fmt" | "doc" | "tree" | "metadata" => {
            (CheckKind::Build, args)
        }
        _ => return None,
    };
    let dashes = args.iter().position(|word| word.text == "--").unwrap_or(args.len());
    let (own, passed) = args.split_at(dashes);
    let harmless = |word: &Word| {
        let name = word.text.split('=').next().unwrap_or_default();
        word.is_literal() && (!name.starts_with('-') || PASSED_ON.contains(&name))
    };
    passed.iter().skip(1).all(harmless).then_some(())?;
    run(kind, own, &OPTIONS)
}
