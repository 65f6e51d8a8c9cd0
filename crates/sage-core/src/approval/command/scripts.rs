//! `sed`, `awk` and `jq`: their first argument is a program. Only programs that surely just print are accepted.

use super::args::{Args, Options};
use super::{Does, Effect};
use crate::shell::Word;

const SED: Options =
    Options::only("nErsiez", &["quiet", "silent", "regexp-extended", "expression", "in-place"])
        .values("e", &["expression"]);

pub fn sed(words: &[Word]) -> Effect {
    let args = match Args::split(words, &SED) {
        Ok(args) => args,
        Err(why) => return Effect::unknown(format!("{why} of `sed` is not known to be harmless")),
    };
    let given: Vec<&Word> = args.given(&["e", "expression"]).collect();
    let (scripts, files) = match args.operands.split_first() {
        _ if !given.is_empty() => (given, args.operands.as_slice()),
        Some((script, files)) => (vec![*script], files),
        None => return Effect::unknown("`sed` has no script"),
    };
    if !scripts.iter().all(|script| script.is_literal() && only_prints(&script.text)) {
        return Effect::unknown("the script of `sed` may do more than print");
    }
    if !args.has(&["i", "in-place"]) {
        return Effect::new(Does::Looks).reading(files.iter().copied());
    }
    if words.iter().any(keeps_copies) || files.iter().any(|file| !file.is_literal()) {
        return Effect::unknown("`sed -i` changes files that it does not name");
    }
    Effect::new(Does::Rearranges).writing(files.iter().copied())
}

/// `-i.bak` and `--in-place=.bak`: what is joined to it is the ending of a copy.
fn keeps_copies(word: &Word) -> bool {
    let text = word.text.as_str();
    let short = text.starts_with('-') && !text.starts_with("--");
    text.starts_with("--in-place=") || (short && text.find('i').is_some_and(|at| at + 1 < text.len()))
}

/// Numbers, `$` and `/patterns/` with `p`, `d`, `q`, `=`, and `s` without files or programs.
fn only_prints(script: &str) -> bool {
    let mut rest = script.trim();
    while !rest.is_empty() {
        let Some(after) = sed_command(rest) else { return false };
        let after = after.trim_start_matches(' ');
        rest = match after.strip_prefix([';', '\n']) {
            Some(next) => next.trim_start_matches([' ', '\n', ';']),
            None if after.is_empty() => "",
            None => return false,
        };
    }
    true
}

/// What follows one command, if it is one of those.
fn sed_command(text: &str) -> Option<&str> {
    let mut rest = address(text);
    if let Some(second) = rest.strip_prefix(',') {
        let after = address(second.trim_start_matches(['+', '~']));
        (after.len() < second.len()).then_some(())?;
        rest = after;
    }
    let rest = rest.trim_start_matches(' ').trim_start_matches('!');
    if let Some(rest) = rest.strip_prefix(['p', 'd', 'q', '=']) {
        return Some(rest);
    }
    let rest = rest.strip_prefix('s')?;
    let delimiter = rest.chars().next().filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let rest = until(&rest[1..], delimiter)?;
    let rest = until(rest, delimiter)?;
    Some(rest.trim_start_matches(|c: char| "gpiI".contains(c) || c.is_ascii_digit()))
}

fn address(text: &str) -> &str {
    match text.chars().next() {
        Some('$') => &text[1..],
        Some('/') => until(&text[1..], '/').map_or(text, |rest| rest.trim_start_matches('I')),
        _ => text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~'),
    }
}

/// What follows the next delimiter that is not escaped. Not every `sed` ends at one inside of brackets, so there is
/// none.
fn until(text: &str, delimiter: char) -> Option<&str> {
    let (mut escaped, mut bracket) = (false, None);
    for (at, c) in text.char_indices() {
        match (c, bracket) {
            ('\n', _) => return None,
            (c, Some(from)) if c == delimiter || c == '\\' && at > from => return None,
            (']', Some(from)) if at > from + 1 && &text[from + 1..at] != "^" => bracket = None,
            (_, Some(_)) => {}
            _ if escaped => escaped = false,
            ('\\', None) => escaped = true,
            ('[', None) => bracket = Some(at),
            (c, None) if c == delimiter => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

/// Words of awk that run programs, read or write files, or show the environment.
const AWK: &[&str] =
    &["system", "getline", "close", "fflush", "ENVIRON", "@", "|", "extension", "ARGV", "PROCINFO"];

pub fn awk(args: &[Word]) -> Effect {
    let options = Options::only("Fv", &[]).values("Fv", &[]);
    let args = match Args::split(args, &options) {
        Ok(args) => args,
        Err(why) => return Effect::unknown(format!("{why} of `awk` is not known to be harmless")),
    };
    let Some((program, files)) = args.operands.split_first() else {
        return Effect::unknown("`awk` has no program");
    };
    // `>` writes a file, unless it is `>=`.
    let text = program.text.replace("||", " ").replace(">=", " ");
    if !program.is_literal() || text.contains('>') || AWK.iter().any(|word| text.contains(word)) {
        return Effect::unknown("the program of `awk` may do more than print");
    }
    Effect::new(Does::Looks).reading(files.iter().copied())
}

pub fn jq(args: &[Word]) -> Effect {
    let options = Options::only(
        "rcnsSMCeRaj",
        &["raw-output", "compact-output", "null-input", "slurp", "sort-keys", "tab"],
    );
    let args = match Args::split(args, &options) {
        Ok(args) => args,
        Err(why) => return Effect::unknown(format!("{why} of `jq` is not known to be harmless")),
    };
    let Some((program, files)) = args.operands.split_first() else {
        return Effect::unknown("`jq` has no program");
    };
    let shows = ["env", "ENV", "import", "include", "input_filename", "debug", "stderr"];
    if !program.is_literal() || shows.iter().any(|word| program.text.contains(word)) {
        return Effect::unknown("the program of `jq` may show more than its input");
    }
    Effect::new(Does::Looks).reading(files.iter().copied())
}
