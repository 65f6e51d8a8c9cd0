//! How errors travel: as values or as exceptions, and where they are dropped.

use serde_json::json;

use super::super::facts::{Errors, FileFacts, MarkKind};
use super::super::look::{Look, count};
use super::{Pattern, best};

pub(super) fn patterns(look: &Look) -> Vec<Pattern> {
    let languages = look.survey.languages.iter().map(|(language, _)| language.as_str());
    languages.filter_map(|language| of(look, language)).collect()
}

fn of(look: &Look, language: &str) -> Option<Pattern> {
    let files: Vec<&FileFacts> = look.products().filter(|file| file.language == language).collect();
    let sum = total(&files);
    let fallible: Vec<String> = fallible(&files);
    let several = look.survey.languages.len() > 1;
    let suffix = if several { format!(" ({language})") } else { String::new() };
    let dropped = format!("; {} swallowed", count(sum.swallowed, "error"));
    let (style, title, detail, good, bad) = match language {
        "Rust" => (
            "results",
            "Errors are returned as `Result` and passed on with `?`",
            format!(
                "{} return a `Result`, `?` {} times; outside of tests `unwrap` {} times, `expect` {}, `panic!` {}{dropped}.",
                count(fallible.len(), "function"),
                sum.propagated,
                sum.unwraps,
                sum.expects,
                sum.panics
            ),
            sum.propagated + fallible.len(),
            sum.unwraps + sum.expects + sum.panics + sum.swallowed,
        ),
        "Go" => (
            "error values",
            "Errors are returned as values and checked with `err != nil`",
            format!(
                "{} return an `error`, `err != nil` {} times, `panic` {} times{dropped}.",
                count(fallible.len(), "function"),
                sum.checked,
                sum.panics
            ),
            sum.checked + fallible.len(),
            sum.panics + sum.swallowed,
        ),
        _ => (
            "exceptions",
            "Errors are thrown and caught",
            format!(
                "Thrown in {}, caught in {}{dropped}{}.",
                count(sum.throws, "place"),
                count(sum.catches, "place"),
                own_types(&files)
            ),
            sum.throws + sum.catches - sum.swallowed.min(sum.catches),
            sum.swallowed,
        ),
    };
    if good + bad < 3 {
        return None;
    }
    let examples = if fallible.is_empty() { throwing(&files) } else { fallible };
    Some(Pattern {
        kind: "handling",
        subject: format!("error handling{suffix}"),
        predicate: "style",
        value: json!(style),
        title: format!("{title}{suffix}"),
        detail,
        share: good as f64 / (good + bad) as f64,
        places: good + bad,
        examples: best(look, examples),
        exceptions: exceptions(&files),
    })
}

fn total(files: &[&FileFacts]) -> Errors {
    files.iter().fold(Errors::default(), |sum, file| Errors {
        catches: sum.catches + file.errors.catches,
        throws: sum.throws + file.errors.throws,
        propagated: sum.propagated + file.errors.propagated,
        checked: sum.checked + file.errors.checked,
        unwraps: sum.unwraps + file.errors.unwraps,
        expects: sum.expects + file.errors.expects,
        panics: sum.panics + file.errors.panics,
        swallowed: sum.swallowed + file.errors.swallowed,
    })
}

fn fallible(files: &[&FileFacts]) -> Vec<String> {
    let own = files.iter().flat_map(|file| file.functions.iter().map(move |f| (file, f)));
    own.filter(|(_, f)| f.is_fallible && !f.in_test).map(|(file, f)| file.at(f.line)).collect()
}

/// Files that throw, the ones that do so most first.
fn throwing(files: &[&FileFacts]) -> Vec<String> {
    let mut files: Vec<&&FileFacts> =
        files.iter().filter(|file| file.errors.throws + file.errors.catches > 0).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.errors.throws + file.errors.catches));
    files.iter().map(|file| file.path.clone()).collect()
}

/// `; own error types: OrderError, ...`
fn own_types(files: &[&FileFacts]) -> String {
    let types = files.iter().flat_map(|file| file.types.iter()).filter(|kind| !kind.in_test);
    let errors = types.filter(|kind| {
        kind.name.len() > 9 && (kind.name.ends_with("Error") || kind.name.ends_with("Exception"))
    });
    let names: Vec<&str> = errors.map(|kind| kind.name.as_str()).take(4).collect();
    if names.is_empty() { String::new() } else { format!("; own error types: {}", names.join(", ")) }
}

/// Where an error is dropped, and where Rust code would panic.
fn exceptions(files: &[&FileFacts]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let dropped = |kind| matches!(kind, MarkKind::EmptyCatch | MarkKind::Discarded);
        for mark in file.marks.iter().filter(|mark| dropped(mark.kind) && !mark.in_test) {
            let what = if mark.kind == MarkKind::EmptyCatch { "empty handler" } else { "dropped answer" };
            found.push(format!("{what} {}", file.at(mark.line as usize)));
        }
        if file.language == "Rust" {
            let unwraps = file
                .calls
                .iter()
                .filter(|call| !call.in_test && !call.is_macro && file.slice(call.name) == "unwrap");
            found.extend(unwraps.map(|call| format!("`unwrap` {}", file.at(call.line as usize))));
        }
    }
    found
}
