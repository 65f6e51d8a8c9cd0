//! Which functions tests reach, by name: directly, or through functions that tests call.
//!
//! Without running anything a name is all there is, so nothing is said about names that many things have.

use std::collections::{HashMap, HashSet};

use super::facts::{FileFacts, Function};
use super::survey::Survey;

/// A name with more definitions could be any of them.
const COMMON: usize = 3;

pub(super) struct Coverage<'a> {
    /// Tests by the names that they call.
    direct: HashMap<&'a str, Vec<(&'a FileFacts, &'a Function)>>,
    reached: HashSet<&'a str>,
    /// In how many places a name is defined.
    definitions: HashMap<&'a str, usize>,
    pub tests: usize,
}

impl<'a> Coverage<'a> {
    pub fn new(survey: &'a Survey) -> Coverage<'a> {
        let mut direct: HashMap<&str, Vec<(&FileFacts, &Function)>> = HashMap::new();
        let mut by_name: HashMap<&str, Vec<&Function>> = HashMap::new();
        let mut tests = 0;
        let mut open = Vec::new();
        for file in &survey.files {
            for function in &file.functions {
                tests += usize::from(function.is_test);
                if !function.in_test {
                    by_name.entry(&function.name).or_default().push(function);
                    continue;
                }
                for name in &function.calls {
                    open.push(name.as_str());
                    if function.is_test {
                        direct.entry(name).or_default().push((file, function));
                    }
                }
            }
            // Calls of a test file that are in no function: setup at the top, tables of cases.
            let loose = file.calls.iter().filter(|call| call.in_test && call.function.is_none());
            open.extend(loose.map(|call| file.slice(call.name)));
        }
        let mut reached = HashSet::new();
        while let Some(name) = open.pop() {
            let called = by_name.get(name).map_or(&[][..], Vec::as_slice);
            if called.len() <= COMMON && reached.insert(name) {
                let called = called.iter();
                open.extend(called.flat_map(|function| function.calls.iter().map(String::as_str)));
            }
        }
        let definitions = by_name.into_iter().map(|(name, all)| (name, all.len())).collect();
        Coverage { direct, reached, definitions, tests }
    }

    /// Tests that call it by name.
    pub fn tests_of(&self, function: &Function) -> &[(&'a FileFacts, &'a Function)] {
        self.direct.get(function.name.as_str()).map_or(&[], Vec::as_slice)
    }

    pub fn reaches(&self, function: &Function) -> bool {
        self.reached.contains(function.name.as_str())
    }

    /// Whether its name says which function is meant.
    pub fn is_telling(&self, function: &Function) -> bool {
        self.definitions.get(function.name.as_str()).is_none_or(|number| *number <= COMMON)
    }
}

/// The module that a test file is about, by its name: `order` for `order_test.go`, `OrderTest.java`, `test_order.py`.
pub(super) fn subject_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.strip_prefix("test_").unwrap_or(stem);
    let ends = ["_tests", "_test", "Tests", "Test", "IT"];
    ends.iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem).to_string()
}
