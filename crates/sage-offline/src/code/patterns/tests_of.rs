//! Tests: with what, where they live, how they are called, and which modules have none.

use std::collections::HashSet;

use serde_json::json;

use super::super::coverage::{Coverage, subject_of};
use super::super::facts::{FileFacts, Function};
use super::super::look::{Look, count, percent, rounded};
use super::super::names::Style;
use super::framework::framework;
use super::{Pattern, best};

pub(super) fn patterns(look: &Look) -> Vec<Pattern> {
    let tests: Vec<(&FileFacts, &Function)> = look
        .survey
        .files
        .iter()
        .flat_map(|file| file.functions.iter().filter(|f| f.is_test).map(move |f| (file, f)))
        .collect();
    if tests.is_empty() {
        return Vec::new();
    }
    let mut patterns = vec![place(look, &tests)];
    patterns.extend(framework(look, &tests));
    patterns.extend(sentences(look, &tests));
    patterns.extend(modules(look, tests.len()));
    patterns
}

fn place(look: &Look, tests: &[(&FileFacts, &Function)]) -> Pattern {
    let beside = |file: &FileFacts| {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let named = ["tests", "test", "__tests__", "spec", "e2e"];
        !folder.split('/').any(|part| named.contains(&part))
    };
    let place_of = |file: &FileFacts| match (file.is_test, beside(file)) {
        (false, _) => "in the file that they test",
        (true, true) => "in files beside the code",
        (true, false) => "in a folder of tests",
    };
    let kinds = ["in the file that they test", "in files beside the code", "in a folder of tests"];
    let number = |kind: &str| tests.iter().filter(|(file, _)| place_of(file) == kind).count();
    let best_kind = kinds.into_iter().max_by_key(|kind| number(kind)).unwrap_or(kinds[0]);
    let rest = kinds.iter().filter(|kind| **kind != best_kind && number(kind) > 0);
    let others: Vec<String> = rest.map(|kind| format!("{} {kind}", number(kind))).collect();
    let also = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    let following = tests.iter().filter(|(file, _)| place_of(file) == best_kind);
    Pattern {
        kind: "tests",
        subject: "test location".into(),
        predicate: "is",
        value: json!(best_kind),
        title: format!("Tests live {best_kind}"),
        detail: format!("{} of {}{also}.", number(best_kind), count(tests.len(), "test")),
        share: number(best_kind) as f64 / tests.len() as f64,
        places: tests.len(),
        examples: best(look, following.map(|(file, f)| file.at(f.line)).collect()),
        exceptions: Vec::new(),
    }
}

/// Names that say what is true rather than what is called.
fn sentences(look: &Look, tests: &[(&FileFacts, &Function)]) -> Option<Pattern> {
    let words = |name: &str| match Style::of(name) {
        _ if name.contains(' ') => name.split_whitespace().count(),
        Style::Snake => name.trim_start_matches("test_").split('_').count(),
        _ => crate::words::terms(name).len(),
    };
    type Tests<'a> = Vec<(&'a FileFacts, &'a Function)>;
    let (said, short): (Tests, Tests) = tests.iter().partition(|(_, f)| words(&f.name) >= 4);
    if said.len() * 2 < tests.len() || tests.len() < 3 {
        return None;
    }
    Some(Pattern {
        kind: "tests",
        subject: "test names".into(),
        predicate: "style",
        value: json!("sentence"),
        title: "Test names are sentences that say what must be true".into(),
        detail: format!(
            "{} of {} have four words or more, such as `{}`.",
            percent(said.len(), tests.len()),
            count(tests.len(), "test"),
            said[0].1.name
        ),
        share: said.len() as f64 / tests.len() as f64,
        places: tests.len(),
        examples: best(look, said.iter().map(|(file, f)| file.at(f.line)).collect()),
        exceptions: short.iter().map(|(file, f)| format!("`{}` {}", f.name, file.at(f.line))).collect(),
    })
}

/// Modules whose functions no test reaches, not even through others.
fn modules(look: &Look, tests: usize) -> Option<Pattern> {
    let coverage = Coverage::new(&look.survey);
    let subjects: HashSet<String> =
        look.survey.files.iter().filter(|f| f.is_test).map(|f| subject_of(&f.path)).collect();
    let with_code: Vec<&FileFacts> =
        look.products().filter(|file| file.functions.iter().any(|f| !f.in_test && f.lines > 1)).collect();
    let is_tested = |file: &&&FileFacts| {
        subjects.contains(&subject_of(&file.path))
            || file.functions.iter().any(|f| f.is_test || (!f.in_test && coverage.reaches(file, f)))
    };
    let (tested, untested): (Vec<&FileFacts>, Vec<&FileFacts>) =
        with_code.iter().partition(|file| is_tested(file));
    let functions: usize = look.products().flat_map(|file| &file.functions).filter(|f| !f.in_test).count();
    let per_function = tests as f64 / functions.max(1) as f64;
    (with_code.len() >= 3).then(|| Pattern {
        kind: "tests",
        subject: "modules".into(),
        predicate: "tested",
        value: json!(rounded(tested.len() as f64 / with_code.len() as f64)),
        title: format!("{} of modules are reached by tests", percent(tested.len(), with_code.len())),
        detail: format!(
            "{} for {} ({} per function); by name, in {} of {} modules.",
            count(tests, "test"),
            count(functions, "function"),
            rounded(per_function),
            tested.len(),
            with_code.len()
        ),
        share: tested.len() as f64 / with_code.len() as f64,
        places: with_code.len(),
        examples: best(look, tested.iter().map(|file| file.path.clone()).collect()),
        exceptions: untested.iter().map(|file| format!("no test {}", file.path)).collect(),
    })
}
