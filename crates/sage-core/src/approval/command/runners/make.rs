//! `make` and `just`: targets that check something. Variables and other files would change what they run.

use super::super::Effect;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::does;
use crate::shell::Word;

const TESTS: &[&str] = &["test", "tests", "check"];
const BUILDS: &[&str] =
    &["build", "compile", "all", "lint", "fmt", "format", "clippy", "typecheck", "fmt-check", "format-check"];
const FLAGS: &[&str] =
    &["-j", "-k", "-s", "-B", "--silent", "--keep-going", "--no-print-directory", "--jobs"];

pub fn effect(tool: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(&[tool]).then_some(())?;
    let mut kind = None;
    for word in args {
        let text = word.text.as_str();
        let jobs = text.strip_prefix("-j").is_some_and(|count| count.chars().all(|c| c.is_ascii_digit()));
        match text {
            _ if !word.is_literal() => return None,
            text if FLAGS.contains(&text) || jobs => {}
            text if TESTS.contains(&text) => kind = kind.or(Some(CheckKind::Test)),
            text if BUILDS.contains(&text) => kind = Some(CheckKind::Build),
            // The count of `-j 4`.
            text if text.chars().all(|c| c.is_ascii_digit()) => {}
            _ => return None,
        }
    }
    kind.map(|kind| Effect::new(does(kind)))
}
