//! Go: `test`, `vet`, `build`, `list`. Its options have one dash; `-exec`, `-toolexec` and `-vettool` run programs.

use super::super::Effect;
use super::super::checks::CheckKind;
use super::super::place::Site;
use super::does;
use crate::shell::Word;

const FLAGS: &[&str] =
    &["v", "race", "short", "cover", "benchmem", "failfast", "json", "x", "n", "a", "m", "l", "d", "s", "w"];
const VALUES: &[&str] = &[
    "run",
    "skip",
    "count",
    "timeout",
    "bench",
    "benchtime",
    "p",
    "parallel",
    "shuffle",
    "tags",
    "list",
    "f",
    "covermode",
];

pub fn effect(tool: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    site.checks.uses(&["go"]).then_some(())?;
    let (kind, args) = match args.split_first() {
        _ if tool == "gofmt" => (CheckKind::Build, args),
        Some((command, args)) => match command.text.as_str() {
            "test" => (CheckKind::Test, args),
            "vet" | "build" | "list" | "fmt" => (CheckKind::Build, args),
            _ => return None,
        },
        None => return None,
    };
    let mut named = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.text.strip_prefix("--").or_else(|| word.text.strip_prefix('-')) else {
            (!word.leading_pattern).then_some(())?;
            named.push(word);
            continue;
        };
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        match () {
            () if FLAGS.contains(&name) => {}
            () if VALUES.contains(&name) && value.is_some() => {}
            () if VALUES.contains(&name) => drop(words.next()),
            () => return None,
        }
    }
    Some(Effect::new(does(kind)).reading(named))
}
