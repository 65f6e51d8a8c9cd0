//! The tests of a project and what its test commands do, as they were when a run began.
//!
//! Tests are found by how they begin in their language; those that are switched off have no name here, or are counted
//! by what switches them off.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::research;
use crate::walk::Tree;

/// A project with more files is sampled, and two samples cannot be compared.
const MOST_FILES: usize = 20_000;
/// How far below its attribute a test's name may stand.
const NAME_LINES: usize = 10;
const NAME_CHARS: usize = 120;

/// Taken when a run begins, compared when a check is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Nothing for a project that is too large.
    pub tests: Option<Tests>,
    /// What each test command does, by its folder and line.
    pub commands: BTreeMap<String, String>,
}

/// By path.
pub type Tests = BTreeMap<String, FileTests>;

/// The tests of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTests {
    pub names: Vec<String>,
    /// Lines that switch tests off.
    pub off: usize,
}

impl Baseline {
    /// Reads the project as it is.
    pub fn take(project: &Path) -> Option<Baseline> {
        let tree = Tree::read(project).ok()?;
        let known = research::all_commands(&tree).test.into_iter();
        let commands =
            known.map(|command| (key(&command.folder, &command.line), command.definition)).collect();
        Some(Baseline { tests: all(&tree), commands })
    }
}

pub fn key(folder: &str, line: &str) -> String {
    format!("{folder}:{line}")
}

/// All tests of a project.
pub fn all(tree: &Tree) -> Option<Tests> {
    (tree.files.len() < MOST_FILES).then_some(())?;
    let files = tree.files.iter().filter(|file| is_source(&file.path));
    let found =
        files.map(|file| (file.path.clone(), tests(&file.path, &tree.text(file).unwrap_or_default())));
    Some(found.filter(|(_, tests)| *tests != FileTests::default()).collect())
}

/// Whether tests of this language can be found.
pub fn is_source(path: &str) -> bool {
    markers(path).is_some()
}

/// How tests begin in a language, and what switches one off.
struct Markers {
    begins: &'static [&'static str],
    off: &'static [&'static str],
    /// Off anywhere in a line, spaces left out.
    within: &'static [&'static str],
}

fn markers(path: &str) -> Option<Markers> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let (begins, off, within): (&[&str], &[&str], &[&str]) = match ending {
        "py" => (&["def test", "async def test"], PYTHON_OFF, &[]),
        "rs" => (&["#[test]", "#[tokio::test", "#[rstest"], &["#[ignore"], &[]),
        "go" => (&["func Test", "func Fuzz"], &["t.Skip"], &[]),
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            (&["it(", "test(", "it.each", "test.each", "it.only(", "test.only("], SCRIPT_OFF, OPTION_OFF)
        }
        "java" | "kt" | "scala" => (&["@Test", "@ParameterizedTest"], &["@Disabled", "@Ignore"], &[]),
        "rb" => (&["it \"", "it '", "def test_", "test \""], &["skip", "pending", "xit "], &[]),
        "php" => (&["public function test", "function test"], &["$this->markTestSkipped"], &[]),
        "bats" => (&["@test "], &["skip"], &[]),
        _ => return None,
    };
    Some(Markers { begins, off, within })
}

const PYTHON_OFF: &[&str] = &[
    "@unittest.skip",
    "@unittest.expectedFailure",
    "@expectedFailure",
    "@skip",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "pytestmark = pytest.mark.skip",
    "pytest.skip(",
    "pytest.xfail(",
    "self.skipTest(",
    "raise unittest.SkipTest",
    "raise SkipTest",
];

/// What runs only some switches the others off.
const SCRIPT_OFF: &[&str] = &[
    "describe.skip",
    "xdescribe(",
    "suite.skip",
    "describe.only",
    "it.only(",
    "test.only(",
    "fdescribe(",
    "t.skip(",
    "t.todo(",
    "this.skip(",
];

const OPTION_OFF: &[&str] = &["skip:true", "todo:true", "skip:'", "skip:\"", "todo:'", "todo:\""];

/// The tests of a file.
pub fn tests(path: &str, text: &str) -> FileTests {
    let Some(markers) = markers(path) else { return FileTests::default() };
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut found = FileTests::default();
    for (at, line) in lines.iter().enumerate() {
        let squeezed = || line.split_whitespace().collect::<String>();
        let is_off = markers.off.iter().any(|start| line.starts_with(start))
            || (!markers.within.is_empty() && markers.within.iter().any(|word| squeezed().contains(word)));
        found.off += usize::from(is_off);
        if markers.begins.iter().any(|start| line.starts_with(start)) {
            found.names.push(name(&lines[at..]));
        }
    }
    found
}

/// The name of the test that begins in the first of these lines: its function's, or its text.
fn name(lines: &[&str]) -> String {
    let first = lines[0];
    let is_attribute = |line: &str| line.starts_with(['@', '#']) && !line.starts_with("@test ");
    let named = lines.iter().take(NAME_LINES).find(|line| !is_attribute(line) && !line.is_empty());
    let line = named.copied().unwrap_or(first);
    let is_call = first.starts_with("it") || first.starts_with("test");
    let function = ["def ", "fn ", "func ", "function "].iter().find_map(|word| line.split_once(word));
    let text = match function.filter(|_| !is_call) {
        Some((_, rest)) => rest.split(['(', '<', '[', ':']).next().unwrap_or(rest),
        None if is_attribute(first) => {
            let before = line.split('(').next().unwrap_or(line);
            before.rsplit(char::is_whitespace).next().unwrap_or(before)
        }
        None => quoted(line).unwrap_or(line),
    };
    text.trim().chars().take(NAME_CHARS).collect()
}

fn quoted(line: &str) -> Option<&str> {
    let from = line.find(['"', '\'', '`'])?;
    let quote = line[from..].chars().next()?;
    line[from + 1..].split(quote).next()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[track_caller]
    fn assert_tests(path: &str, text: &str, names: &[&str], off: usize) {
        let found = tests(path, text);
        assert_eq!(
            (found.names.iter().map(String::as_str).collect::<Vec<_>>(), found.off),
            (names.to_vec(), off)
        );
    }

    // covers: P4, R6
    #[test]
    fn tests_are_known_by_name_and_by_what_switches_them_off() {
        assert_tests("a.py", "class A:\n  def test_a(self):\n    pass\n", &["test_a"], 0);
        for off in ["@unittest.skipIf(True, 'x')", "@unittest.expectedFailure", "@pytest.mark.skipif(True)"] {
            assert_tests("a.py", &format!("{off}\ndef test_a(): pass\n"), &["test_a"], 1);
        }
        assert_tests("a.rs", "#[test]\n#[ignore]\nfn adds() {}\n", &["adds"], 1);
        assert_tests("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n", &["TestA"], 1);
        assert_tests("A.java", "  @Test\n  public void adds() {\n", &["adds"], 0);
        let script = "describe.skip('cart', () => {\n  it('adds', () => {});\n  it.skip('sums', f);\n});\n";
        assert_tests("a.test.js", script, &["adds"], 1);
        for option in ["{skip: true}", "{ todo: true }", "{ skip: 'later' }"] {
            assert_tests("a.test.js", &format!("test('adds', {option}, () => {{}});\n"), &["adds"], 1);
        }
        assert_tests("a.bats", "@test \"adds up\" {\n", &["adds up"], 0);
    }
}
