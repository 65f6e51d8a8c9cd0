//! How much is typed, where a language lets people choose.

use serde_json::json;

use super::super::facts::{FileFacts, Function};
use super::super::look::{Look, count, percent, rounded};
use super::{Pattern, best};

const LEAST: usize = 3;

pub(super) fn patterns(look: &Look) -> Vec<Pattern> {
    let chosen = ["TypeScript", "Python"];
    let languages = look.survey.languages.iter().map(|(language, _)| language.as_str());
    languages.filter(|language| chosen.contains(language)).flat_map(|language| of(look, language)).collect()
}

fn of(look: &Look, language: &str) -> Vec<Pattern> {
    let files = look.products().filter(|file| file.language == language);
    let all: Vec<(&FileFacts, &Function)> = files
        .flat_map(|file| {
            file.functions.iter().filter(|f| !f.in_test && is_declared(f)).map(move |f| (file, f))
        })
        .collect();
    let params: usize = all.iter().map(|(_, f)| f.params).sum();
    let typed: usize = all.iter().map(|(_, f)| f.typed_params).sum();
    // A constructor gives what its name says.
    let giving: Vec<_> =
        all.iter().copied().filter(|(_, f)| !matches!(f.name.as_str(), "constructor" | "__init__")).collect();
    let returning = giving.iter().filter(|(_, f)| f.returns_typed).count();
    let with_params = all.iter().copied().filter(|(_, f)| f.params > 0);
    let (full, partly): (Vec<_>, Vec<_>) = with_params.partition(|(_, f)| f.typed_params == f.params);
    let (declared, open): (Vec<_>, Vec<_>) = giving.iter().copied().partition(|(_, f)| f.returns_typed);
    let mut patterns = Vec::new();
    if params >= LEAST {
        patterns.push(pattern(
            look,
            language,
            ("parameter", "typed parameters"),
            (typed, params),
            full,
            partly,
        ));
    }
    if giving.len() >= LEAST {
        let counts = (returning, giving.len());
        patterns.push(pattern(look, language, ("return", "declared return types"), counts, declared, open));
    }
    patterns
}

/// A function that is a value in an object is typed by what the object is for.
fn is_declared(function: &Function) -> bool {
    !function.is_expected || function.owner.is_some()
}

type Places<'a> = Vec<(&'a FileFacts, &'a Function)>;

fn pattern(
    look: &Look,
    language: &str,
    (what, named): (&str, &str),
    (typed, all): (usize, usize),
    with: Places,
    without: Places,
) -> Pattern {
    let usual = typed * 2 >= all;
    let (following, rest) = if usual { (with, without) } else { (without, with) };
    let share = typed as f64 / all as f64;
    let habit = match (usual, typed) {
        (true, _) => format!("Functions have {named} ({language})"),
        (false, _) if what == "return" && language == "TypeScript" => {
            "Return types are mostly left to be inferred (TypeScript)".into()
        }
        (false, 0) => format!("Functions have no {named} ({language})"),
        (false, _) => format!("Few functions have {named} ({language})"),
    };
    let exceptions = rest.iter().map(|(file, f)| format!("`{}` {}", f.name, file.at(f.line)));
    Pattern {
        kind: "typing",
        subject: format!("{what} types ({language})"),
        predicate: "share",
        value: json!(rounded(share)),
        title: habit,
        detail: format!(
            "{} of {} typed.",
            percent(typed, all),
            count(all, if what == "return" { "function" } else { what })
        ),
        share: if usual { share } else { 1.0 - share },
        places: all,
        examples: best(look, following.iter().map(|(file, f)| file.at(f.line)).collect()),
        exceptions: exceptions.collect(),
    }
}
