//! How `unittest` has to be called so that it finds all tests of a folder.
//!
//! `python -m unittest discover` looks into packages and at `test*.py` only. Test files in a plain folder, or with
//! another name, need a call of their own; functions that are no `TestCase` are found by pytest alone.

use std::collections::BTreeSet;

use super::Place;
use super::python::is_aside;

pub(super) struct Tests {
    /// The first test file, relative to the place.
    pub first: String,
    /// A file whose tests only pytest runs.
    pub needs_pytest: Option<String>,
    /// Folder and pattern of each call; the folder itself is empty.
    calls: BTreeSet<(String, &'static str)>,
}

impl Tests {
    /// `python3 -m unittest discover -s tests && ...`
    pub fn line(&self, python: &str) -> String {
        let call = |(folder, pattern): &(String, &'static str)| {
            let start = if folder.is_empty() { String::new() } else { format!(" -s '{folder}'") };
            let start = if is_plain(folder) { start.replace('\'', "") } else { start };
            let names = if pattern.is_empty() { String::new() } else { format!(" -p '{pattern}'") };
            format!("{python} -m unittest discover{start}{names}")
        };
        self.calls.iter().map(call).collect::<Vec<_>>().join(" && ")
    }
}

fn is_plain(folder: &str) -> bool {
    folder.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c))
}

pub(super) fn is_test(name: &str) -> bool {
    name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"))
}

/// unittest takes `tests.py` and `testcart.py` as well; not each of them has tests.
fn is_found(name: &str) -> bool {
    name.starts_with("test") && name.ends_with(".py")
}

/// Of the test files below a place, but for those of projects of their own.
pub(super) fn tests(place: &Place) -> Option<Tests> {
    let start = place.path("");
    let mut found: Option<Tests> = None;
    for file in place.tree.files.iter().filter(|file| is_test(file.name()) || is_found(file.name())) {
        let Some(rest) = file.path.strip_prefix(&start) else { continue };
        if is_aside(rest) || belongs_elsewhere(place, rest) {
            continue;
        }
        let text = place.tree.text(file).unwrap_or_default();
        if !is_test(file.name()) && !text.contains("TestCase)") {
            continue;
        }
        let tests = found.get_or_insert_with(|| Tests {
            first: rest.to_string(),
            needs_pytest: None,
            calls: BTreeSet::new(),
        });
        if tests.needs_pytest.is_none() && is_for_pytest(&text) {
            tests.needs_pytest = Some(rest.to_string());
        }
        let pattern = if file.name().starts_with("test") { "" } else { "*_test.py" };
        tests.calls.insert((outermost(place, rest), pattern));
    }
    found
}

fn belongs_elsewhere(place: &Place, path: &str) -> bool {
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        if ["pyproject.toml", "setup.py"].iter().any(|name| place.has(&format!("{above}/{name}"))) {
            return true;
        }
        folder = above;
    }
    false
}

/// The folder where discovery has to begin: the first one on the way that is no package.
fn outermost(place: &Place, path: &str) -> String {
    let mut folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut begin = "";
    while !folder.is_empty() {
        if !place.has(&format!("{folder}/__init__.py")) {
            begin = folder;
            break;
        }
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
    begin.to_string()
}

/// It has test functions outside of classes, or speaks of pytest.
fn is_for_pytest(text: &str) -> bool {
    let function = |line: &str| line.starts_with("def test_") || line.starts_with("async def test_");
    let imports = |line: &str| line.starts_with("import pytest") || line.starts_with("from pytest");
    let classes = text.contains("class Test") && !text.contains("TestCase");
    classes || text.lines().any(|line| function(line) || imports(line))
}
