//! Maven and Gradle. Properties can change anything, so only those that choose tests are known.

use super::super::Effect;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::does;
use crate::shell::Word;

pub fn maven(args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(&["mvn", "mvnw"]).then_some(())?;
    let flags =
        ["-q", "-B", "-o", "-e", "-am", "-ntp", "--batch-mode", "--quiet", "--offline", "-DskipTests"];
    let goals = ["test", "verify", "compile", "package", "test-compile"];
    let mut tests = false;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            _ if !word.is_literal() => return None,
            text if flags.contains(&text) || text.starts_with("-Dtest=") => {}
            "-pl" => drop(words.next()),
            text if goals.contains(&text) => tests |= text != "compile" && text != "package",
            _ => return None,
        }
    }
    Some(Effect::new(does(kind(tests))))
}

pub fn gradle(args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(&["gradle", "gradlew"]).then_some(())?;
    let flags = [
        "--info",
        "--stacktrace",
        "-q",
        "--quiet",
        "--no-daemon",
        "--offline",
        "--continue",
        "-i",
        "--rerun-tasks",
        "--console=plain",
        "--warn",
    ];
    let tasks = ["test", "check", "build", "assemble", "compile", "lint", "classes"];
    let mut tests = false;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let task = word.text.rsplit(':').next().unwrap_or_default().to_lowercase();
        match word.text.as_str() {
            _ if !word.is_literal() => return None,
            text if flags.contains(&text) => {}
            "--tests" => drop(words.next()),
            text if text.starts_with('-') => return None,
            _ if tasks.iter().any(|known| task.contains(known)) => {
                tests |= task.contains("test") || task == "check"
            }
            _ => return None,
        }
    }
    Some(Effect::new(does(kind(tests))))
}

fn kind(tests: bool) -> CheckKind {
    if tests { CheckKind::Test } else { CheckKind::Build }
}
