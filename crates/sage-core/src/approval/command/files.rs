//! Programs that change the files they name: each of those counts as written.

use super::args::{Args, Options};
use super::{Does, Effect};
use crate::shell::Word;

pub fn effect(name: &str, args: &[Word]) -> Option<Effect> {
    let options = match name {
        "tee" => Options::only("ai", &["append"]),
        "mkdir" => Options::only("pv", &["parents", "verbose"]),
        "touch" => Options::only("acm", &[]),
        "rmdir" => Options::only("pv", &[]),
        "chmod" => Options::only("vcf", &[]),
        "cp" => Options::only("fnvpiu", &[]),
        "mv" => Options::only("fnviu", &[]),
        "rm" => Options::only("fvirRd", &["force", "verbose", "recursive"]),
        _ => return None,
    };
    Some(match Args::split(args, &options) {
        Ok(args) => changes(name, &args),
        Err(why) => Effect::unknown(format!("{why} of `{name}` is not known to be harmless")),
    })
}

fn changes(name: &str, args: &Args<'_>) -> Effect {
    let operands = args.operands.as_slice();
    // What a pattern stands for is not known here.
    if let Some(word) = operands.iter().find(|word| !word.is_literal() && !word.home) {
        return Effect::unknown(format!("`{name}` changes whatever `{}` matches", word.text));
    }
    match (name, operands) {
        ("cp" | "mv", [sources @ .., to]) if !sources.is_empty() => {
            let removed = sources.iter().filter(|_| name == "mv").copied();
            let effect = Effect::new(Does::Changes).reading(sources.iter().copied()).writing(removed);
            effect.writing([*to]).writing(&inside(sources, to))
        }
        ("chmod", [mode, files @ ..]) if is_mode(mode) => {
            Effect::new(Does::Changes).writing(files.iter().copied())
        }
        ("cp" | "mv" | "chmod", _) => Effect::unknown(format!("`{name}` does not name its files")),
        ("rm", files) if args.has(&["r", "R", "recursive"]) => {
            Effect::new(Does::Rearranges).writing(files.iter().copied())
        }
        (_, files) => Effect::new(Does::Changes).writing(files.iter().copied()),
    }
}

/// If the last operand is a folder, the files end up in it, under their own names.
fn inside(sources: &[&Word], to: &Word) -> Vec<Word> {
    let name = |source: &&Word| {
        let path = source.text.trim_end_matches('/');
        path.rsplit('/').next().unwrap_or_default().to_string()
    };
    let within = |name: String| Word { text: format!("{}/{name}", to.text), ..to.clone() };
    sources.iter().map(name).map(within).collect()
}

/// `+x`, `u+rw`, `644`; nothing that makes a program run as somebody else.
fn is_mode(word: &Word) -> bool {
    let digits = word.text.len() == 3 && word.text.chars().all(|c| ('0'..='7').contains(&c));
    let letters = !word.text.is_empty() && word.text.chars().all(|c| "ugoa+-=rwx,".contains(c));
    (digits || letters) && word.is_literal()
}
