//! With what tests are run: what their files import, or else what the language and its manifest imply.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::super::facts::{FileFacts, Function};
use super::super::look::{Look, count};
use super::{Pattern, best};

/// Imports that tell what runs a test.
const RUNNERS: &[(&str, &str)] = &[
    ("pytest", "pytest"),
    ("unittest", "unittest"),
    ("vitest", "vitest"),
    ("@jest/globals", "jest"),
    ("mocha", "mocha"),
    ("node:test", "node:test"),
    ("bun:test", "bun test"),
    ("@playwright/test", "playwright"),
    ("org.junit.jupiter", "JUnit 5"),
    ("org.junit", "JUnit 4"),
    ("org.testng", "TestNG"),
];
/// Imports of what tests use besides.
const LIBRARIES: &[(&str, &str)] = &[
    ("chai", "chai"),
    ("sinon", "sinon"),
    ("@testing-library/react", "testing-library"),
    ("supertest", "supertest"),
    ("github.com/stretchr/testify", "testify"),
    ("org.mockito", "Mockito"),
    ("org.assertj", "AssertJ"),
    ("hypothesis", "hypothesis"),
    ("insta", "insta"),
    ("proptest", "proptest"),
    ("rstest", "rstest"),
];

pub(super) fn framework(look: &Look, tests: &[(&FileFacts, &Function)]) -> Option<Pattern> {
    let paths: HashSet<&str> = tests.iter().map(|(file, _)| file.path.as_str()).collect();
    let files: Vec<&FileFacts> =
        look.survey.files.iter().filter(|file| paths.contains(file.path.as_str())).collect();
    let script = script_runner(look);
    let mut runners: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut libraries: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        if let Some(name) = runner(file, script) {
            runners.entry(name).or_default().push(file.path.clone());
        }
        let used: HashSet<&str> =
            LIBRARIES.iter().filter(|(path, _)| imports(file, path)).map(|(_, name)| *name).collect();
        used.into_iter().for_each(|name| *libraries.entry(name).or_default() += 1);
    }
    let (name, places) = runners.iter().max_by_key(|(_, places)| places.len())?;
    let others =
        runners.iter().filter(|(other, _)| *other != name).map(|(other, places)| (*other, places.len()));
    let besides = others.chain(libraries.iter().map(|(library, number)| (*library, *number)));
    let besides: Vec<String> = besides.map(|(name, number)| format!("{name} in {number}")).collect();
    let also = if besides.is_empty() { String::new() } else { format!("; also {}", besides.join(", ")) };
    Some(Pattern {
        kind: "tests",
        subject: "test framework".into(),
        predicate: "is",
        value: json!(name),
        title: format!("Tests run with {name}"),
        detail: format!("In {} of {}{also}.", places.len(), count(files.len(), "test file")),
        share: places.len() as f64 / files.len() as f64,
        places: files.len(),
        examples: best(look, places.clone()),
        exceptions: Vec::new(),
    })
}

fn imports(file: &FileFacts, name: &str) -> bool {
    file.imports.iter().any(|import| {
        import
            .path
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '/']))
    })
}

fn runner(file: &FileFacts, script: Option<&'static str>) -> Option<&'static str> {
    if let Some((_, name)) = RUNNERS.iter().find(|(path, _)| imports(file, path)) {
        return Some(name);
    }
    match file.language {
        "Rust" => Some("Rust's own harness"),
        "Go" => Some("Go's own harness"),
        // Nothing else collects functions that are in no class.
        "Python" => Some("pytest"),
        "TypeScript" | "JavaScript" => script,
        _ => None,
    }
}

/// From the scripts and dependencies of `package.json`.
fn script_runner(look: &Look) -> Option<&'static str> {
    let manifests = look
        .tree
        .files
        .iter()
        .filter(|file| file.name() == "package.json" && file.path.matches('/').count() <= 2);
    let texts: Vec<String> = manifests.take(20).filter_map(|file| look.tree.text(file)).collect();
    let known = ["vitest", "jest", "mocha", "ava", "jasmine", "playwright", "cypress"];
    known.into_iter().find(|name| texts.iter().any(|text| text.contains(&format!("\"{name}"))))
}
