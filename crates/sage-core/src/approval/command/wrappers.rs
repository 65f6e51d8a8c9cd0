//! Programs that run another one: known if that one is.

use super::place::Site;
use super::walk::{program, program_name};
use super::{Does, Effect, looks};
use crate::shell::Word;

pub const NAMES: &[&str] = &["timeout", "gtimeout", "nice", "time", "xargs"];

pub fn effect(name: &str, args: &[Word], site: &Site<'_>) -> Option<Effect> {
    match name {
        "timeout" | "gtimeout" => Some(timeout(args, site)),
        "nice" => Some(nice(args, site)),
        "time" => Some(program(args, site)),
        "xargs" => Some(xargs(args)),
        _ => None,
    }
}

fn timeout(args: &[Word], site: &Site<'_>) -> Effect {
    let mut args = args;
    loop {
        args = match args {
            [option, _, rest @ ..]
                if ["-k", "-s", "--kill-after", "--signal"].contains(&option.text.as_str()) =>
            {
                rest
            }
            [option, rest @ ..] if option.text.starts_with('-') => match option.text.as_str() {
                "--foreground" | "--preserve-status" | "-v" | "--verbose" => rest,
                text if text.starts_with("--kill-after=") || text.starts_with("--signal=") => rest,
                _ => return Effect::unknown(format!("the option `{}` of `timeout`", option.text)),
            },
            [_duration, rest @ ..] => return program(rest, site),
            [] => return Effect::unknown("`timeout` runs nothing"),
        };
    }
}

fn nice(args: &[Word], site: &Site<'_>) -> Effect {
    match args {
        [option, _, rest @ ..] if option.text == "-n" => program(rest, site),
        [option, ..] if option.text.starts_with('-') => Effect::unknown("an option of `nice`"),
        rest => program(rest, site),
    }
}

/// Programs that read whatever files they are given, with any options.
const READERS: &[&str] = &[
    "cat",
    "wc",
    "head",
    "tail",
    "grep",
    "egrep",
    "fgrep",
    "ls",
    "stat",
    "md5sum",
    "sha256sum",
    "echo",
    "basename",
    "dirname",
    "realpath",
];

/// What it adds to the arguments is not known, so only a program that can do nothing but read is.
fn xargs(args: &[Word]) -> Effect {
    let at = {
        let mut at = 0;
        loop {
            match args.get(at).map(|word| word.text.as_str()) {
                Some("-0" | "-r" | "-t" | "--null" | "--no-run-if-empty") => at += 1,
                Some("-n" | "-L" | "-P" | "-I" | "-d" | "-s") => at += 2,
                Some(text)
                    if text.len() > 2 && ["-n", "-L", "-P", "-I"].iter().any(|it| text.starts_with(it)) =>
                {
                    at += 1
                }
                Some(text) if text.starts_with('-') => {
                    return Effect::unknown(format!("the option `{text}` of `xargs`"));
                }
                _ => break at,
            }
        }
    };
    let Some((first, rest)) = args.get(at..).and_then(<[Word]>::split_first) else {
        return Effect::new(Does::Looks);
    };
    let name = program_name(&first.text);
    if !first.is_literal() || !READERS.contains(&name) {
        return Effect::unknown(format!("`xargs` runs `{}` with arguments that are not known", first.text));
    }
    looks::effect(name, rest).unwrap_or_else(|| Effect::unknown("`xargs` runs something unknown"))
}
