//! Which functions tests reach, by name: directly, or through functions that tests call.
//!
//! Without running anything, names and imports are all there is. A name that many functions have means the ones
//! nearby: in the same folder, or in a module that the caller imports.

use std::collections::{HashMap, HashSet};

use super::facts::{FileFacts, Function};
use super::imports::{imported, module_path};
use super::survey::Survey;

/// A name with more definitions could be any of them.
const COMMON: usize = 3;
/// In a test, these start the program as a whole.
const STARTERS: &[&str] = &[
    "CARGO_BIN_EXE",
    "cargo_bin",
    "subprocess.",
    "child_process",
    "TestClient(",
    "test_client(",
    "supertest",
    "httptest.",
    "MockMvc",
    "TestRestTemplate",
    "assert_cmd",
];

type Place<'a> = (&'a FileFacts, &'a Function);

pub(super) struct Coverage<'a> {
    /// Tests by the names that they call.
    direct: HashMap<&'a str, Vec<Place<'a>>>,
    reached: HashSet<(&'a str, usize)>,
    /// Where a name is defined.
    definitions: HashMap<&'a str, Vec<Place<'a>>>,
    pub tests: usize,
}

impl<'a> Coverage<'a> {
    pub fn new(survey: &'a Survey) -> Coverage<'a> {
        let mut coverage = Coverage {
            direct: HashMap::new(),
            reached: HashSet::new(),
            definitions: HashMap::new(),
            tests: 0,
        };
        let mut open: Vec<(&FileFacts, &str)> = Vec::new();
        for file in &survey.files {
            for function in &file.functions {
                coverage.tests += usize::from(function.is_test);
                if !function.in_test {
                    coverage.definitions.entry(&function.name).or_default().push((file, function));
                    if let Some(owner) = function.owner.as_deref().filter(|_| is_constructor(function)) {
                        coverage.definitions.entry(owner).or_default().push((file, function));
                    }
                    continue;
                }
                open.extend(function.refers.iter().map(|name| (file, name.as_str())));
                for name in &function.calls {
                    open.push((file, name));
                    if function.is_test {
                        coverage.direct.entry(name).or_default().push((file, function));
                    }
                }
            }
            // Calls of a test file that are in no function: setup at the top, tables of cases.
            let loose = file.calls.iter().filter(|call| call.in_test && call.function.is_none());
            open.extend(loose.map(|call| (file, file.slice(call.name))));
        }
        open.extend(started(survey));
        coverage.follow(open, &imported(survey));
        coverage
    }

    fn follow(&mut self, mut open: Vec<(&'a FileFacts, &'a str)>, imports: &HashMap<&str, HashSet<String>>) {
        let mut seen: HashSet<(&str, &str)> = HashSet::new();
        while let Some((from, name)) = open.pop() {
            if !seen.insert((from.path.as_str(), name)) {
                continue;
            }
            let all = self.definitions.get(name).map_or(&[][..], Vec::as_slice);
            let near = |file: &FileFacts| all.len() <= COMMON || is_near(from, file, imports);
            for (file, function) in all.iter().filter(|(file, _)| near(file)) {
                if self.reached.insert((file.path.as_str(), function.line)) {
                    let names = function.calls.iter().chain(&function.refers);
                    open.extend(names.map(|name| (*file, name.as_str())));
                }
            }
        }
    }

    /// Tests that call it by name.
    pub fn tests_of(&self, function: &Function) -> &[Place<'a>] {
        self.direct.get(function.name.as_str()).map_or(&[], Vec::as_slice)
    }

    pub fn reaches(&self, file: &FileFacts, function: &Function) -> bool {
        self.reached.contains(&(file.path.as_str(), function.line))
    }

    /// Whether its name says which function is meant.
    pub fn is_telling(&self, function: &Function) -> bool {
        self.definitions.get(function.name.as_str()).is_none_or(|all| all.len() <= COMMON)
    }
}

/// Called by the name of its type.
pub(super) fn is_constructor(function: &Function) -> bool {
    matches!(function.name.as_str(), "__init__" | "constructor")
        || function.owner.as_ref() == Some(&function.name)
}

/// Where the program starts, if tests start it; and what a framework calls for a request.
fn started(survey: &Survey) -> Vec<(&FileFacts, &str)> {
    let starts = |file: &&FileFacts| file.is_test && STARTERS.iter().any(|start| file.text.contains(start));
    if !survey.files.iter().any(|file| starts(&file)) {
        return Vec::new();
    }
    let functions = survey.files.iter().flat_map(|file| file.functions.iter().map(move |f| (file, f)));
    let entries =
        functions.filter(|(_, f)| !f.in_test && (f.name == "main" || (f.is_expected && f.owner.is_none())));
    entries.map(|(file, function)| (file, function.name.as_str())).collect()
}

/// In the same folder, or below a module that is imported.
fn is_near(from: &FileFacts, to: &FileFacts, imports: &HashMap<&str, HashSet<String>>) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string());
    if folder(&from.path) == folder(&to.path) {
        return true;
    }
    let modules = imports.get(from.path.as_str()).into_iter().flatten();
    modules.into_iter().any(|module| {
        let base = module_path(module);
        to.path == *module || to.path.strip_prefix(&base).is_some_and(|rest| rest.starts_with('/'))
    })
}

/// The module that a test file is about, by its name: `order` for `order_test.go`, `OrderTest.java`, `test_order.py`.
pub(super) fn subject_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.strip_prefix("test_").unwrap_or(stem);
    let ends = ["_tests", "_test", "Tests", "Test", "IT"];
    ends.iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem).to_string()
}
